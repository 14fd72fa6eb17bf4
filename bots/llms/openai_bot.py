"""OpenAIBot: a model of OpenAI, or of a server that speaks its protocol."""

from bots.llms.llm_bot import LLMBot


class OpenAIBot(LLMBot):
    """Asks an OpenAI model (Responses API) at every node."""

    defaults = {"api": "responses"}

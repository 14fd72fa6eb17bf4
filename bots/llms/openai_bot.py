"""OpenAIBot, which asks OpenAI or a server with the same API."""

from bots.llms.llm_bot import LLMBot


class OpenAIBot(LLMBot):
    """Asks a model through OpenAI's Responses API at every node."""

    defaults = {"api": "responses"}

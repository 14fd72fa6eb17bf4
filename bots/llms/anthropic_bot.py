"""AnthropicBot: a model of Anthropic, or of a server that speaks its protocol."""

from bots.llms.llm_bot import LLMBot


class AnthropicBot(LLMBot):
    """Asks an Anthropic model (Messages API) at every node."""

    defaults = {"api": "messages"}

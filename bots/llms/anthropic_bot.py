"""AnthropicBot, which asks Anthropic or a server with the same API."""

from bots.llms.llm_bot import LLMBot


class AnthropicBot(LLMBot):
    """Asks a model through Anthropic's Messages API at every node."""

    defaults = {"api": "messages"}

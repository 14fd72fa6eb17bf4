"""GeminiBot, which asks Google's Gemini API."""

from bots.llms.llm_bot import LLMBot


class GeminiBot(LLMBot):
    """Asks a model through Google's `generateContent` at every node."""

    defaults = {"api": "gemini"}

from typing import Any

from bots.llms.anthropic_bot import AnthropicBot
from dubito.facts import Position


class RatelessBot(AnthropicBot):
    """Is told nobody's rates: what are they worth?"""

    defaults = AnthropicBot.defaults | {"max_output": 2048}

    def facts(self, position: Position) -> dict[str, Any]:
        told = super().facts(position)
        return told | {key: None for key in told if key.endswith("_rate")}

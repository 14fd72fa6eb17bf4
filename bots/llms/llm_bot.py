"""LLMBot: the five nodes answered by a model."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from bots.base import BotBase
from dubito.game import fallback_for
from dubito.games.dubito.bot import NODES, FiveNodes
from dubito.games.dubito.cards import TurnData, TurnOutput
from dubito.games.dubito.events import Event

if TYPE_CHECKING:  # whoever lists bots, or plays without models, loads nothing that asks one
    from dubito.games.dubito.facts import Position
    from dubito.llm.model_player import ModelPlayer


class LLMBot(BotBase):
    """Asks a model at every node, by its settings `api` and `model`; OpenAIBot and AnthropicBot know their api."""

    origin = "Dubito"
    is_model = True
    defaults: ClassVar[dict[str, Any]] = {}  # settings that a face knows already

    def __init__(self, id: int, **settings: Any) -> None:
        """`settings` are those of dubito.llm.settings.ModelSettings; the run has checked them."""
        from dubito.games.dubito.knowledge import Notebook
        from dubito.llm.decide import GameServices

        super().__init__(id)
        services = self._seating.services
        assert isinstance(services, GameServices), "a model player sits only in a run, which gives it a way to ask"
        self._decider, self._journal, self._texts = services.decider, services.journal, services.texts
        self._fallback = fallback_for(services.decider.fallback, self._seating)
        self._notebook = Notebook(id, services.decider.rules)
        self._decisions = 0
        self.listeners = (self._notebook,)  # a node may be a subclass's own: its answer counts as well

    @classmethod
    def elsewhere(cls) -> "type[ModelPlayer]":
        """What it is in other games."""
        from dubito.llm.model_player import model_player

        return model_player(cls)

    def play(self, p: TurnData) -> TurnOutput:
        """One turn by the nodes."""
        self._notebook.turn_begins(self.cards)
        return super().play(p)

    def observe(self, event: Event) -> None:
        """Remembers everything the table saw, and the own cards of own plays; the fallback watches the same game."""
        self._notebook.observe(event, self.cards)
        self._fallback.observe(event)

    def facts(self, position: "Position") -> dict[str, Any]:
        """What the prompt may say; a subclass may change the values, the keys are those that templates know."""
        return self._notebook.facts(position)

    def bluff_first_hand(self, p: TurnData) -> bool:
        """A, by the model."""
        return self.decide("A", p)

    def maximize_first_hand(self, p: TurnData) -> bool:
        """B, by the model."""
        return self.decide("B", p)

    def should_doubt(self, p: TurnData) -> bool:
        """C, by the model."""
        return self.decide("C", p)

    def bluff_regular(self, p: TurnData) -> bool:
        """D, by the model."""
        return self.decide("D", p)

    def maximize_regular(self, p: TurnData) -> bool:
        """E, by the model."""
        return self.decide("E", p)

    def decide(self, node: str, p: TurnData) -> bool:
        """Ask the model at a node; the fallback answers where it could not."""
        position = self._notebook.position(node, p, self.cards)
        rendered = self._decider.render(self.facts(position), self._texts)
        place = self._decider.place(self._seating, self._decisions, node)
        self._decisions += 1
        otherwise = self._fallback_at(node, p)
        answer: bool = self._decider.decide(rendered, place, p.me.turns + 1, self._journal, otherwise)
        return answer

    def _fallback_at(self, node: str, p: TurnData) -> Callable[[], bool]:
        bot = self._fallback
        assert isinstance(bot, FiveNodes)  # the run has checked it
        return lambda: getattr(bot, NODES[node])(p)

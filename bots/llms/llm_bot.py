"""LLMBot: the questions of any game answered by a model."""

from collections.abc import Callable
from typing import Any, ClassVar, cast

from bots.base import BotBase
from dubito.errors import IllegalOutput
from dubito.game import Position, fallback_for
from dubito.games.dubito.bot import Listener
from dubito.games.dubito.cards import TurnData


class LLMBot(BotBase):
    """Asks a model at every node, by its settings `api` and `model`; OpenAIBot and AnthropicBot know their api.

    It is a `BotBase` for Dubito's sake: there `Game.walk` asks A-E, and `play` is that walk. At a game without a walk
    `play` asks the one node that what it sees names, and the five methods are never called.

    Where the model could not answer, a bot written by hand does, which observes the whole game from the same seat.
    """

    origin = "Dubito"
    is_model = True
    defaults: ClassVar[dict[str, Any]] = {}  # settings that a face knows already

    def __init__(self, id: int, **settings: Any) -> None:
        """`settings` has the fields of dubito.llm.settings.ModelSettings; the run has checked them."""
        from dubito.llm.decide import GameServices  # late: a list of bots loads nothing that asks models

        super().__init__(id)
        services = self._seating.services
        assert isinstance(services, GameServices), "a model player sits only in a run, which gives it a way to ask"
        self._decider, self._journal, self._texts = services.decider, services.journal, services.texts
        self._counts = services.counts
        self._game = services.decider.prompt.game
        self._fallback = fallback_for(services.decider.fallback, self._seating)
        self._notebook: Any = self._game.facts.Notebook(id, services.decider.rules)
        self._decisions = 0
        self._asked: Any = None  # the conversation that may answer what this turn asks next
        if self._game.walk:  # a node may be a subclass's own: its answer counts as well
            self.listeners = (cast(Listener, self._notebook),)

    def play(self, p: Any) -> Any:
        """Play one turn by the nodes of the game's walk; without a walk, a move is one node's answer."""
        if self._game.walk:
            self._notebook.turn_begins(self.cards)
            self._asked = None
            return super().play(p)
        self._made: list[Any] = []  # this move's output, last; empty where a subclass's decide() answered itself
        answer = self.decide(p.node, p)
        output = self._made[-1] if self._made else self._game.output_of(p.node, answer, self.cards)
        self._notebook.answered(p.node, output)
        return output

    def observe(self, event: Any) -> None:
        """Remembers everything the table saw, and the own cards of own plays; the fallback watches the same game."""
        self._notebook.observe(event, self.cards)
        self._fallback.observe(event)

    def facts(self, position: Position) -> dict[str, Any]:
        """What the prompt may say; a subclass may change the values, the keys are those that templates know."""
        known: Callable[[Any], dict[str, Any]] = getattr(self._notebook, "facts", self._game.facts.facts)
        return known(position)

    def bluff_first_hand(self, p: TurnData) -> Any:
        """A, by the model."""
        return self.decide("A", p)

    def maximize_first_hand(self, p: TurnData) -> Any:
        """B, by the model."""
        return self.decide("B", p)

    def should_doubt(self, p: TurnData) -> Any:
        """C, by the model."""
        return self.decide("C", p)

    def bluff_regular(self, p: TurnData) -> Any:
        """D, by the model."""
        return self.decide("D", p)

    def maximize_regular(self, p: TurnData) -> Any:
        """E, by the model."""
        return self.decide("E", p)

    def decide(self, node: str, p: Any) -> Any:
        """Ask the model at a node and return its answer; the fallback answers where it could not."""
        place = self._decider.place(self._seating, self._decisions, node)
        self._decisions += 1
        turn = p.me.turns + 1 if isinstance(p, TurnData) else self._decisions

        def accept(answer: Any) -> None:
            if not self._game.walk:
                output = self._game.output_of(node, answer, self.cards)
                if why := p.why_illegal(output):
                    raise IllegalOutput(why)
                self._made.append(output)

        def by_fallback() -> Any:
            if self._game.walk:
                return getattr(self._fallback, self._game.node(node).method)(p)
            self._made.append(self._fallback.play(p))
            return self._game.answer_of(node, self._made[-1])

        position = self._notebook.position(node, p, self.cards)
        key = self._asked.form.key_of(position) if self._game.walk and self._asked else None
        if key is None:
            self._asked = self._begin(position, place, accept)
            key = self._asked.form.key_of(position)
        return self._decider.decide(self._asked, place, turn, self._journal, by_fallback, key)

    def _begin(self, position: Position, place: Any, accept: Callable[[Any], None]) -> Any:
        """A conversation about this question, or about all that its turn may yet ask."""
        prompt = self._decider.prompt
        turn = [self.facts(each) for each in prompt.questions(position)]
        rendered = self._decider.render(turn[0], self._texts, turn)
        form = prompt.form_at(position, turn)
        return self._decider.begin(rendered, form, place, accept, self.rng.random, self._counts)

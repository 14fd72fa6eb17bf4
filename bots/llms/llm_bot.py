"""LLMBot, which lets a model answer the questions of any game, and the base that it shares with ProgramBot."""

from collections.abc import Callable
from typing import Any, ClassVar

from bots.base import BotBase
from dubito.errors import IllegalOutput
from dubito.game import fallback_for
from dubito.game.log import Position, SeatLog
from dubito.games.dubito.cards import TurnData


class AskedBot(BotBase):
    """A player whose questions are answered from outside: by a model, or by a program.

    It is a `BotBase` because Dubito has a walk (`Game.walk`) through the nodes A-E, and `play` follows it. In a game
    without a walk, `play` asks the one node that the view names and never calls the five methods.
    """

    def __init__(self, id: int, game: Any, rules: Any) -> None:
        super().__init__(id)
        self._game, self._game_rules, self._facts = game, rules, game.facts
        self._decisions = 0

    def play(self, p: Any) -> Any:
        """Play one turn: follow the game's walk, or ask one node if it has none."""
        if self._game.has_walk:
            return super().play(p)
        # The output comes last; the list stays empty if a subclass's decide() answers by itself.
        self._outputs: list[Any] = []
        answer = self.decide(p.node, p)
        return self._outputs[-1] if self._outputs else self._game.output_of(p.node, answer, self.cards)

    def position(self, node: str) -> Position:
        """Return a question with everything that the seat has seen."""
        log: SeatLog | None = self._seating.log
        assert log is not None  # the table keeps a log for a player that is asked
        return Position(self._game_rules, node, log.latest())

    def facts(self, position: Position) -> dict[str, Any]:
        """Return the facts for the prompt. A subclass may change values but not keys."""
        facts: dict[str, Any] = self._facts.facts(position)
        return facts

    def accept(self, node: str, p: Any, answer: Any) -> None:
        """Keep the output of an answer. Raises IllegalOutput if the rules refuse it."""
        if not self._game.has_walk:
            output = self._game.output_of(node, answer, self.cards)
            if why := p.why_illegal(output):
                raise IllegalOutput(why)
            self._outputs.append(output)

    def bluff_first_hand(self, p: TurnData) -> Any:
        return self.decide("A", p)

    def maximize_first_hand(self, p: TurnData) -> Any:
        return self.decide("B", p)

    def should_doubt(self, p: TurnData) -> Any:
        return self.decide("C", p)

    def bluff_regular(self, p: TurnData) -> Any:
        return self.decide("D", p)

    def maximize_regular(self, p: TurnData) -> Any:
        return self.decide("E", p)

    def decide(self, node: str, p: Any) -> Any:
        """Return the answer at a node."""
        raise NotImplementedError


class LLMBot(AskedBot):
    """Asks a model at every node; set `api` and `model`. OpenAIBot and AnthropicBot set `api` themselves.

    A hand-written bot observes the game from the same seat and answers when the model cannot.
    """

    origin = "Dubito"
    is_model = True
    defaults: ClassVar[dict[str, Any]] = {}  # settings that a subclass fixes

    def __init__(self, id: int, **settings: Any) -> None:
        """Take the run's services; `settings` are the fields of ModelSettings, which the run has checked."""
        # Imported late: listing the bots should not load the code that asks models.
        from dubito.llm.decide import GameServices

        services = self._seating.services
        assert isinstance(services, GameServices), "a model player needs the services that a run provides"
        super().__init__(id, services.decider.prompt.game, services.decider.rules)
        self._decider, self._journal, self._texts = services.decider, services.journal, services.texts
        self._counts = services.counts
        self._fallback = fallback_for(services.decider.fallback, self._seating)
        self._adviser = services.seat_adviser(self._seating)
        self._conversation: Any = None  # may already hold the answers to this turn's next questions

    def play(self, p: Any) -> Any:
        self._conversation = None
        if self._adviser is not None:
            self._adviser.begin_turn()
        return super().play(p)

    def observe(self, event: Any) -> None:
        self._fallback.observe(event)
        if self._adviser is not None:
            self._adviser.observe(event)

    def decide(self, node: str, p: Any) -> Any:
        """Ask the model at a node and return its answer, or the fallback's if the model cannot answer."""
        place = self._decider.place(self._seating, self._decisions, node)
        self._decisions += 1
        turn = p.me.turns + 1 if isinstance(p, TurnData) else self._decisions

        def accept(answer: Any) -> None:
            self.accept(node, p, answer)

        def ask_fallback() -> Any:
            if self._game.has_walk:
                return getattr(self._fallback, self._game.node(node).method)(p)
            self._outputs.append(self._fallback.play(p))
            return self._game.answer_of(node, self._outputs[-1])

        position = self.position(node)
        key = self._conversation.form.key_of(position) if self._game.has_walk and self._conversation else None
        if key is None:
            self._conversation = self._begin(position, p, place, accept)
            key = self._conversation.form.key_of(position)
        return self._decider.decide(self._conversation, place, turn, self._journal, ask_fallback, key)

    def _begin(self, position: Position, p: Any, place: Any, accept: Callable[[Any], None]) -> Any:
        """Begin a conversation about this question, or about all the questions of its turn."""
        prompt = self._decider.prompt
        questions = prompt.questions(position)
        turn = [self.facts(each) for each in questions]
        rendered = self._decider.render(turn[0], self._texts, turn)
        if self._adviser is not None:
            rendered = rendered.with_advice(self._adviser.advise(questions, p))
        form = prompt.form_at(position, turn)
        return self._decider.begin(rendered, form, place, accept, self.rng.random, self._counts)

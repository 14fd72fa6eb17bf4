"""A model as a player of any game in which every move is one node's answer."""

from typing import Any, ClassVar

from dubito.errors import IllegalOutput
from dubito.game import Player, Position, Spec, View, fallback_for


class ModelPlayer(Player):
    """Asks a model at every node, by its settings `api` and `model`; a bot written by hand answers where it could not.

    That fallback observes the whole game, from the same seat.
    """

    is_model = True
    defaults: ClassVar[dict[str, Any]] = {}  # settings that the subclass already fixes, such as `api`

    def __init__(self, id: int, **settings: Any) -> None:
        """`settings` are those of dubito.llm.settings.ModelSettings; the run has checked them."""
        from dubito.llm.decide import GameServices  # late: whoever lists bots needs nothing that asks

        super().__init__(id)
        services = self._seating.services
        assert isinstance(services, GameServices), "a model player sits only in a run, which gives it a way to ask"
        self._decider, self._journal, self._texts = services.decider, services.journal, services.texts
        self._game: Spec = services.decider.prompt.game
        self._fallback = fallback_for(services.decider.fallback, self._seating)
        self._facts = self._game.facts
        self._notebook = self._facts.Notebook(id, services.decider.rules)
        self._decisions = 0

    def observe(self, event: Any) -> None:
        """Remembers what the table saw."""
        self._notebook.observe(event, self.cards)
        self._fallback.observe(event)

    def facts(self, position: Position) -> dict[str, Any]:
        """What the prompt may say; a subclass may change the values, the keys are those that templates know."""
        return self._facts.facts(position)

    def play(self, view: View) -> Any:
        """Ask the model at the view's node."""
        rendered = self._decider.render(self.facts(self._notebook.position(view.node, view, self.cards)), self._texts)
        place = self._decider.place(self._seating, self._decisions, view.node)
        self._decisions += 1
        move = _Move(self._game, view, self.cards, self._fallback)
        self._decider.decide(rendered, place, self._decisions, self._journal, move.by_fallback, move.accept)
        self._notebook.answered(view.node, move.output)
        return move.output


class _Move:
    """One move while it is decided."""

    def __init__(self, game: Spec, view: View, cards: Any, fallback: Player) -> None:
        self.output: Any = None
        self._game, self._view, self._cards, self._fallback = game, view, cards, fallback

    def accept(self, answer: Any) -> None:
        """Make it the output; raises IllegalOutput if there is none such, or the rules refuse it."""
        output = self._game.output_of(self._view.node, answer, self._cards)
        if why := self._view.why_illegal(output):
            raise IllegalOutput(why)
        self.output = output

    def by_fallback(self) -> Any:
        """The answer of the bot that answers in the model's place."""
        self.output = self._fallback.play(self._view)
        return self._game.answer_of(self._view.node, self.output)


def model_player(provider_bot: type[Any]) -> type[ModelPlayer]:
    """The model player of other games that matches this one of Dubito: its docstring, origin and default settings."""
    own = {name: getattr(provider_bot, name) for name in ("__doc__", "__module__", "defaults", "origin")}
    return type(provider_bot.__name__, (ModelPlayer,), own)

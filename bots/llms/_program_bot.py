"""ProgramBot, which lets a program answer the questions of any game (docs/programs.md)."""

from typing import Any, ClassVar

from bots.llms.llm_bot import AskedBot
from dubito.errors import IllegalOutput, one_line
from dubito.game import Text
from dubito.game.log import Position
from dubito.games.dubito.cards import TurnData


class ProgramBot(AskedBot):
    """Asks a program at every node; set `process`."""

    origin = "Dubito"
    is_program = True
    usual = False
    defaults: ClassVar[dict[str, Any]] = {}  # settings in the `bot.yaml` of a subclass
    reason = ""  # of its last answer, if it gave one

    def __init__(self, id: int, **settings: Any) -> None:
        """Take the run's services; `settings` are those that the run has checked."""
        # Imported late: listing the bots should not load the code that starts programs.
        from dubito.llm.request import Place
        from dubito.seats.program import ProgramGame

        services = self._seating.services
        if not isinstance(services, ProgramGame):
            raise IllegalOutput("it is a program, which only the games of `dubito run` start")
        super().__init__(id, services.player.game, services.player.rules)
        self._services = services
        self._place = Place(
            services.player.name, self._seating.game, self._seating.deal, id, 0, services.player.attempt, ""
        )

    def observe(self, event: Any) -> None:
        self._services.observe(event)

    def decide(self, node: str, p: Any) -> Any:
        return self.ask(self.position(node), p)

    def ask(self, position: Position, p: Any) -> Any:
        """Ask the program. Raises IllegalOutput if its answer cannot be used."""
        # Imported late, as above.
        from dataclasses import replace

        from dubito.llm.answers import ANSWER, build_form

        game, node = self._game, position.node
        place = replace(self._place, decision=self._decisions, node=node)
        self._decisions += 1
        form = build_form((ANSWER,), game.node(node))
        legal = [True, False] if isinstance(p, TurnData) else game.legal_answers_of(p, self.cards)
        facts = self.facts(position)
        return self._services.ask(place, facts, legal, form.schema, lambda reply: self._read(node, p, form, reply))

    def _read(self, node: str, p: Any, form: Any, reply: Any) -> Any:
        """Return the answer in a reply. Raises IllegalOutput if it cannot be used."""
        # Imported late, as above.
        from dubito.llm.answers import read_answer, split_reason
        from dubito.llm.request import AttemptFailed

        try:
            rest, self.reason = split_reason(reply)
            answer = read_answer(rest, form).answer
        except AttemptFailed as failure:
            answered = f"it answered {one_line(reply.text or '', 80)!r}"
            raise IllegalOutput(failure.detail, where=answered) from None
        kind = self._game.node(node).answer
        if isinstance(kind, Text) and (reason := kind.why_not(answer)):
            raise IllegalOutput(reason)
        self.accept(node, p, answer)
        return answer

"""Check that a game and its prompts reveal no hidden information, in the pairs of worlds of leaks.py."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dubito.errors import DubitoError
from dubito.game.log import Position
from dubito.hooks import Flaw
from dubito.llm.prompts import Prompt, load_prompt
from dubito.plugins.gamecheck.leaks import check_leaks
from dubito.plugins.gamecheck.subject import Subject
from dubito.workshop.prompt_leaks import find_leak


@dataclass
class Audit:
    """The audit of a game and its prompts, or only of the prompts in `only`."""

    subject: Subject
    only: Sequence[Prompt] | None = None
    turns: int = 0  # requests compared in two worlds
    prompts: list[Prompt] = field(default_factory=list)  # audited prompts
    _reported: set[str] = field(default_factory=set)  # files and lines of templates

    def leaks(self, _: Subject) -> Iterator[Flaw]:
        """Yield each leak once."""
        self.prompts += self.only or ()
        if self.only is None:
            yield from self._load()
        for flaw in check_leaks(self.subject, self._compare_prompts):
            if self.only is None or flaw.file in self._reported:
                yield flaw

    def _load(self) -> Iterator[Flaw]:
        for name in self.subject.prompts if self.subject.game.has_facts else ():
            try:
                self.prompts.append(load_prompt(name, self.subject.here, self.subject.game))
            except DubitoError as error:
                yield Flaw(f"prompts/{self.subject.game.folder}/{name}", str(error))

    def _compare_prompts(self, one: Position | None, other: Position | None, sure: bool) -> Iterator[Flaw]:
        self.turns += one is not None or not self.prompts
        if one is None or other is None:
            return
        for prompt in self.prompts:
            if leak := find_leak(prompt, one, other):
                file = leak._replace(file=self.subject.shown(leak.file)).place
                if file not in self._reported:
                    self._reported.add(file)
                    yield Flaw(file, leak.sentence, sure)

"""The project's own tests of a prompt, for any prompt: each raises CheckFailed with what to read, or nothing."""

from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

from dubito.errors import DubitoError
from dubito.games.dubito.player import NODES
from dubito.games.dubito.rules import Rules
from dubito.llm.prompts import Prompt
from dubito.workshop.differ import unified
from dubito.workshop.golden import golden_files
from dubito.workshop.prefix import beginning_fault, requests, system_fault
from dubito.workshop.recorded import SHIPPED, read_folder, read_text
from dubito.workshop.sample import sample_games
from dubito.workshop.worlds import pairs

Check = tuple[str, Callable[[], None]]  # its name, and what to call


class CheckFailed(DubitoError):
    """A prompt does not what it should; the text has a line or more."""


def checks(folder: Path) -> Iterator[Check]:
    """All checks of the prompt in this folder; only that it loads, if it does not."""
    try:
        prompt = Prompt(folder)
    except DubitoError:
        yield "loads", partial(_loads, folder)
        return
    yield "loads", partial(_loads, folder)
    for node in NODES:
        yield f"renders[{node}]", partial(_renders, prompt, node)
    if (folder / "golden").is_dir():
        for node, (file, text) in zip(NODES, golden_files(prompt).items(), strict=True):
            yield f"golden[{node}]", partial(_is_golden, file, text)
    made = cache(partial(requests, prompt, sample_games()))
    yield "system_text_stays", lambda: _fail_by(system_fault(made()))
    yield "beginning_stays", lambda: _fail_by(beginning_fault(made()))
    yield "tells_nothing_hidden", partial(_tells_nothing_hidden, prompt)


def _loads(folder: Path) -> None:
    Prompt(folder)


def _renders(prompt: Prompt, node: str) -> None:
    for name, one in read_folder(SHIPPED).items():
        if one.position.node == node:
            try:
                rendered = prompt.render(one.position)
            except DubitoError as error:
                raise CheckFailed(f"{error}\nthe position is {SHIPPED / name}") from None
            if not rendered.user.strip():
                raise CheckFailed(f"the user text is empty at node {node}\nthe position is {SHIPPED / name}")


def _is_golden(file: Path, text: str) -> None:
    golden = read_text(file)
    if golden != text:
        lines = "\n".join(unified(golden, text, str(file), "what the prompt says now"))
        raise CheckFailed(f"{lines}\n\nif this was meant: dubito prompts golden {file.parent.parent}")


def _fail_by(fault: str | None) -> None:
    if fault is not None:
        raise CheckFailed(fault)


def _tells_nothing_hidden(prompt: Prompt) -> None:
    for rules, size in ((Rules(), 3), (Rules(win_rule="contested"), 5)):
        for here, there in pairs(rules, size, deal=size):
            old, new = str(prompt.render(here)), str(prompt.render(there))
            if old != new:
                lines = "\n".join(unified(old, new, "this world", "one with other hidden cards"))
                raise CheckFailed(f"the text depends on cards that the seat has not seen\n{lines}")

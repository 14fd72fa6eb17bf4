"""The project's own tests of a prompt, for any prompt: each raises CheckFailed with what to read, or nothing."""

from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

from dubito.errors import DubitoError
from dubito.game import Spec
from dubito.game_registry import DUBITO, find_game, find_games
from dubito.llm.prompts import Prompt
from dubito.workshop.craft import craft_of, node_names
from dubito.workshop.differ import unified
from dubito.workshop.golden import golden_files
from dubito.workshop.prefix import beginning_fault, requests, system_fault
from dubito.workshop.recorded import read_folder, read_text, shipped
from dubito.workshop.sample import sample_games

Check = tuple[str, Callable[[], None]]  # its name, and what to call


class CheckFailed(DubitoError):
    """A prompt does not what it should; the text has a line or more."""


def checks(folder: Path) -> Iterator[Check]:
    """All checks of the prompt in this folder; only that it loads, if it does not."""
    game = game_of(folder)
    try:
        prompt = Prompt(folder, game=game)
    except DubitoError:
        yield "loads", partial(_loads, folder, game)
        return
    nodes = node_names(game)
    yield "loads", partial(_loads, folder, game)
    for node in nodes:
        yield f"renders[{node}]", partial(_renders, prompt, node)
    if (folder / "golden").is_dir():
        for node, (file, text) in zip(nodes, golden_files(prompt).items(), strict=True):
            yield f"golden[{node}]", partial(_is_golden, file, text)
    made = cache(partial(requests, prompt, sample_games(game)))
    yield "system_text_stays", lambda: _fail_by(system_fault(made()))
    yield "beginning_stays", lambda: _fail_by(beginning_fault(made()))
    yield "tells_nothing_hidden", partial(_tells_nothing_hidden, prompt)


def game_of(folder: Path) -> Spec:
    """The game of a prompt: that after which the folder is named in which its own lies, else Dubito."""
    here, name = Path.cwd(), folder.resolve().parent.name
    return find_game(name if name in {game.name for game in find_games(here)} else DUBITO, here)


def _loads(folder: Path, game: Spec) -> None:
    Prompt(folder, game=game)


def _renders(prompt: Prompt, node: str) -> None:
    there = shipped(prompt.game)
    for name, one in read_folder(there, prompt.game).items():
        if one.position.node == node:
            try:
                rendered = prompt.render(one.position)
            except DubitoError as error:
                raise CheckFailed(f"{error}\nthe position is {there / name}") from None
            if not rendered.user.strip():
                raise CheckFailed(f"the user text is empty at node {node}\nthe position is {there / name}")


def _is_golden(file: Path, text: str) -> None:
    golden = read_text(file)
    if golden != text:
        lines = "\n".join(unified(golden, text, str(file), "what the prompt says now"))
        raise CheckFailed(f"{lines}\n\nif this was meant: dubito prompts golden {file.parent.parent}")


def _fail_by(fault: str | None) -> None:
    if fault is not None:
        raise CheckFailed(fault)


def _tells_nothing_hidden(prompt: Prompt) -> None:
    for here, there in craft_of(prompt.game).second_worlds():
        old, new = str(prompt.render(here)), str(prompt.render(there))
        if old != new:
            lines = "\n".join(unified(old, new, "this world", "one with other hidden cards"))
            raise CheckFailed(f"the text depends on cards that the seat has not seen\n{lines}")

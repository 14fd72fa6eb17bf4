"""Prompt tests that work for any prompt. Each check raises CheckFailed if it fails."""

from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from itertools import chain
from pathlib import Path

from dubito.commands import build_command
from dubito.errors import DubitoError
from dubito.files import read_text
from dubito.game import Game
from dubito.game.log import Position
from dubito.llm.prompts import Prompt
from dubito.workshop.lint import find_beginning_fault, find_system_fault, render_requests, unified_diff
from dubito.workshop.prompt_leaks import find_leak
from dubito.workshop.recordings import read_folder, sample_games, shipped_positions

Check = tuple[str, Callable[[], object]]  # a check's name and its function


class CheckFailed(DubitoError):
    """Raised if a check of a prompt fails, with a message of one or more lines."""


def prompt_checks(folder: Path, game: Game | None = None) -> Iterator[Check]:
    """Yield all checks for the prompt in this folder, or only the first one if it cannot be loaded.

    The default game is Dubito. Leaks are checked if the game has `world_pairs`.
    """
    load = partial(Prompt, folder, game=game)
    yield "loads", load
    try:
        prompt = load()
    except DubitoError:
        return
    game = prompt.game
    nodes = [node.name for node in game.nodes]
    examples = cache(lambda: [*_example_positions(game, prompt.folder.parent)])
    for node in nodes:
        yield f"renders[{node}]", partial(_check_renders, prompt, node, examples)
    if (folder / "golden").is_dir():
        for node, (file, text) in zip(nodes, golden_files(prompt).items(), strict=True):
            yield f"golden[{node}]", partial(_check_golden, file, text)
    rendered = cache(lambda: render_requests(prompt, sample_games(game)))
    yield "system_text_stays", lambda: _raise_if_faulty(find_system_fault(rendered()))
    yield "beginning_stays", lambda: _raise_if_faulty(find_beginning_fault(rendered()))
    if (worlds := game.workshop.world_pairs()) is not None:
        yield "tells_nothing_hidden", partial(_check_no_leak, prompt, worlds)


def _check_renders(prompt: Prompt, node: str, examples: Callable[[], list[tuple[Position, str]]]) -> None:
    for position, where in examples():
        if position.node == node:
            try:
                rendered = prompt.render(position)
            except DubitoError as error:
                raise CheckFailed(f"{error}\nthe position is {where}") from None
            if not rendered.user.strip():
                raise CheckFailed(f"the user text is empty at node {node}\nthe position is {where}")


def _example_positions(game: Game, prompts: Path) -> Iterator[tuple[Position, str]]:
    """Yield example positions and their source: the game's files, or otherwise the sample games."""
    beside = prompts / "positions"
    folder = beside if beside.is_dir() else shipped_positions(game)
    if folder.is_dir():
        yield from ((recorded.position, str(folder / name)) for name, recorded in read_folder(folder, game).items())
    else:
        yield from ((recorded.position, recorded.text) for recorded in chain.from_iterable(sample_games(game)))


def golden_files(prompt: Prompt) -> dict[Path, str]:
    example = prompt.game.facts.example_position
    names = [node.name for node in prompt.game.nodes]
    return {prompt.folder / "golden" / f"{name}.txt": f"{prompt.render(example(name))}\n" for name in names}


def _check_golden(file: Path, text: str) -> None:
    golden = read_text(file)
    if golden != text:
        lines = "\n".join(unified_diff(golden, text, str(file), "the prompt now"))
        raise CheckFailed(
            f"{lines}\n\nif this is intended, run {build_command('prompts', 'golden', file.parent.parent)}"
        )


def _raise_if_faulty(fault: str | None) -> None:
    if fault is not None:
        raise CheckFailed(fault)


def _check_no_leak(prompt: Prompt, worlds: Iterable[tuple[Position, Position]]) -> None:
    for here, there in worlds:
        if leak := find_leak(prompt, here, there):
            old, new = str(prompt.render(here)), str(prompt.render(there))
            lines = "\n".join(unified_diff(old, new, "this world", "a world with different hidden cards"))
            raise CheckFailed(f"{leak}\n{lines}")

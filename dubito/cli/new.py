"""`dubito new`: write a working start of a bot, prompt, game or plugin. It never overwrites anything."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from keyword import iskeyword
from pathlib import Path
from typing import Final

import click

from dubito.cli.main import Listing
from dubito.cli.options import game_option, game_words
from dubito.cli.output import say
from dubito.commands import build_command
from dubito.errors import RunStopped, UsageError, one_line
from dubito.files import describe_os_error, read_text
from dubito.game import Game
from dubito.game.find import DUBITO, find_bots, game_names, manual_folders
from dubito.llm.prompts import load_prompt, prompt_root, prompt_roots
from dubito.packages import own_folder

_MAX_NAME: Final = 60
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_LOWER_WORD: Final = re.compile(r"[a-z][a-z0-9_]*")
_DASHED_WORD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_NEW_WORD: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PLAIN: Final = "plain"  # the prompt that a new one starts from
_GAME: Final = "kuhn"  # the example that a new game starts from
_PLUGIN: Final = {"pennies", "payoffs"}  # the names of the example plugin's game and command


@click.group(cls=Listing)
def new() -> None:
    """Write a working start of a bot, prompt, game or plugin."""


@new.command()
@click.argument("name")
@game_option
def bot(name: str, game: Game) -> None:
    """Write a bot into `bots/manual`, to be changed.

    NAME is the bot's class, such as MyBot, or its file, such as my_bot.
    """
    _check_name("bot", name, _WORD, "letters, digits and underscores, such as MyBot")
    class_name = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
    stem = "_".join(filter(None, _NEW_WORD.sub("_", name).lower().split("_")))
    here = Path.cwd()
    registry = find_bots(here, game.name)
    if class_name in registry.bots or any(broken.has_name(class_name) for broken in registry.broken):
        raise UsageError(f"{game.name} already has a bot named {class_name}", hint="choose another name")
    folders = [*manual_folders(game, here)]
    templates = [file for folder in folders if (file := folder / "_template.py").is_file()]
    if not templates:
        raise UsageError(f"{game.name} has no template for bots", hint="copy one of its bots instead")
    file = Path("bots", "manual", *([] if game.name == DUBITO else [game.folder]), f"{stem}.py")
    text = read_text(templates[-1]).replace("my_bot", stem).replace("MyBot", class_name)
    _write({file: text})
    others = [other.name for other in registry.hand_written()][:3]
    _suggest(build_command("bots", "check", class_name, *game_words(game)))
    if others:
        _suggest(build_command("run", *game_words(game), "--bots", ",".join([class_name, *others]), "--games", 100))


@new.command()
@click.argument("name")
@game_option
def prompt(name: str, game: Game) -> None:
    """Write a prompt into `prompts`, to be changed. It starts as a copy of the prompt `plain`."""
    _check_name("prompt", name, _DASHED_WORD, "letters, digits, dashes and underscores, such as my-prompt")
    here = Path.cwd()
    if taken := next((root / name for root in prompt_roots(here, game) if os.path.lexists(root / name)), None):
        raise UsageError(f"{one_line(str(taken))} already exists", hint="choose another name")
    source = load_prompt(_PLAIN, here, game).folder
    folder = prompt_root(Path("prompts"), game) / name
    _write({folder / file.name: read_text(file) for file in sorted(source.iterdir()) if file.is_file()}, [folder])
    _suggest(build_command("prompts", "show", name, *game_words(game)))
    _suggest(build_command("prompts", "diff", _PLAIN, name, *game_words(game)))


@new.command("game")
@click.argument("name")
def new_game(name: str) -> None:
    """Write a game into `games`, with bots and a prompt. It starts as Kuhn poker."""
    _check_game_name("game", name)
    source = own_folder("examples") / "games" / _GAME
    files = {}
    for part in ("games", "bots/manual", "prompts"):
        for path in _source_files(source / part / _GAME):
            files[Path(part, name, path.relative_to(source / part / _GAME))] = _rename(read_text(path), {_GAME}, name)
    _write(files, [Path(folder, name) for folder in ("games", "bots/manual", "prompts")])
    _suggest(build_command("games", "check", name))
    _suggest(build_command("run", "--game", name, "--games", 1000))


@new.command()
@click.argument("name")
def plugin(name: str) -> None:
    """Write a plugin into a folder of this name: a package with a command and a game."""
    _check_game_name("plugin", name)
    source = own_folder("examples") / "plugin"
    folder = Path(name)
    files = {
        folder / _rename(path.relative_to(source).as_posix(), _PLUGIN, name): _rename(read_text(path), _PLUGIN, name)
        for path in _source_files(source)
    }
    _write(files, [folder])
    say(f"install it: pip install ./{name}")
    _suggest(build_command(name))


def _check_name(kind: str, name: str, form: re.Pattern[str], wanted: str) -> None:
    if not form.fullmatch(name) or len(name) > _MAX_NAME or iskeyword(name.lower()):
        raise UsageError(f"{one_line(repr(name), 80)} cannot be the name of a {kind}", hint=f"use {wanted}")


def _check_game_name(kind: str, name: str) -> None:
    _check_name(kind, name, _LOWER_WORD, "lower-case letters, digits and underscores, such as my_game")
    if name in game_names(Path.cwd()):
        raise UsageError(f"there already is a game named {name}", hint="choose another name")


def _source_files(folder: Path) -> Iterable[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts)


def _rename(text: str, old: Iterable[str], new_name: str) -> str:
    """Replace names in a text: `kuhn` by the new name, and `Kuhn` in classes by the same name in upper case."""
    title = "".join(part.capitalize() for part in new_name.split("_"))
    for name in old:
        text = text.replace(name, new_name).replace(name.capitalize(), title).replace(name.upper(), new_name.upper())
    return text


def _write(files: Mapping[Path, str], folders: Sequence[Path] = ()) -> None:
    """Write new files, and print the name of each. `folders` must not exist either. Raises UsageError or RunStopped."""
    for path in [*folders, *files]:
        if os.path.lexists(path):
            raise UsageError(f"{one_line(str(path))} already exists", hint="choose another name")
    for path, text in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8", newline="\n") as file:
                file.write(text)
        except OSError as error:
            raise RunStopped(f"cannot write {one_line(str(path))}: {describe_os_error(error)}") from None
        say(f"written: {path}")


def _suggest(command: str) -> None:
    say(f"try: {command}")

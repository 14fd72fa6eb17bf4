"""Cassettes: files with a model's replies at recorded positions, to test prompts without a key or a network.

Files use the format of vcrpy (https://vcrpy.readthedocs.io, version 1), so other tools can play them. There are two
additions: each interaction has a `draw`, and `dubito` contains the prompt, the model settings and the positions. Files
contain no keys: the only header is `content-type`, and bodies come from the cache, which removes keys.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import yaml
from pydantic import ConfigDict, ValidationError

from dubito.commands import build_command
from dubito.errors import DubitoError, RunStopped, UsageError, one_line
from dubito.experiment.call_options import CallOptions
from dubito.experiment.model_players import model_words
from dubito.experiment.progress import ModelProgress
from dubito.files import CheckedModel, check_format, read_text
from dubito.game import Game
from dubito.game.find import DUBITO, find_game
from dubito.llm.cache import CacheEntry, ReplyCache
from dubito.llm.prompts import load_prompt
from dubito.llm.recording import differing_parts, find_nearest
from dubito.llm.request import RawReply, Request, canonical_json
from dubito.llm.settings import build_account
from dubito.model_settings import ModelSettings
from dubito.packages import games_path_words
from dubito.store.model_log import ModelLog
from dubito.store.run_db import RunDb
from dubito.workshop.recordings import RecordedPosition, parse_position, read_folder, write_files
from dubito.workshop.trial import ScoreRow, Trial, TrialEntry, TrialOptions, find_provenance, run_trial, score_rows

FORMAT: Final = 1
_VCRPY_FORMAT: Final = 1
_LOADER: Final = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
_DUMPER: Final = yaml.CSafeDumper if yaml.__with_libyaml__ else yaml.SafeDumper
_JSON: Final = {"content-type": ["application/json"]}


class PromptChanged(DubitoError):
    """Raised if a cassette has no reply to a request because the prompt or the code that renders it has changed."""


class _Description(CheckedModel):
    """The content of the `dubito` part of a cassette."""

    model_config = ConfigDict(strict=False)

    format: int
    game: str
    prompt: str
    settings: dict[str, object]
    positions: list[dict[str, object]]
    # The folder of the positions: null for the game's own, empty if they come from a run.
    positions_from: str | None = None


@dataclass(frozen=True, slots=True)
class Cassette:
    """The replies of a model to one prompt at some positions."""

    prompt: str
    settings: ModelSettings
    positions: Mapping[str, RecordedPosition]
    replies: Sequence[CacheEntry]
    positions_from: str | None = None

    @property
    def game(self) -> Game:
        (game,) = {one.game for one in self.positions.values()}
        return game

    def record_command(self, prompt: str, file: Path) -> str:
        """Return the command that records this cassette again, with the same model, server, game and positions."""
        model, flags = (words := model_words(self.settings))[:2], words[2:]
        words = ["prompts", "test", prompt, *model, "--record", str(file), *flags]
        if self.game.name != DUBITO:
            words += ["--game", self.game.name]
        if self.positions_from is not None:
            words += ["--positions", self.positions_from if Path(self.positions_from or file).is_dir() else str(file)]
        return build_command(*words, *games_path_words())


def save_cassette(cassette: Cassette, file: Path) -> None:
    """Write a cassette. Raises UsageError if it has no replies or the file cannot be written."""
    if not cassette.replies:
        raise UsageError(f"no replies to write to {one_line(str(file))} because every question failed")
    interactions = []
    for reply in cassette.replies:
        fields = json.loads(reply.request)
        host = reply.server if "://" in reply.server else f"http://{reply.server.partition('?')[0]}"
        request = {
            "method": "POST",
            "uri": f"{host}{fields['path']}",
            "headers": _JSON,
            "body": canonical_json(fields["body"]),
        }
        status = {"code": int(HTTPStatus.OK), "message": "OK"}
        response = {"status": status, "headers": _JSON, "body": {"string": reply.received.raw}}
        own = {"protocol": fields["protocol"], "path": fields["path"], "server": reply.server, "draw": reply.draw}
        interactions.append({"request": request, "response": response, **own})
    content = {
        "version": _VCRPY_FORMAT,
        "dubito": {
            "format": FORMAT,
            "game": cassette.game.name,
            "prompt": cassette.prompt,
            "settings": cassette.settings.model_dump(exclude_defaults=True),
            "positions": [json.loads(one.text) for one in cassette.positions.values()],
            "positions_from": cassette.positions_from,
        },
        "interactions": interactions,
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    write_files({file: yaml.dump(content, Dumper=_DUMPER, sort_keys=False, allow_unicode=True, width=120)})


def load_cassette(file: Path, home: Path) -> Cassette:
    """Read a cassette.

    Its game is looked up starting in the `home` folder. Raises UsageError if the file is not a cassette of this format.
    """
    shown = one_line(str(file), 200)
    try:
        content = yaml.load(read_text(file), _LOADER)  # noqa: S506, which loads no more than `safe_load`
    except yaml.YAMLError:
        content = None
    if not isinstance(content, dict) or not isinstance(content.get("dubito"), dict):
        raise UsageError(f"{shown} is not a prompt's cassette", hint="`dubito prompts test --record` writes one")
    check_format(content["dubito"].get("format"), FORMAT, shown)
    try:
        described = _Description.model_validate(content["dubito"])
        replies = []
        for one in content["interactions"]:
            request = Request(one["protocol"], one["path"], json.loads(one["request"]["body"]))
            received = RawReply(HTTPStatus.OK, str(one["response"]["body"]["string"]))
            replies.append(CacheEntry(str(one["server"]), request.text, str(one["draw"]), received))
        settings = ModelSettings.model_validate(described.settings)
    except (ValidationError, LookupError, TypeError, ValueError, AttributeError):
        raise UsageError(f"{shown} is damaged", hint="record it again") from None
    game = find_game(described.game, home)
    positions = [parse_position(json.dumps(one), game) for one in described.positions]
    named = {one.file_name: one for one in positions}
    return Cassette(described.prompt, settings, named, replies, described.positions_from)


def read_positions(path: Path, game: Game, home: Path) -> dict[str, RecordedPosition]:
    """Read the positions of a folder or of a cassette. Raises UsageError."""
    if not path.is_file():
        return read_folder(path, game)
    cassette = load_cassette(path, home)
    if cassette.game.name != game.name:
        raise UsageError(f"the positions in {one_line(str(path))} are of {cassette.game.name}, not of {game.name}")
    return dict(cassette.positions)


def record_trial(entry: TrialEntry, trial: Trial, positions_from: Path | None) -> Cassette:
    """Return the replies of a trial with one prompt. Positions without an answer from the model are omitted."""
    with RunDb.open(trial.folder / "run.db") as db:
        answers = ((number, answer.recorded) for number, answer in enumerate(trial.answers[0]))
        positions, replies = _collect(ModelLog(db), entry.name, answers, len(trial.answers[0]))
    folder = None if positions_from is None else str(positions_from)
    return Cassette(entry.name, entry.settings, positions, replies, folder)


def record_run(
    log: ModelLog, recorded: Sequence[RecordedPosition], player: str, settings: ModelSettings, count: int
) -> Cassette:
    """Return a model player's stored replies at up to `count` of these positions of a run."""
    positions, replies = _collect(log, player, ((find_provenance(one).game, one) for one in recorded), count)
    return Cassette(settings.prompt, settings, positions, replies, positions_from="")


def _collect(
    log: ModelLog, player: str, asked: Iterable[tuple[int, RecordedPosition]], count: int
) -> tuple[dict[str, RecordedPosition], list[CacheEntry]]:
    """Return up to `count` positions with their replies. `asked` contains the game of each position in the log."""
    positions, replies = dict[str, RecordedPosition](), list[CacheEntry]()
    for game, one in asked:
        place = find_provenance(one)
        logged = log.replies_at(player, game, place.seat, place.decision) if len(positions) < count else []
        if logged:
            positions[one.file_name] = one
            replies += [
                CacheEntry(request.server, request.text, request.draw, RawReply(HTTPStatus.OK, raw))
                for request, raw in logged
            ]
    return positions, replies


def play_cassette(cassette: Cassette, entry: TrialEntry, options: TrialOptions, file: Path) -> Trial:
    """Ask a prompt's questions, using recorded replies instead of a model.

    Raises PromptChanged, with the first difference, if a request has no reply in the cassette.
    """
    with TemporaryDirectory() as folder:
        cache = Path(folder, "cache")
        server = build_account(cassette.settings).server
        with closing(ReplyCache(cache)) as filled:
            for reply in cassette.replies:
                fields = json.loads(reply.request)
                request = Request(fields["protocol"], fields["path"], fields["body"])
                filled.get_or_ask(server, request, reply.draw, partial(_received, reply))
        calls = replace(options.calls, cache=cache, offline=True, preflight=False, in_flight=1)
        trial = Path(folder, "trial")
        try:
            return run_trial([entry], cassette.positions, trial, replace(options, calls=calls))
        except RunStopped:
            difference = _first_difference(cassette, trial)
            # Something else stopped the trial, such as a full disk.
            if difference is None:
                raise
            raise PromptChanged(
                f"{one_line(str(file), 200)} has no reply to a request of {one_line(entry.name)}: {difference}",
                hint=f"if the change is intended, record it again: {cassette.record_command(entry.name, file)}",
            ) from None


def score_prompt(name: str, file: Path, home: Path) -> ScoreRow:
    """Test a prompt with a cassette and return its figures over all positions.

    Raises UsageError if the prompt or the cassette cannot be read, and PromptChanged if the requests have changed.
    """
    cassette = load_cassette(file, home)
    calls = CallOptions(in_flight=1, cache=home, offline=True, preflight=False)
    options = TrialOptions(calls, ModelProgress(), lambda done: None)
    trial = play_cassette(cassette, load_entry(cassette, name, home), options, file)
    return score_rows(trial.answers[0], None)[-1]


def load_entry(cassette: Cassette, name: str, home: Path) -> TrialEntry:
    """Return a prompt with a cassette's settings."""
    return TrialEntry(name, load_prompt(name, home, cassette.game).for_api(cassette.settings.api), cassette.settings)


def _received(reply: CacheEntry) -> RawReply:
    return reply.received


def _first_difference(cassette: Cassette, folder: Path) -> str | None:
    """Return how a request without a reply differs from the most similar one in the cassette, or None."""
    with RunDb.open(folder / "run.db") as db:
        asked = ModelLog(db).find_unanswered()
    similar = find_nearest(cassette.replies, asked.server, asked.text, asked.draw) if asked else None
    if asked is None or similar is None:
        return None
    first = next(iter(differing_parts(asked.server, asked.text, asked.draw, similar)), None)
    return f"{first.part}: now {first.wanted!r}, recorded {first.stored!r}" if first else None

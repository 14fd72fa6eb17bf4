"""The tables of a server: each is a file, written before its answer leaves, and played again when it is needed."""

import json
import secrets
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

from pydantic import Field
from starlette.exceptions import HTTPException

from dubito.errors import RunStopped, UsageError
from dubito.game_data import TurnOutput
from dubito.human import SEEDS, as_sentence, opponent, set_up
from dubito.record import dump
from dubito.registry import Bot, Registry
from dubito.rules import MAX_PLAYERS, MIN_PLAYERS, Rules, WinRule
from dubito.store.folder import write_whole
from dubito.web.kept import Kept, Live, read, replayed, view_of

LIFE: Final = 7 * 24 * 3600  # seconds after its last move that a table is kept
MOST_TABLES: Final = 100
_STRICT: Final[dict[str, object]] = {"extra": "forbid", "strict": True}


@dataclass(frozen=True, slots=True)
class NewTable:
    """What a page asks for: the bots, the rules, and what it does not leave to chance."""

    __pydantic_config__: ClassVar[dict[str, object]] = _STRICT

    bots: Annotated[list[str], Field(min_length=MIN_PLAYERS - 1, max_length=MAX_PLAYERS - 1)]
    jokers: int = 2
    win_rule: WinRule = "immediate"
    seat: int | None = None
    seed: Annotated[int, Field(ge=0, lt=SEEDS)] | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """The person's move. `turn` is how many turns he has seen, so that no move is made twice."""

    __pydantic_config__: ClassVar[dict[str, object]] = _STRICT

    turn: int
    doubt: bool = False
    cards: list[int] | None = None
    number: int | None = None


class Tables:
    """All tables of a server, by the secret that their person's browser holds."""

    def __init__(self, folder: Path, registry: Registry, clock: Callable[[], float], most: int = MOST_TABLES) -> None:
        """`folder` takes finished games, its `running` the others. Raises UsageError if it cannot be made."""
        self.folder = folder
        self._running = folder / "running"
        self._registry, self._clock, self._most = registry, clock, most
        self._lock = threading.Lock()
        self._live: dict[Path, tuple[str, Live]] = {}  # with the file's text that it belongs to
        try:
            self._running.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot keep games in {folder}: {error.strerror}; choose another --games") from None

    def bots(self) -> list[Bot]:
        """The bots that may sit here, by name: hand-written, and the same when played again."""
        bots = sorted(self._registry.bots.items())
        return [bot for _, bot in bots if not bot.cls.is_model and bot.repeatable]

    def open(self, asked: NewTable, old: str | None) -> tuple[str, dict[str, Any]]:
        """Seat a person at a new table, which takes the place of his old one: its secret, and what he sees."""
        for name in asked.bots:
            if not opponent(self._registry, name).repeatable:
                raise UsageError(f"{name} draws from randomness that no seed reaches, so no game of it can be kept")
        now = self._clock()
        setup = set_up(asked.bots, Rules(asked.jokers, asked.win_rule), asked.seat, asked.seed)
        with self._lock:
            taken = self._sweep(now)
            mine = self._path(old or "")
            if len(taken - {mine}) >= self._most:
                raise HTTPException(503, f"All {self._most} tables are taken: finish a game, or come back later.")
            secret = secrets.token_urlsafe(24)
            live = Live(setup, self._registry)
            live.until_asked()
            kept = self._keep(self._path(secret), Kept(setup, now, now), live)
            self._drop(mine)
            return secret, view_of(kept, live, 0)

    def view(self, secret: str | None, since: int = 0) -> dict[str, Any]:
        """What the person sees: the frames from number `since` on."""
        with self._lock:
            _, kept, live = self._find(secret)
            return view_of(kept, live, since)

    def has(self, secret: str | None) -> bool:
        """Whether a game goes on there."""
        with self._lock, suppress(HTTPException):
            return self._find(secret)[1].record is None
        return False

    def move(self, secret: str | None, move: Move) -> dict[str, Any]:
        """Make the person's move and the bots' after it: the new frames. Nothing changes if it is refused."""
        with self._lock:
            path, kept, live = self._find(secret)
            if live.sitting.game.over:
                raise HTTPException(409, "The game is over.")
            seen = len(kept.outputs)
            if move.turn != seen:
                raise HTTPException(409, f"This move is for turn {move.turn}, and {seen} turns have been played.")
            output = TurnOutput(move.doubt, move.number, move.cards)
            reason = live.sitting.why_not(output)
            if reason is not None:
                raise HTTPException(400, as_sentence(reason))
            del self._live[path]  # until the file agrees with it again
            live.step(output)
            live.until_asked()
            kept = self._keep(path, replace(kept, touched=self._clock()), live)
            return view_of(kept, live, seen + 1)

    def _path(self, secret: str) -> Path:
        return self._running / f"{sha256(secret.encode('utf-8', 'replace')).hexdigest()}.json"

    def _find(self, secret: str | None) -> tuple[Path, Kept, Live]:
        path = self._path(secret or "")
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise HTTPException(404, "You have no game here: choose your bots first.") from None
        except (OSError, UnicodeDecodeError):
            text = ""  # is read as damaged
        kept = read(text)
        if kept.touched + LIFE < self._clock():
            self._drop(path)
            raise HTTPException(404, "Your game was left too long and is gone: choose your bots again.")
        known, live = self._live.get(path, ("", None))
        if live is None or known != text:
            live = replayed(kept, self._registry)
            self._live[path] = text, live
        return path, kept, live

    def _keep(self, path: Path, kept: Kept, live: Live) -> Kept:
        """Write the table, and a finished game's record before it."""
        sitting = live.sitting
        outputs = list(sitting.recorder.outputs)
        record = None
        try:
            if sitting.game.over:
                made = datetime.fromtimestamp(kept.made, UTC)
                record = f"{made:%Y-%m-%d-%H%M%S}-{path.stem[:6]}"
                write_whole(self.folder / f"{record}.json", dump(sitting.record()))
            kept = replace(kept, outputs=outputs, record=record)
            text = json.dumps(asdict(kept))
            write_whole(path, text)
        except RunStopped as error:
            raise HTTPException(507, f"Nothing was played, since the game cannot be kept: {error}.") from None
        self._live[path] = text, live
        return kept

    def _sweep(self, now: float) -> set[Path]:
        """Drop the tables that were left too long; the others. A file that cannot be read is left alone."""
        taken = set()
        for path in self._running.glob("*.json"):
            with suppress(OSError, UnicodeDecodeError, HTTPException):
                if read(path.read_text(encoding="utf-8")).touched + LIFE < now:
                    self._drop(path)
                else:
                    taken.add(path)
        return taken

    def _drop(self, path: Path) -> None:
        self._live.pop(path, None)
        with suppress(OSError):
            path.unlink()

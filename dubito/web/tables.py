"""The tables of a server: each is a file, written before its answer leaves, and played again when it is needed."""

import json
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field, ValidationError
from starlette.exceptions import HTTPException

from dubito.errors import RunStopped, UsageError, one_line, suggestion
from dubito.game import Spec
from dubito.game.find import DUBITO
from dubito.game.record import Strict, first_fault, records_of
from dubito.show.person import SEEDS, Opponent, Opponents, as_sentence, set_up
from dubito.store.folder import write_whole
from dubito.web.summaries import MADE, Summaries
from dubito.web.table_file import Live, TableFile, read, replayed

LIFE: Final = 7 * 24 * 3600  # seconds after its last move that a table is kept
MOST_TABLES: Final = 100
MOST_BOTS: Final = 31  # at one table
_PATIENCE: Final = 0.5  # seconds that an answer waits for the bots; a page then asks again
_GRACE: Final = 5.0  # seconds that the end waits for the models' answers


@dataclass(frozen=True, slots=True)
class NewTable(Strict):
    """What a page asks for: the game, the bots, its rules, and what it does not leave to chance."""

    bots: Annotated[list[str], Field(min_length=1, max_length=MOST_BOTS)]
    game: str = DUBITO
    rules: dict[str, Any] = field(default_factory=dict)
    seat: int | None = None
    seed: Annotated[int, Field(ge=0, lt=SEEDS)] | None = None


@dataclass(frozen=True, slots=True)
class Move(Strict):
    """The person's move. `turn` is how many moves they have seen, so that no move is made twice.

    `table` is which of their tables it is for, where that is said: another page of theirs may have opened a new
    one since. `answer` is the move, as its game's page sends it.
    """

    turn: int
    answer: Any
    table: int | None = None


class Tables:
    """All tables of a server, by the secret that their person's browser holds."""

    def __init__(
        self, folder: Path, opponents: Mapping[str, Opponents], clock: Callable[[], float], most: int = MOST_TABLES
    ) -> None:
        """`opponents` are those of each game; the first game is the one that is offered first.

        `folder` takes finished games, its `running` the others. Raises UsageError if it cannot be made.
        """
        self.folder = folder
        self._running = folder / "running"
        self._opponents, self._clock, self._most = opponents, clock, most
        self._lock = threading.Lock()
        self._live: dict[Path, tuple[str, Live]] = {}  # with the file's text that it belongs to
        self._playing: set[threading.Thread] = set()
        self._number = 0  # of the last game
        self.summaries = Summaries(folder)
        try:
            self._running.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot keep games in {folder}: {error.strerror}; choose another --games") from None

    @property
    def games(self) -> list[Spec]:
        """What may be played here."""
        return [opponents.game for opponents in self._opponents.values()]

    def game(self, name: str) -> Spec:
        """The game of that name; raises UsageError if it is not played here."""
        return self._those_of(name).game

    def choices(self, game: str) -> list[Opponent]:
        """Who may sit down to a game here."""
        return self._those_of(game).choices()

    def _those_of(self, game: str) -> Opponents:
        if game not in self._opponents:
            raise UsageError(f"no game {one_line(repr(game), 60)} is played here: {suggestion(game, self._opponents)}")
        return self._opponents[game]

    def open(self, asked: NewTable, old: str | None) -> tuple[str, dict[str, Any]]:
        """Seat a person at a new table, which takes the place of their old one: its secret, and what they see."""
        opponents = self._those_of(asked.game)
        opponents.check(asked.bots)
        now, game = self._clock(), opponents.game
        try:
            rules = game.rules(**asked.rules)
        except ValidationError as error:
            raise UsageError(f"rules: {first_fault(error, 'the rules')}") from None
        setup = set_up(game, asked.bots, rules, asked.seat, asked.seed)
        with self._lock:
            taken = self._sweep(now)
            mine = self._path(old or "")
            if len(taken - {mine}) >= self._most:
                raise HTTPException(503, f"All {self._most} tables are taken: finish a game, or come back later.")
            secret = secrets.token_urlsafe(24)
            self._number = max(self._number + 1, int(now * 1000))
            live = Live(TableFile(setup, now, now, number=self._number, chosen=asked.seat is not None), opponents)
            path = self._path(secret)
            self._keep(path, live)
            self._drop(mine)
            self._go_on(path, live)
        return secret, self._seen(live, 0)

    def rematch(self, secret: str | None) -> tuple[str, dict[str, Any]]:
        """Their game, which is over, once more with new cards; the seat is by chance again, unless it was chosen."""
        with self._lock:
            kept = self._read(secret)[2]
        if kept.record is None:
            raise HTTPException(409, "Your game is not over yet.")
        setup = kept.setup
        return self.open(NewTable(setup.bots, setup.game, setup.rules, setup.seat if kept.chosen else None), secret)

    def view(self, secret: str | None, since: int = 0) -> dict[str, Any]:
        """What the person sees: the frames from number `since` on."""
        with self._lock:
            _, live = self._find(secret)
        return self._seen(live, since)

    def plays(self, secret: str | None) -> Spec | None:
        """The game at the person's table, if there is one."""
        with self._lock, suppress(HTTPException, UsageError):
            return self.game(self._read(secret)[2].setup.game)
        return None

    def has(self, secret: str | None) -> bool:
        """Whether a game goes on there."""
        with self._lock, suppress(HTTPException):
            return self._read(secret)[2].record is None
        return False

    def move(self, secret: str | None, move: Move) -> dict[str, Any]:
        """Make the person's move, and let the bots make theirs: the new frames. Nothing changes if it is refused."""
        with self._lock:
            path, live = self._find(secret)
            if move.table not in (None, live.kept.number):
                raise HTTPException(409, "This move is for a game that you have given up for another one.")
            if live.sitting.game.over:
                raise HTTPException(409, "The game is over.")
            seen = len(live.frames) - 1
            if move.turn != seen:
                raise HTTPException(409, f"This move is for turn {move.turn}, and {seen} turns have been played.")
            if not (live.rests and live.sitting.asked):
                raise HTTPException(409, "It is not your turn.")
            sitting = live.sitting
            output = sitting.person.answered(move.answer, sitting.game, sitting.me)
            reason = sitting.why_not(output)
            if reason is not None:
                raise HTTPException(400, as_sentence(reason))
            del self._live[path]  # until the file agrees with it again
            live.step(output)
            live.kept = replace(live.kept, touched=self._clock())
            self._keep(path, live)
            self._go_on(path, live)
        return self._seen(live, seen + 1)

    def again(self, secret: str | None) -> dict[str, Any]:
        """Let bots that could not go on try again; returns all that the person sees."""
        with self._lock:
            path, live = self._find(secret)
            if not live.rests or live.trouble is None:
                raise HTTPException(409, "Nothing is in the way of this game.")
            game = live.kept.setup.game
            self._forget(path)  # the bots were stopped within a turn; played again from the file, they are before it
            self._opponents[game].try_again()
            _, live = self._find(secret)
        return self._seen(live, 0)

    def close(self) -> None:
        """Let nobody begin another turn, and wait a moment for the turns under way."""
        with self._lock:
            for path in list(self._live):
                self._forget(path)
            playing = list(self._playing)
        end = time.monotonic() + _GRACE
        for thread in playing:
            thread.join(max(0.0, end - time.monotonic()))

    def _path(self, secret: str) -> Path:
        return self._running / f"{sha256(secret.encode('utf-8', 'replace')).hexdigest()}.json"

    def _read(self, secret: str | None) -> tuple[Path, str, TableFile]:
        """The file of a table, its text, and what it says."""
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
        return path, text, kept

    def _find(self, secret: str | None) -> tuple[Path, Live]:
        """The table; if it is not in memory, played again from its file, and then resumed."""
        path, text, kept = self._read(secret)
        known, live = self._live.get(path, ("", None))
        if live is None or known != text:
            self._forget(path)
            live = replayed(kept, self._opponents)
            self._live[path] = text, live
            self._go_on(path, live)
        return path, live

    def _go_on(self, path: Path, live: Live) -> None:
        """Let the bots play, in a thread of their own: models may think for minutes."""
        if live.sitting.asked or live.sitting.game.over:
            live.rest()
            return
        thread = threading.Thread(target=self._play, args=(path, live), daemon=True)
        self._playing.add(thread)
        thread.start()

    def _play(self, path: Path, live: Live) -> None:
        try:
            live.until_asked()
        finally:
            with self._lock:
                self._playing.discard(threading.current_thread())
                if not live.abandoned and live.trouble is None:
                    try:
                        self._keep(path, live)
                    except HTTPException as error:
                        live.trouble = error.detail
                live.rest()

    def _keep(self, path: Path, live: Live) -> None:
        """Write the table, and a finished game's record before it."""
        sitting, kept, record = live.sitting, live.kept, None
        try:
            if sitting.game.over:
                made = datetime.fromtimestamp(kept.made, UTC)
                record = f"{made:{MADE}}-{path.stem[:6]}"
                write_whole(self.folder / f"{record}.json", records_of(sitting.spec).dump(sitting.record()))
            live.kept = replace(kept, outputs=list(sitting.outputs), record=record)
            text = json.dumps(asdict(live.kept))
            write_whole(path, text)
        except RunStopped as error:
            reason = as_sentence(f"nothing was played, since the game cannot be kept: {error}")
            raise HTTPException(507, reason) from None
        self._live[path] = text, live

    def _sweep(self, now: float) -> set[Path]:
        """Drop the tables that were left too long; returns the others. A file that cannot be read is left alone."""
        taken = set()
        for path in self._running.glob("*.json"):
            with suppress(OSError, UnicodeDecodeError, HTTPException):
                if read(path.read_text(encoding="utf-8")).touched + LIFE < now:
                    self._drop(path)
                else:
                    taken.add(path)
        return taken

    def _drop(self, path: Path) -> None:
        self._forget(path)
        with suppress(OSError):
            path.unlink()

    def _forget(self, path: Path) -> None:
        """Leave the game as its file has it; what its bots still do is thrown away."""
        _, live = self._live.pop(path, ("", None))
        if live is not None:
            live.abandoned = True

    def _seen(self, live: Live, since: int) -> dict[str, Any]:
        """What the person sees, and at the end how they have fared against these players so far."""
        live.wait(_PATIENCE)
        seen, setup = live.view(since), live.kept.setup
        if not seen["over"]:
            return seen | {"against": {}}
        fared = self.summaries.against(setup.game)
        return seen | {"against": {name: fared[name] for name in dict.fromkeys(setup.bots) if name in fared}}

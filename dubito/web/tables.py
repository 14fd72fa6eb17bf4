"""The tables of a server.

Each table is stored in a file that can be replayed at any time. The file contains the setup and every output so far,
including those of the bots, and is written before a response is sent. A replay must produce the same outputs. Pages
show frames and do not implement any rules. A frame only contains what the person at the table may know.
"""

import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from dubito.errors import DubitoError, IllegalOutput, RunStopped, UsageError, one_line, suggestion
from dubito.files import describe_fault, write_whole
from dubito.game import Bool, Cards, Choice, Game, PlayerKind, Text, node_view
from dubito.game.find import DUBITO
from dubito.game.reader import name_seats
from dubito.game.record import Records, Strict
from dubito.game.seeds import TEXT_PATTERN
from dubito.game.words import Option, Panel, Question, describe_answers, list_faces
from dubito.show.lie_review import LieReview
from dubito.show.opponents import FamilyGames, Opponents, as_sentence, describe_trouble
from dubito.show.person import SEEDS, Setup, Sitting, seat_person, set_up
from dubito.show.session import Moment
from dubito.show.story import winners_of_ending
from dubito.web.saved import TIME_FORMAT, Summaries
from dubito.web.visit import Refused

_MAX_BUTTONS: Final = 24  # questions with more numbers than this have a text field instead of buttons


Shown = tuple[str, list[list[str]]]  # text, and the cards to draw instead of the words after its colon


@dataclass(frozen=True, slots=True)
class Board:
    """A part of the table that does not belong to a seat."""

    title: str
    shown: Shown
    backs: int  # cards to draw face down
    plays: list["ShownPlay"]  # the last one on top


@dataclass(frozen=True, slots=True)
class ShownPlay:
    """A play on a pile. Hidden cards are only counted."""

    seat: int
    count: int
    cards: list[list[str]]  # to draw, if they are known
    wrong: list[bool]  # which of these cards make it a lie
    lie: bool | None  # None if it is hidden or cannot be a lie
    shown: bool  # whether the last move revealed it


@dataclass(frozen=True, slots=True)
class Frame:
    """The state of the table between two moves."""

    move: int  # number of moves made
    turn: int  # turn of the last move
    mover: int | None  # seat that made the last move
    said: list[str]
    speech: str  # what the mover said, for a speech bubble
    seats: list[Shown]  # the public text of each seat
    badges: list[str]  # a short note on each seat
    lost: list[bool]  # which seats have not won, when the game is over
    backs: list[int]  # number of cards to draw face down for each seat
    boards: list[Board]  # the rest of the table; everything is revealed when the game is over
    truth: list[Shown]  # each seat's cards when the game is over
    hand: list[list[str]]  # the person's cards to draw; empty if described in words
    sees: list[str]  # what the person sees and is asked, on their move
    to_move: int | None
    question: Question | None
    scene: dict[str, Any] | None  # what happened in the last move, to be played on the frame before


def frame_in_words(sitting: Sitting, move: int, moment: Moment | None, lines: list[str]) -> Frame:
    """Return the table as seen by the person after `move` moves.

    `moment` is the last moment, if any.
    """
    state, words, panels = sitting.state, sitting.words, sitting.teller.panels()
    hand, drawn = list_faces(words, words.hand(state, sitting.me)), tuple(words.DRAWN_LINES)
    sees = words.describe_view(state, sitting.me, sitting.reader) if sitting.is_asked else []
    seats = {panel.seat: panel for panel in panels if panel.seat is not None}
    known = [seats.get(seat, Panel("", "", "", seat)) for seat in range(len(sitting.setup.players))]
    boards = [*_boards(sitting, panels)]
    won = winners_of_ending(sitting.game.results, state.ending()) if state.over else []
    lost = [state.over and not (one.badge or seat in won) for seat, one in enumerate(known)]
    ends = ["lost" if has_lost else "won" * state.over for has_lost in lost]
    there = {line for one in boards for line in (f"{one.title}:", one.shown[0])}
    public_events = [event for event in moment.events if event.only is None] if moment else []
    scene = None
    if moment and (last := sitting.teller.scene):
        drawn_cards = list_faces(words, last.cards) if last.shown else []
        wrong = [card in last.wrong for card in last.cards] if last.shown else []
        scene = asdict(last) | {"cards": drawn_cards, "wrong": wrong, "count": len(last.cards)}
    return Frame(
        move=move,
        turn=moment.turn if moment else 0,
        mover=moment.seat if moment else None,
        said=lines,
        speech=words.speech(moment.output, public_events) if moment else "",
        seats=[_show_public(sitting, one) for one in known],
        badges=[one.badge or end for one, end in zip(known, ends, strict=True)],
        lost=lost,
        backs=[0 if state.over else one.backs for one in known],
        boards=boards,
        truth=[_show_truth(sitting, one) for one in known] if state.over else [],
        hand=hand,
        sees=[line for line in sees if not (hand and line.startswith(drawn)) and line not in there],
        to_move=None if state.over else state.seat,
        question=_question(sitting) if sitting.is_asked else None,
        scene=scene,
    )


def _show_public(sitting: Sitting, panel: Panel) -> Shown:
    return panel.public, [] if panel.truth else list_faces(sitting.words, panel.cards)


def _show_truth(sitting: Sitting, panel: Panel) -> Shown:
    return panel.truth, list_faces(sitting.words, panel.cards) if panel.truth else []


def _boards(sitting: Sitting, panels: Sequence[Panel]) -> Iterator[Board]:
    """Yield the panels without a seat. Their truth follows when the game is over."""
    over, words = sitting.state.over, sitting.words
    for one in panels:
        if one.seat is not None:
            continue
        plays = []
        for play in one.plays:
            is_known = over or play.shown
            cards = list_faces(words, play.cards) if is_known else []
            wrong = [card in (play.wrong or ()) for card in play.cards] if is_known else []
            lie = play.lie if is_known else None
            plays.append(ShownPlay(play.seat, len(play.cards), cards, wrong, lie, play.shown))
        for shown in (_show_public(sitting, one), *([_show_truth(sitting, one)] if over and one.truth else [])):
            if shown[0] or shown[1] or plays:
                yield Board(one.title, shown, 0 if shown[1] else one.backs, plays)


def _question(sitting: Sitting) -> Question:
    state, words = sitting.state, sitting.words
    if (own := words.question(state, sitting.me, sitting.reader)) is not None:
        return own
    node, legal = sitting.game.node(node_view(state).node), sitting.game.legal_answers(state)
    how, options, bounds = describe_answers(node, legal), list[Any](), None
    match node.answer:
        case Bool():
            kind, options = "bool", legal or [True, False]
        case Choice():
            kind, options = "choice", [one for one in words.choices(state) if _is_legal_answer(sitting, one)]
        case Cards():
            kind, options = "cards", words.playable_cards(state, sitting.me)
        case Text(most):
            kind, options = "text", [most]
        case _ if legal and len(legal) > _MAX_BUTTONS:
            numbers = [one for one in legal if isinstance(one, int)]
            kind, bounds = "whole", (min(numbers), max(numbers))
        case _:
            kind, options = "whole", legal or []
    labels = [words.label_answer(state, one) for one in options]
    claims = words.claims(state, sitting.me) if kind == "cards" else ()
    return Question(node.name, kind, how, options, labels, bounds, claims)


def _is_legal_answer(sitting: Sitting, answer: Any) -> bool:
    with suppress(IllegalOutput, UsageError):
        return sitting.why_illegal(sitting.words.parse_answer(answer, sitting.state, sitting.me)) is None
    return False


BROKEN: Final = "an internal error occurred; see the terminal that runs the server"
_Time = Annotated[float, Field(ge=0, lt=datetime.max.replace(tzinfo=UTC).timestamp())]  # seconds since 1970


@dataclass(frozen=True, slots=True)
class TableFile(Strict):
    """The content of a table's file."""

    setup: Setup
    made: _Time
    touched: _Time
    outputs: list[Any] = field(default_factory=list)
    chosen: bool = False  # whether the person chose their seat
    record: str | None = None  # name of the finished game's record in the folder
    number: int = 0  # the game's number in the database of model calls
    returned: bool = False  # whether the visitor came back with the cookie
    format: Literal["dubito table 1"] = "dubito table 1"

    @property
    def expires(self) -> float:
        return self.touched + (LIFE if self.returned else UNUSED_LIFE)


_TABLE_FORMAT: Final = TypeAdapter(TableFile)


class LiveTable:
    """A table in memory, with the game and the frames that its person has seen.

    Only one thread plays at a time. Other threads can read, and wait on `rests` until the person is asked, the game is
    over or an error stops it.
    """

    def __init__(self, kept: TableFile, opponents: Opponents) -> None:
        """Deal the game without playing the file's outputs yet."""
        self.kept = kept
        self.sitting = seat_person(opponents, kept.setup, kept.number)
        kinds, me = opponents.kinds(kept.setup.bots), kept.setup.seat
        self._kinds: list[PlayerKind] = [*kinds[:me], "person", *kinds[me:]]
        self.frames = [asdict(frame_in_words(self.sitting, 0, None, self.sitting.start))]
        self.trouble: str | None = None  # why the bots could not continue
        self.abandoned = False  # set when no page shows this table any more
        self.rests = threading.Event()  # set while no thread is playing

    def step(self, output: Any = None) -> None:
        self.rests.clear()
        self.frames.append(asdict(frame_in_words(self.sitting, len(self.frames), *self.sitting.step(output))))

    def play_bots(self) -> None:
        """Let the bots play until it is the person's turn or the game is over.

        An error that stops them is stored in `trouble`.
        """
        try:
            while not (self.sitting.is_asked or self.sitting.state.over or self.abandoned):
                self.step()
        except DubitoError as error:
            self.trouble = describe_trouble(error)
        except BaseException:
            self.trouble = as_sentence(BROKEN)
            raise
        finally:
            # The person may never come back.
            self.sitting.stop_programs()

    def view(self, since: int) -> dict[str, Any]:
        """Return everything that the person may know, with frames starting at number `since`."""
        rests, frames, sitting = self.rests.is_set(), list(self.frames), self.sitting
        over = rests and sitting.state.over
        result, ended = sitting.result() if over else (None, "")
        review = sitting.review_lies() if over else LieReview(sitting.reader)
        moments = (("best", review.best), ("worst", review.worst))
        return {
            "table": self.kept.number,
            "names": name_seats(self.kept.setup.players, sitting.me),
            "kinds": self._kinds,
            "me": sitting.me,
            "game": sitting.game.name,
            "lie": sitting.game.results.lie_words[0],
            "rules": self.kept.setup.rules,
            "turn": len(frames) - 1,
            "asked": rests and sitting.is_asked and self.trouble is None,
            "over": over and self.trouble is None,
            "trouble": self.trouble if rests else None,
            "first": since,
            "frames": frames[since:],
            "result": result,
            "ended": ended,
            "explained": sitting.words.explain_verdict(sitting.state, sitting.me) if over else "",
            "figures": review.figures(*sitting.game.results.lie_words),
            "moments": [(kind, one.turn, one.text) for kind, one in moments if one],
            "record": self.kept.record,
            # Anyone who knows the seed can deal the same cards, unless they were changed.
            "seed": self.kept.setup.seed if over and self.kept.setup.change is None else None,
            "errors": sitting.errors if over else [],
            **({} if rests or not sitting.spoken else {"spoken": sum(sitting.spoken.values())}),
        }


def parse_table(text: str) -> TableFile:
    """Parse a table's file. Raises Refused if it is damaged."""
    try:
        return _TABLE_FORMAT.validate_json(text)
    except (ValidationError, UsageError):
        raise Refused(410, "The file of this game is damaged. Start a new game.") from None


LIFE: Final = 7 * 24 * 3600  # seconds until a table expires after its last move
UNUSED_LIFE: Final = 3600  # seconds for a visitor who never came back, perhaps because cookies are disabled
MAX_TABLES: Final = 100
_RETRY_SECONDS: Final = 60  # when a visitor may try again after finding all tables taken
MAX_BOTS: Final = 31  # bots at one table
_WAIT_SECONDS: Final = 0.5  # seconds that a response waits for the bots before the page asks again
_SHUTDOWN_SECONDS: Final = 5.0  # seconds that a shutdown waits for model replies


@dataclass(frozen=True, slots=True)
class NewTable(Strict):
    """A page's request for a new table. None means a random choice."""

    bots: Annotated[list[str], Field(min_length=1, max_length=MAX_BOTS)]
    game: str = DUBITO
    rules: dict[str, Any] = field(default_factory=dict)
    seat: int | None = None
    seed: Annotated[int, Field(ge=0, lt=SEEDS)] | Annotated[str, Field(pattern=TEXT_PATTERN)] | None = None
    deal: Annotated[int, Field(ge=0, lt=SEEDS)] = 0


@dataclass(frozen=True, slots=True)
class Move(Strict):
    """The person's move, as sent by the game's page.

    `turn` is the number of moves that the person has seen, so that a move cannot be repeated. `table`, if given, is the
    table of the move, because another page of the same person may have opened a new table.
    """

    turn: int
    answer: Any
    table: int | None = None


class Tables:
    """All tables of a server, by the secret cookie in the person's browser."""

    def __init__(
        self,
        folder: Path,
        opponents: Mapping[str, Opponents],
        clock: Callable[[], float],
        most: int = MAX_TABLES,
        family: Callable[[], FamilyGames | None] = lambda: None,
        in_threads: bool = True,
        moment: Setup | None = None,
    ) -> None:
        """Set up the folders.

        `opponents` are the possible players of each game, with the rules that this server fixes. The first game is the
        default. `family` loads games of families when a page first needs them. Finished games are saved in `folder`,
        and tables in its `running` subfolder. Bots play in threads, because models may take minutes, or at once where
        there are no threads. `moment` is the setup of a recorded turn that visitors can play on from. Raises UsageError
        if the folders cannot be created.
        """
        self.folder, self.moment = folder, moment
        self._running = folder / "running"
        self._opponents, self._clock, self._most = dict(opponents), clock, most
        self._load_family = family
        self._in_threads = in_threads
        self._lock = threading.RLock()
        self._live: dict[Path, tuple[str, LiveTable]] = {}  # the table and the text of its file when it was loaded
        self._playing: set[threading.Thread] = set()
        self._number = 0  # number of the last game
        self.summaries = Summaries(folder)
        try:
            self._running.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"cannot save games in {folder}: {error.strerror}", hint="choose another folder with --games"
            ) from None

    @cached_property
    def _family(self) -> FamilyGames:
        return self._load_family() or FamilyGames([], [], self._no_opponents)

    @property
    def games(self) -> list[Game]:
        """The games that the lobby shows with a picture."""
        family = self._family
        own = [name for name in self._opponents if name in family.featured or name not in family.names]
        others = [name for name in family.featured if name not in self._opponents]
        return [self.opponents_of(name).game for name in (*own, *others)]

    @property
    def more_games(self) -> list[tuple[str, list[str]]]:
        """The other games of the family under a title, those in which something is hidden first."""
        more = [name for name in self._family.names if name not in self._family.featured]
        hidden, is_open = ([name for name in more if (name in self._family.open) is so] for so in (False, True))
        titled = [("more games with hidden cards or moves", hidden), ("games in which nothing is hidden", is_open)]
        return [(title, names) for title, names in titled if names]

    def options(self, game: Game) -> list[Option]:
        """Return the rules of a game that the person can choose.

        A rule that the server fixes has only one value.
        """
        settled = self.opponents_of(game.name).settled
        options = [
            replace(one, values=[each for each in one.values if settled.get(one.rule, each[0]) == each[0]])
            for one in game.words.options()
        ]
        return [option for option in options if option.values]

    def rules(self, game: Game, chosen: Mapping[str, Any]) -> BaseModel:
        rules: BaseModel = game.rules(**{**chosen, **self.opponents_of(game.name).settled})
        return rules

    def opponents_of(self, game: str) -> Opponents:
        """Return the possible players of a game. Raises UsageError if it is unknown."""
        if game not in self._opponents:
            find = self._family.find if game in self._family.names else self._no_opponents
            self._opponents[game] = find(game)
        return self._opponents[game]

    def _no_opponents(self, game: str) -> Opponents:
        raise UsageError(f"unknown game {one_line(repr(game), 60)}", hint=suggestion(game, self._opponents))

    def open(self, asked: NewTable, old: str | None) -> tuple[str, dict[str, Any]]:
        """Seat a person at a new table, which replaces their old one.

        Return the table's secret and what they see.
        """
        opponents = self.opponents_of(asked.game)
        opponents.check(asked.bots)
        game = opponents.game
        try:
            rules = self.rules(game, asked.rules)
        except ValidationError as error:
            raise UsageError(f"rules: {describe_fault(error, 'the rules')}") from None
        setup = set_up(game, asked.bots, rules, asked.seat, asked.seed, asked.deal)
        return self._seat(setup, old, chosen=asked.seat is not None)

    def open_moment(self, old: str | None) -> tuple[str, dict[str, Any]]:
        """Seat a person at the moment of a run that this server offers, like `open`."""
        if self.moment is None:
            raise Refused(404, "This server offers no moment of a run. Start it with --from RUN:GAME:TURN.")
        return self._seat(self.moment, old, chosen=True)

    def open_saved(self, setup: Setup, old: str | None) -> tuple[str, dict[str, Any]]:
        """Seat a person at a turn of a saved game, like `open`."""
        opponents = self.opponents_of(setup.game)
        opponents.check(setup.bots)
        opponents.require_movable(setup.bots)
        return self._seat(setup, old, chosen=True)

    def _seat(self, setup: Setup, old: str | None, *, chosen: bool) -> tuple[str, dict[str, Any]]:
        now, opponents = self._clock(), self.opponents_of(setup.game)
        with self._lock:
            taken = self._sweep(now)
            mine = self._path(old or "")
            if len(taken - {mine}) >= self._most:
                sentence = f"All {self._most} tables are in use. Finish a game, or try again later."
                raise Refused(503, sentence, {"Retry-After": str(_RETRY_SECONDS)})
            secret = secrets.token_urlsafe(24)
            self._number = max(self._number + 1, int(now * 1000))
            live = LiveTable(TableFile(setup, now, now, number=self._number, chosen=chosen), opponents)
            path = self._path(secret)
            self._write_table(path, live)
            self._drop(mine)
            self._resume(path, live)
        return secret, self._build_view(live, 0)

    def rematch(self, secret: str | None) -> tuple[str, dict[str, Any]]:
        """Start the person's finished game again with new cards.

        The seat is random unless the person chose it.
        """
        with self._lock:
            kept = self._read_table(secret)[2]
        if kept.record is None:
            raise Refused(409, "Your game is not over yet.")
        setup = kept.setup
        return self.open(NewTable(setup.bots, setup.game, setup.rules, setup.seat if kept.chosen else None), secret)

    def view(self, secret: str | None, since: int = 0) -> dict[str, Any]:
        """Return what the person sees, with frames starting at number `since`."""
        with self._lock:
            path, live = self._find(secret)
            if not live.kept.returned:
                # The visitor has returned with the cookie, so the table is kept for longer.
                live.kept = replace(live.kept, returned=True)
                text = json.dumps(asdict(live.kept))
                # The disk may be full: then the next view tries again, or the next move reports it.
                with suppress(RunStopped):
                    write_whole(path, text)
                    self._live[path] = text, live
        return self._build_view(live, since)

    def unfinished(self, secret: str | None) -> Setup | None:
        """Return the setup of the person's game if the game is not over."""
        with self._lock, suppress(Refused, UsageError):
            kept = self._read_table(secret)[2]
            self.opponents_of(kept.setup.game)
            return kept.setup if kept.record is None else None
        return None

    def move(self, secret: str | None, move: Move) -> dict[str, Any]:
        """Make the person's move, let the bots play, and return the new frames.

        If the move is refused, nothing changes.
        """
        with self._lock:
            path, live = self._find(secret)
            if move.table not in (None, live.kept.number):
                raise Refused(409, "This move is for a game that you left.")
            if live.sitting.state.over:
                raise Refused(409, "The game is over.")
            seen = len(live.frames) - 1
            if move.turn != seen:
                raise Refused(409, f"This move is for turn {move.turn}, but {seen} turns have been played.")
            if not (live.rests.is_set() and live.sitting.is_asked):
                raise Refused(409, "It is not your turn.")
            sitting = live.sitting
            output = sitting.words.parse_answer(move.answer, sitting.state, sitting.me)
            reason = sitting.why_illegal(output)
            if reason is not None:
                raise Refused(400, as_sentence(reason))
            del self._live[path]  # removed from memory until the file matches it again
            live.step(output)
            live.kept = replace(live.kept, touched=self._clock(), returned=True)
            self._write_table(path, live)
            self._resume(path, live)
        return self._build_view(live, seen + 1)

    def again(self, secret: str | None) -> dict[str, Any]:
        """Let failed bots try again and return everything that the person sees."""
        with self._lock:
            path, live = self._find(secret)
            if not live.rests.is_set() or live.trouble is None:
                raise Refused(409, "This game is not paused.")
            game = live.kept.setup.game
            self._forget(path)  # The bots stopped within a turn. A replay of the file starts before it.
            self._opponents[game].try_again()
            _, live = self._find(secret)
        return self._build_view(live, 0)

    def close(self) -> None:
        """Prevent bots from starting another turn, and wait briefly for current turns."""
        with self._lock:
            for path in list(self._live):
                self._forget(path)
            playing = list(self._playing)
        end = time.monotonic() + _SHUTDOWN_SECONDS
        for thread in playing:
            thread.join(max(0.0, end - time.monotonic()))

    def _path(self, secret: str) -> Path:
        return self._running / f"{sha256(secret.encode('utf-8', 'replace')).hexdigest()}.json"

    def _read_table(self, secret: str | None) -> tuple[Path, str, TableFile]:
        """Return a table's file path, text and content."""
        path = self._path(secret or "")
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise Refused(404, "You have no game here. Start one first.") from None
        except (OSError, UnicodeDecodeError):
            text = ""  # handled as damaged below
        kept = parse_table(text)
        if kept.expires < self._clock():
            self._drop(path)
            raise Refused(404, "Your game expired. Start a new one.")
        return path, text, kept

    def _find(self, secret: str | None) -> tuple[Path, LiveTable]:
        """Return the table. A table that is not in memory is resumed by replaying its file."""
        path, text, kept = self._read_table(secret)
        known, live = self._live.get(path, ("", None))
        if live is None or known != text:
            self._forget(path)
            try:
                live = LiveTable(kept, self.opponents_of(kept.setup.game))
                live.sitting.replay(kept.outputs, live.step)
            except DubitoError as error:  # for example, the game is missing or a bot now plays differently
                raise Refused(410, as_sentence(f"this game cannot continue: {error}")) from None
            self._live[path] = text, live
            self._resume(path, live)
        return path, live

    def _resume(self, path: Path, live: LiveTable) -> None:
        """Let the bots play."""
        if live.sitting.is_asked or live.sitting.state.over:
            live.rests.set()
            return
        if not self._in_threads:
            self._play(path, live)
            return
        thread = threading.Thread(target=self._play, args=(path, live), daemon=True)
        self._playing.add(thread)
        thread.start()

    def _play(self, path: Path, live: LiveTable) -> None:
        try:
            live.play_bots()
        finally:
            with self._lock:
                self._playing.discard(threading.current_thread())
                if not live.abandoned and live.trouble is None:
                    try:
                        self._write_table(path, live)
                    except Refused as error:
                        live.trouble = error.sentence
                live.rests.set()

    def _write_table(self, path: Path, live: LiveTable) -> None:
        """Write the table's file. If the game is finished, write its record first."""
        sitting, kept, record = live.sitting, live.kept, None
        try:
            if sitting.state.over:
                made = datetime.fromtimestamp(kept.made, UTC)
                record = f"{made:{TIME_FORMAT}}-{path.stem[:6]}"
                write_whole(self.folder / f"{record}.json", Records(sitting.game).dump(sitting.make_record()))
            live.kept = replace(kept, outputs=list(sitting.outputs), record=record)
            text = json.dumps(asdict(live.kept))
            write_whole(path, text)
        except RunStopped as error:
            reason = as_sentence(f"your move was not played because the game cannot be saved: {error}")
            raise Refused(507, reason) from None
        self._live[path] = text, live

    def _sweep(self, now: float) -> set[Path]:
        """Delete expired tables and return the rest. Unreadable files are left alone."""
        taken = set()
        for path in self._running.glob("*.json"):
            with suppress(OSError, UnicodeDecodeError, Refused):
                if parse_table(path.read_text(encoding="utf-8")).expires < now:
                    self._drop(path)
                else:
                    taken.add(path)
        return taken

    def _drop(self, path: Path) -> None:
        self._forget(path)
        with suppress(OSError):
            path.unlink()

    def _forget(self, path: Path) -> None:
        _, live = self._live.pop(path, ("", None))
        if live is not None:
            live.abandoned = True

    def _build_view(self, live: LiveTable, since: int) -> dict[str, Any]:
        """Return what the person sees.

        After the game, this includes the person's record against these players.
        """
        live.rests.wait(_WAIT_SECONDS)
        seen, setup = live.view(since), live.kept.setup
        if not seen["over"]:
            return seen | {"against": {}}
        fared = self.summaries.records_against(setup.game)
        return seen | {"against": {name: fared[name] for name in dict.fromkeys(setup.bots) if name in fared}}

"""Waves: what games wait for goes out together, as batches, once none of them can go on without a reply.

A request that finds no reply is put down (`WaveLog`) and its game put back (`BatchPending`). When all games wait,
`next` sends a wave and returns once all of it is in; then the games go on, from their tapes. What was sent is known by the
name of its batch from before it is sent: a run that is stopped anywhere finds it again, and asks nothing twice. All of
a wave is sent, and looked at, side by side.
"""

import secrets
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, NoReturn, TypeVar, cast

from dubito.errors import one_line
from dubito.llm.batches import BATCH_API, LIFETIME, BatchEntry, SeenBatch, Sells, body_text, name_of_entry
from dubito.llm.budget import Budget
from dubito.llm.client import NotFound, Provider
from dubito.llm.limiter import Timing, backoff, format_duration
from dubito.llm.prices import CostEstimator, Tariff, beyond
from dubito.llm.protocols import parse_stored_request, read_reply
from dubito.llm.provider_errors import error_in_reply
from dubito.llm.request import (
    FINAL_FAILURES,
    AccountFault,
    Attempt,
    AttemptFailed,
    BatchPending,
    Cause,
    Interrupted,
    Place,
    RawReply,
    Request,
    TryFailed,
    parse_json,
)
from dubito.llm.settings import Account, ModelSettings, embedded_kind
from dubito.llm.threads import map_in_threads
from dubito.store.model_log import ModelLog, Spend
from dubito.store.wave_log import Awaited, SentBatch, WaveLog

_FIRST, _MOST, _LONGER = 1.0, 60.0, 1.5  # seconds between two looks at a batch: the first, the most, times each time
_STEP: Final = 1.0  # seconds of waiting between two looks whether to stop
_READS: Final = 3  # times that a file is read in which something is missing, or looked for what is not there
_BARREN: Final = 5  # waves in a row without one reply, after which the run stops
_TWICE: Final = 2  # failures, before which nobody knows how others fare
_NAME: Final = 8  # bytes
_DEADLINE: Final = 600.0  # seconds for a file of requests or replies

_Row = tuple[Awaited, Attempt]
_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class Lane:
    """A player who waits: whom to ask, and at what price."""

    account: Account
    provider: Provider
    settings: ModelSettings
    likely: CostEstimator

    @property
    def tariff(self) -> Tariff:
        return self.likely.tariff

    @property
    def sells(self) -> type[Sells]:
        return BATCH_API[self.account.api]


@dataclass(slots=True)
class _Outcome:
    """What came of a wave so far."""

    replies: int = 0
    last: str = ""  # of the failures, in words
    fault: AccountFault | None = None
    missed: dict[str, int] = field(default_factory=dict)  # looks in a row at which a batch was not there, by its name
    known: set[Account] = field(default_factory=set)  # those who took or showed a batch: the key is the right one


@dataclass(frozen=True, slots=True)
class _Under:
    """A batch that is to be handed in, or is under way."""

    batch: SentBatch
    lane: Lane
    errand: Callable[..., RawReply]
    new: Sequence[_Row] | None = None  # its requests, where nothing of it is put down yet


class Waves:
    """One per run, shared by its players who wait."""

    def __init__(
        self, log: ModelLog, kept: WaveLog, budget: Budget, timing: Timing, *, suspend: bool, in_flight: int
    ) -> None:
        """`in_flight`: how many calls are made at the same time."""
        self._log, self._kept, self._budget, self._timing, self._suspend = log, kept, budget, timing, suspend
        self._in_flight = in_flight
        self._lanes: dict[str, Lane] = {}  # by player
        self._lock = threading.Lock()
        self._barren = 0  # waves in a row without a reply

    def joins(self, player: str, lane: Lane) -> None:
        self._lanes[player] = lane

    def check(self) -> None:
        """Raise AccountFault for a server that sells no batches."""
        for player, lane in self._lanes.items():
            ask = Attempt(Request(lane.account.api, lane.sells.batches, {}), "", Place(player, -1, -1, 0, 0, 0, ""))
            try:
                self._patiently(lane, partial(_errand(lane, ask), f"{lane.sells.batches}?limit=1"))
            except NotFound as error:
                raise AccountFault(
                    f"{lane.account} sells no batches (status {error}): take `wait` out of the entry of "
                    f"{one_line(player)}, or change `base_url`"
                ) from None

    def wait(self, ask: Attempt) -> NoReturn:
        """Put the request down for the next wave. Raises Waits, or AttemptFailed where no reply will come."""
        lane, request = self._lanes[ask.place.player], ask.request
        with self._lock:
            found = self._kept.entry(lane.account.server, request.digest, ask.draw)
            if found is None:
                place = ask.place
                where = (place.player, place.game, place.deal, place.seat, place.decision, place.attempt, place.node)
                entry = Awaited(str(lane.account), request.digest, ask.draw, *where, body=body_text(request.body))
                self._kept.wants(entry, request.text)
                self._budget.foresees(lane.tariff.worst(request))
            elif found.cause is not None:
                raise AttemptFailed(cast(Cause, found.cause), found.detail or "")
        raise BatchPending(f"for the next wave to {lane.account}")

    def next(self) -> None:
        """Send what is waited for, and return when all of it is there, and all that was under way already.

        Raises AccountFault, or Interrupted on a stop: what is under way stays so, and is found when the run goes on.
        """
        under_way, outcome = [self._under(batch) for batch in self._kept.batches()], _Outcome()
        begun = self._begun(alone=not under_way)
        there = map_in_threads(partial(self._there, outcome), [*under_way, *begun], self._in_flight, "wave")
        left = [each for each in there if each is not None]
        seconds = _FIRST
        while left:
            are_in = map_in_threads(partial(self._is_in, outcome), left, self._in_flight, "wave")
            left = [each for each, is_in in zip(left, are_in, strict=True) if not is_in]
            if left:
                self._rest(seconds, self._why(left))
                seconds = min(_MOST, seconds * _LONGER)
        self._check(outcome)

    def _check(self, outcome: _Outcome) -> None:
        """Raise what ends the run after a wave, if anything does."""
        self._barren = 0 if outcome.replies else self._barren + 1
        if outcome.fault is not None:
            raise outcome.fault
        if self._barren >= _BARREN:
            raise AccountFault(
                f"the last {_BARREN} waves brought no reply (the last: {outcome.last}); see what the provider says of "
                "its batches, or resume later"
            )

    def _begun(self, *, alone: bool) -> list[_Under]:
        """The batches of a new wave; raises AccountFault where none fits the budget, and they are `alone`."""
        groups = defaultdict[tuple[Account, str, str], list[_Row]](list)
        full: str | None = None
        for entry in self._kept.open():
            ask, lane = self._ask(entry), self._lanes[entry.player]
            if (full := self._budget.takes(lane.tariff.worst(ask.request))) is not None:
                break  # younger games wait for the next wave
            row = replace(entry, number=self._log.tries(ask.place.key) + 1)
            groups[lane.account, ask.request.path, str(ask.request.body.get("model"))].append((row, ask))
        if not groups and full is not None and alone:
            raise AccountFault(full)
        wave, begun = self._kept.wave() + 1, list[_Under]()
        for (account, *_), rows in groups.items():
            for part in _parts(rows, self._lanes[rows[0][0].player].sells):
                batch = SentBatch(secrets.token_hex(_NAME), wave, str(account), len(part), self._timing.time())
                begun.append(self._under(batch, part))
        return begun

    def _under(self, batch: SentBatch, new: Sequence[_Row] | None = None) -> _Under:
        entry, ask = (new or self._rows(batch))[0]
        lane = self._lanes[entry.player]
        return _Under(batch, lane, _errand(lane, ask), new)

    def _put_down(self, batch: SentBatch, rows: Sequence[_Row]) -> None:
        """Keep a batch and its tries before it is handed in."""
        with self._kept.together():
            for entry, ask in rows:
                likely = self._lanes[entry.player].likely
                usual = likely.of(ask.request)
                said = (entry.player, entry.account, entry.request, entry.draw, likely.tariff.worst(ask.request))
                self._log.try_opens(entry.key, *said, priced=usual is not None, likely=usual)
            self._kept.begins(batch, [entry for entry, _ in rows])

    def _ask(self, entry: Awaited) -> Attempt:
        # The keys of the kept text are sorted: no server may see its body.
        request = replace(parse_stored_request(self._log.text(entry.request)), body=parse_json(entry.body))
        where = (entry.game, entry.deal, entry.seat, entry.decision, entry.attempt, entry.node)
        return Attempt(request, entry.draw, Place(entry.player, *where))

    def _rows(self, batch: SentBatch) -> list[_Row]:
        return [(entry, self._ask(entry)) for entry in self._kept.within(batch.name)]

    def _there(self, outcome: _Outcome, under: _Under) -> _Under | None:
        """The same, once the server has it; None if nothing more is to be waited for."""
        if under.batch.id is not None:
            return under
        batch, rows = under.batch, under.new or self._rows(under.batch)
        if under.new is not None:
            self._raise_if_stopped()
            self._put_down(batch, rows)
        # If this fails, the batch is looked for by its name when the run goes on.
        seen = self._handed_in(under, rows)
        outcome.known.add(under.lane.account)
        self._kept.is_there(batch.name, seen.id, seen.expires or batch.since + LIFETIME)
        under = replace(under, batch=replace(batch, id=seen.id, expires=seen.expires), new=None)
        return None if seen.ended and self._comes_in(outcome, under, seen) else under

    def _handed_in(self, under: _Under, rows: Sequence[_Row]) -> SeenBatch:
        """Hand it in, unless the server has it: it is looked for wherever it may have come to be there."""
        batch, lane, sells = under.batch, under.lane, under.lane.sells
        lines = [sells.line(name, ask) for name, (_, ask) in zip(_names(batch, rows), rows, strict=True)]
        search = under.new is None

        def found() -> SeenBatch | None:
            known = [each.id for each in self._kept.batches(ended=True) + self._kept.batches() if each.id]
            return sells.find(under.errand, batch, known, lambda: self._rest(_MOST, self._why([under])))

        def handed_in() -> SeenBatch:
            nonlocal search
            seen = found() if search else None
            search = True
            return seen or sells.hand_in(under.errand, batch.name, rows[0][1].request.path, lines)

        try:
            return self._patiently(lane, handed_in)
        except NotFound as error:
            raise AccountFault(
                f"{lane.account} takes nothing that waits (status {error}): take `wait` out of the entry of "
                f"{one_line(rows[0][0].player)}, or change `base_url`"
            ) from None

    def _is_in(self, outcome: _Outcome, under: _Under) -> bool:
        """Look at a batch, and keep what came of it once it has ended."""
        there, sells = under.batch.id or "", under.lane.sells
        try:
            seen = self._patiently(under.lane, lambda: sells.look(under.errand, there))
            outcome.missed.pop(under.batch.name, None)
            outcome.known.add(under.lane.account)
            return seen.ended and self._comes_in(outcome, under, seen)
        except NotFound:
            return self._is_lost(outcome, under)

    def _is_lost(self, outcome: _Outcome, under: _Under) -> bool:
        """Whether a batch that was not there is given up; raises AccountFault where the key may be why it is not."""
        name, account = under.batch.name, under.lane.account
        outcome.missed[name] = outcome.missed.get(name, 0) + 1
        if outcome.missed[name] < _READS:
            return False
        mine = embedded_kind(account.server) is not None or account in outcome.known
        if not mine and self._timing.time() < (under.batch.expires or 0.0):
            raise AccountFault(
                f"{account} does not know {under.batch.id}: it is seen only with a key of the project that made it; "
                "resume with such a key"
            )
        self._keep_outcomes(under.batch, self._rows(under.batch), SeenBatch("", ended=True), {}, outcome)
        return True

    def _comes_in(self, outcome: _Outcome, under: _Under, seen: SeenBatch) -> bool:
        """Keep what came of a batch that has ended."""
        rows = self._rows(under.batch)
        found = {} if seen.failed else self._entries_by_name(under, seen, rows)
        self._keep_outcomes(under.batch, rows, seen, found, outcome)
        return True

    def _entries_by_name(self, under: _Under, seen: SeenBatch, rows: Sequence[_Row]) -> dict[str, BatchEntry]:
        """By name, what came of the entries, the first of each; read again where not all of them are there."""
        found, names, sells = dict[str, BatchEntry](), _names(under.batch, rows), under.lane.sells
        for number in range(_READS):
            if number:
                self._rest(_FIRST, self._why([under]))
            for entry in self._patiently(under.lane, lambda: list(sells.entries(under.errand, seen))):
                if entry.whole:
                    found.setdefault(entry.name, entry)
            if found.keys() >= set(names):
                break
        return found

    def _keep_outcomes(
        self,
        batch: SentBatch,
        rows: Sequence[_Row],
        seen: SeenBatch,
        found: dict[str, BatchEntry],
        outcome: _Outcome,
    ) -> None:
        """Keep all that came of a batch as one, and settle it with the budget."""
        settled = list[tuple[int, Spend, Spend, bool]]()
        with self._kept.together():  # one at a time
            for name, (entry, ask) in zip(_names(batch, rows), rows, strict=True):
                came = BatchEntry(name) if seen.failed else found.get(name)
                used, replied = self._entry_in(entry, ask, came, self._timing.time() - batch.since, outcome)
                worst = self._lanes[entry.player].tariff.worst(ask.request)
                settled.append((entry.game, worst, used, replied))
                outcome.replies += replied
            self._kept.ends(batch.name)
            outcome.last = seen.failed or outcome.last
        for each in settled:
            self._budget.settle(*each)
        self._budget.wake_waiting()

    def _entry_in(
        self, entry: Awaited, ask: Attempt, came: BatchEntry | None, seconds: float, outcome: _Outcome
    ) -> tuple[Spend, bool]:
        """Keep what came of a request; what it used, and whether it was a reply."""
        lane = self._lanes[entry.player]
        failed: TryFailed | AccountFault | None
        if came is not None and came.body is not None:
            used, failed = self._body_in(entry, ask, came.body, seconds)
            if failed is None:
                self._kept.answered(entry)
                return used, True
        else:
            used, failed = Spend(calls=1), TryFailed("server", "it was not processed")
            if came is None:
                used = lane.tariff.worst(ask.request)
                failed = TryFailed("server", "what came of it is lost", billed=True)
            elif came.error is not None:
                failed = lane.provider.errors.read_batch_entry(came.status, came.error, ask)
            kind = failed.kind if isinstance(failed, TryFailed) else "account"
            self._log.try_failed(entry.key, kind, str(failed), used, seconds)
        counts = came is None or came.body is not None or came.error is not None
        self._failed(entry, lane, failed, counts=counts and not isinstance(failed, AccountFault))
        outcome.last = one_line(str(failed), 240)
        if isinstance(failed, AccountFault):
            outcome.fault = outcome.fault or failed
        return used, False

    def _body_in(
        self, entry: Awaited, ask: Attempt, body: str, seconds: float
    ) -> tuple[Spend, TryFailed | AccountFault | None]:
        """Keep a body; what it cost, and what stands in a reply's place, if something does."""
        lane = self._lanes[entry.player]
        received = RawReply(200, body)
        reply, tariff = read_reply(ask.request.protocol, received), lane.tariff
        usage, price, worst = reply.usage, tariff.price, tariff.worst(ask.request)
        used = tariff.of(usage, reply.charges, tariff.asked(ask.request)) if usage else worst
        failed = error_in_reply(lane.provider.errors, reply, ask, used)
        used = (failed.spent if failed else None) or used
        self._log.try_received(
            entry.key,
            received.status,
            received.raw,
            received.headers,
            usage=usage.counts if usage else None,
            spent=used,
            saved=price.saved(usage) if usage and price else 0,
            seconds=seconds,
            beyond=beyond(used, worst),
            failed=(failed.kind if isinstance(failed, TryFailed) else "account", str(failed)) if failed else None,
        )
        if failed is None:
            lane.likely.learns(len(ask.request.text), usage, used.usd)
        return used, failed

    def _failed(self, entry: Awaited, lane: Lane, failed: TryFailed | AccountFault, *, counts: bool) -> None:
        """Ask it again with the next wave, or give it up where that cannot help.

        `counts`: it was processed. A request is unreachable that failed so often while others of its waves were
        answered; where none is, the run stops before that.
        """
        failures = entry.failures + (counts and not (isinstance(failed, TryFailed) and failed.kind == "rate_limit"))
        if isinstance(failed, TryFailed) and failed.kind in FINAL_FAILURES:
            self._kept.gives_up(entry, failed.kind, str(failed))
        elif failures >= max(_TWICE, lane.settings.tries) and not self._suspend and not self._barren:
            self._kept.gives_up(entry, "unreachable", f"failed in {failures} waves; the last error was: {failed}")
        else:
            self._kept.again(entry, failures)

    def _why(self, left: Sequence[_Under]) -> str:
        """What a wave waits for, in words."""
        batches = [under.batch for under in left]
        accounts = ", ".join(sorted({batch.account for batch in batches}))
        since = format_duration(max(0.0, self._timing.time() - min(batch.since for batch in batches)))
        return f"for {sum(batch.entries for batch in batches):,} replies of {accounts} ({since})"

    def _patiently(self, lane: Lane, call: Callable[[], _Found]) -> _Found:
        """What the call gives; made again while it fails, for as long as patience lasts."""
        began, number = self._timing.clock(), 0
        while True:
            self._raise_if_stopped()
            try:
                return call()
            except TryFailed as error:
                if error.kind in FINAL_FAILURES:
                    raise  # nothing helps
                number += 1
                if self._timing.clock() - began >= self._timing.patience:
                    raise AccountFault(
                        f"{lane.account} cannot be reached, and its batches are not finished; the last error was: {error}",
                        hint=f"`patience` is {format_duration(self._timing.patience)}: resume later, and the batches that "
                        "were sent are found again",
                    ) from None
                seconds = max(_FIRST, backoff(error, number, lane.settings.retry_after_cap))
                self._rest(seconds, f"for {lane.account} (no answer)")

    def _rest(self, seconds: float, why: str) -> None:
        """Wait so long; raises Interrupted on a stop."""
        until = self._timing.clock() + seconds
        while (left := until - self._timing.clock()) > 0:
            self._raise_if_stopped()
            self._timing.sleep(min(left, _STEP), why)
        self._raise_if_stopped()

    def _raise_if_stopped(self) -> None:
        if self._timing.stopped():
            raise Interrupted("stopped by Ctrl-C")


def _errand(lane: Lane, ask: Attempt) -> Callable[..., RawReply]:
    """Calls on the lane's server, made for this request."""

    def errand(path: str, **sent: Any) -> RawReply:
        lane.provider.prepare()
        if sent:
            return lane.provider.post(ask, _DEADLINE, path, **sent)
        return lane.provider.get(ask, _DEADLINE, path)

    return errand


def _parts(rows: Sequence[_Row], sells: type[Sells]) -> list[list[_Row]]:
    """The same, each part no more than goes into a batch."""
    parts, size = list[list[_Row]](), 0
    for entry, ask in rows:
        bytes_of = len(sells.line(name_of_entry("0" * 2 * _NAME, ask, entry.number), ask)) + 1
        if not parts or len(parts[-1]) >= sells.most_entries or size + bytes_of > sells.most_bytes:
            parts.append([])
            size = 0
        parts[-1].append((entry, ask))
        size += bytes_of
    return parts


def _names(batch: SentBatch, rows: Sequence[_Row]) -> list[str]:
    return [name_of_entry(batch.name, ask, entry.number) for entry, ask in rows]

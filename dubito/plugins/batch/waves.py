"""Waves of batches: when all games are waiting for a reply, their requests are sent together.

A request without a reply is logged (`WaveLog`), and its game is suspended (`BatchPending`). When all games are waiting,
`run_next` sends a wave of batches and returns once all of them have ended. The games then continue from the recording.
A batch's name is logged before the batch is sent, so that a resumed run finds the batch again and sends no request
twice. The batches of a wave are sent and polled in parallel.
"""

import secrets
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, NoReturn, TypeVar, cast

from dubito.errors import Interrupted, one_line
from dubito.llm.budget import Budget
from dubito.llm.client import NotFound, Provider
from dubito.llm.limiter import Timing, backoff, format_duration
from dubito.llm.prices import CostEstimator, Tariff
from dubito.llm.protocols import parse_stored_request, read_reply
from dubito.llm.protocols.wire import as_mapping
from dubito.llm.request import (
    FINAL_FAILURES,
    AccountFault,
    Asks,
    Attempt,
    AttemptFailed,
    BatchPending,
    Cause,
    Place,
    RawReply,
    Reply,
    Request,
    TryFailed,
    parse_json,
)
from dubito.llm.settings import build_account, setting_fields
from dubito.llm.stages import log_reply
from dubito.llm.threads import map_in_threads
from dubito.llm.verdicts import error_text
from dubito.model_settings import Account, ModelSettings, embedded_kind
from dubito.plugins.batch.batches import BATCH_APIS, LIFETIME, BatchApi, BatchEntry, BatchStatus, body_text, entry_name
from dubito.plugins.batch.wave_log import Awaited, SentBatch, WaveLog
from dubito.store.model_log import ModelLog
from dubito.store.spend import Spend

_FIRST_POLL, _MAX_POLL, _POLL_GROWTH = 1.0, 60.0, 1.5  # seconds between polls of a batch
_STOP_POLL: Final = 1.0  # seconds between two checks whether to stop
_MAX_READS: Final = 3  # reads of a file with missing entries, and polls for a batch that the server lacks
_MAX_WAVES_WITHOUT_REPLY: Final = 5  # consecutive waves without a reply after which the run stops
_MIN_FAILURES: Final = 2  # waves before a request is given up, since one wave does not show whether others fail too
_NAME_BYTES: Final = 8
_DEADLINE: Final = 600.0  # time limit for a file of requests or replies, in seconds

_Row = tuple[Awaited, Attempt]
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Lane:
    """A player that uses batches."""

    account: Account
    provider: Provider
    settings: ModelSettings
    estimator: CostEstimator

    @property
    def tariff(self) -> Tariff:
        return self.estimator.tariff

    @property
    def api(self) -> type[BatchApi]:
        return BATCH_APIS[self.account.api]


@dataclass(frozen=True, slots=True)
class LaneConnection:
    """A connection to the batch API of a lane's server, for one attempt."""

    lane: Lane
    attempt: Attempt

    def get(self, path: str) -> RawReply:
        self.lane.provider.prepare()
        return self.lane.provider.get(self.attempt, _DEADLINE, path)

    def post(self, path: str, **content: Any) -> RawReply:
        self.lane.provider.prepare()
        return self.lane.provider.post(self.attempt, _DEADLINE, path, **content)


@dataclass(slots=True)
class _WaveResult:
    """A wave's results so far."""

    replies: int = 0
    last_error: str = ""
    fault: AccountFault | None = None
    # Consecutive polls at which the server did not have a batch, by its name.
    misses: dict[str, int] = field(default_factory=dict)
    # Accounts that accepted or returned a batch, which proves that the key is right.
    confirmed: set[Account] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _OpenBatch:
    """A batch that is in progress or about to be submitted."""

    batch: SentBatch
    lane: Lane
    server: LaneConnection
    new_rows: Sequence[_Row] | None = None  # its requests, if they are not logged yet


class Waves:
    """The waves of a run, shared by all players that use batches."""

    def __init__(self, log: ModelLog, budget: Budget, timing: Timing, *, suspend: bool, in_flight: int) -> None:
        """Prepare the waves. `in_flight` is the number of simultaneous calls."""
        self._log, self._wave_log, self._budget, self._timing = log, WaveLog(log), budget, timing
        self._suspend, self._in_flight = suspend, in_flight
        self._lanes: dict[str, Lane] = {}  # by player
        self._lock = threading.Lock()
        self._waves_without_reply = 0

    def add(
        self, player: str, settings: ModelSettings, provider: Provider, estimator: CostEstimator, live: Asks
    ) -> Asks:
        """Add a player, and return its stage. `live` answers its calls outside games."""
        self._lanes[player] = Lane(build_account(settings), provider, settings, estimator)
        return BatchOrLive(self, live)

    def check(self) -> None:
        """Raise AccountFault for a server without a batch API."""
        for player, lane in self._lanes.items():
            request = Request(lane.account.api, lane.api.path, {})
            server = LaneConnection(lane, Attempt(request, "", Place(player, -1, -1, 0, 0, 0, "")))
            try:
                self._retry(lane, partial(server.get, f"{lane.api.path}?limit=1"))
            except NotFound as error:
                raise AccountFault(
                    f"{lane.account} has no batches (status {error})",
                    hint="remove {setting}, or change `base_url`",
                    **setting_fields("wait", player),
                ) from None

    def wait(self, attempt: Attempt) -> NoReturn:
        """Log the request for the next wave. Raises BatchPending, or AttemptFailed if no reply can follow."""
        lane, request = self._lanes[attempt.place.player], attempt.request
        with self._lock:
            logged = self._wave_log.find(lane.account.server, request.digest, attempt.draw)
            if logged is None:
                place = attempt.place
                where = (place.player, place.game, place.deal, place.seat, place.decision, place.attempt, place.node)
                entry = Awaited(str(lane.account), request.digest, attempt.draw, *where, body=body_text(request.body))
                self._wave_log.add(entry, request.text)
                self._budget.expect(lane.tariff.worst_cost(request))
            elif logged.cause is not None:
                raise AttemptFailed(cast(Cause, logged.cause), logged.detail or "")
        raise BatchPending(f"for the next wave to {lane.account}")

    def run_next(self) -> None:
        """Send all waiting requests, and wait until these batches and any already in progress have ended.

        Raises AccountFault, or Interrupted on a stop. Batches in progress continue, and a resumed run finds them.
        """
        open_batches, result = [self._open_batch(batch) for batch in self._wave_log.batches()], _WaveResult()
        new_batches = self._build_batches(is_alone=not open_batches)
        submit = partial(self._submit_if_new, result)
        submitted = map_in_threads(submit, [*open_batches, *new_batches], self._in_flight, "wave")
        pending = [each for each in submitted if each is not None]
        seconds = _FIRST_POLL
        while pending:
            ended = map_in_threads(partial(self._poll, result), pending, self._in_flight, "wave")
            pending = [each for each, has_ended in zip(pending, ended, strict=True) if not has_ended]
            if pending:
                self._sleep(seconds, self._describe_wait(pending))
                seconds = min(_MAX_POLL, seconds * _POLL_GROWTH)
        self._raise_fault(result)

    def _raise_fault(self, result: _WaveResult) -> None:
        """Raise the fault that ends the run after this wave, if any."""
        self._waves_without_reply = 0 if result.replies else self._waves_without_reply + 1
        if result.fault is not None:
            raise result.fault
        if self._waves_without_reply >= _MAX_WAVES_WITHOUT_REPLY:
            raise AccountFault(
                f"the last {_MAX_WAVES_WITHOUT_REPLY} waves returned no replies; last error: {result.last_error}",
                hint="check the batches on the provider's website, or resume later",
            )

    def _build_batches(self, *, is_alone: bool) -> list[_OpenBatch]:
        """Build the batches of a new wave.

        Raises AccountFault if the budget does not cover any batch and none is in progress.
        """
        groups = defaultdict[tuple[Account, str, str], list[_Row]](list)
        no_budget: str | None = None
        for entry in self._wave_log.unsent_entries():
            attempt, lane = self._build_attempt(entry), self._lanes[entry.player]
            if (no_budget := self._budget.reserve_batched(lane.tariff.worst_cost(attempt.request))) is not None:
                # Later games wait for the next wave.
                break
            row = replace(entry, number=self._log.count_tries(attempt.place.key) + 1)
            groups[lane.account, attempt.request.path, attempt.request.model].append((row, attempt))
        if not groups and no_budget is not None and is_alone:
            raise AccountFault(no_budget)
        wave, batches = self._wave_log.last_wave() + 1, list[_OpenBatch]()
        for (account, *_), rows in groups.items():
            for part in _split_rows(rows, self._lanes[rows[0][0].player].api):
                batch = SentBatch(secrets.token_hex(_NAME_BYTES), wave, str(account), len(part), self._timing.time())
                batches.append(self._open_batch(batch, part))
        return batches

    def _open_batch(self, batch: SentBatch, new_rows: Sequence[_Row] | None = None) -> _OpenBatch:
        entry, attempt = (new_rows or self._rows(batch))[0]
        lane = self._lanes[entry.player]
        return _OpenBatch(batch, lane, LaneConnection(lane, attempt), new_rows)

    def _log_batch(self, batch: SentBatch, rows: Sequence[_Row]) -> None:
        """Log a batch and its tries before submitting it."""
        with self._wave_log.transaction():
            for entry, attempt in rows:
                estimator = self._lanes[entry.player].estimator
                estimate, worst = estimator.estimate(attempt.request), estimator.tariff.worst_cost(attempt.request)
                fields = (entry.player, entry.account, entry.request, entry.draw, worst)
                self._log.open_try(entry.key, *fields, priced=estimate is not None, likely=estimate)
            self._wave_log.add_batch(batch, [entry for entry, _ in rows])

    def _build_attempt(self, entry: Awaited) -> Attempt:
        # The logged request has sorted keys; the server must get the original order.
        request = replace(parse_stored_request(self._log.text(entry.request)), body=parse_json(entry.body))
        where = (entry.game, entry.deal, entry.seat, entry.decision, entry.attempt, entry.node)
        return Attempt(request, entry.draw, Place(entry.player, *where))

    def _rows(self, batch: SentBatch) -> list[_Row]:
        return [(entry, self._build_attempt(entry)) for entry in self._wave_log.batch_entries(batch.name)]

    def _submit_if_new(self, result: _WaveResult, pending: _OpenBatch) -> _OpenBatch | None:
        """Submit a batch unless the server already has it. Return it, or None if it has ended."""
        if pending.batch.id is not None:
            return pending
        batch, rows = pending.batch, pending.new_rows or self._rows(pending.batch)
        if pending.new_rows is not None:
            self._raise_if_stopped()
            self._log_batch(batch, rows)
        # If this fails, the resumed run looks for the batch by its name.
        status = self._submit(pending, rows)
        result.confirmed.add(pending.lane.account)
        self._wave_log.set_id(batch.name, status.id, status.expires or batch.since + LIFETIME)
        pending = replace(pending, batch=replace(batch, id=status.id, expires=status.expires), new_rows=None)
        return None if status.ended and self._receive(result, pending, status) else pending

    def _submit(self, pending: _OpenBatch, rows: Sequence[_Row]) -> BatchStatus:
        lane, api = pending.lane, pending.lane.api
        lines = [api.entry_line(name, each) for name, (_, each) in zip(_names(pending.batch, rows), rows, strict=True)]
        try:
            return self._retry(lane, _Submission(self, pending, rows[0][1].request.path, lines).run)
        except NotFound as error:
            raise AccountFault(
                f"{lane.account} does not accept batches (status {error})",
                hint="remove {setting}, or change `base_url`",
                **setting_fields("wait", rows[0][0].player),
            ) from None

    def find_on_server(self, pending: _OpenBatch) -> BatchStatus | None:
        known = [each.id for each in self._wave_log.batches(ended=True) + self._wave_log.batches() if each.id]
        sleep = partial(self._sleep, _MAX_POLL, self._describe_wait([pending]))
        return pending.lane.api.find(pending.server, pending.batch, known, sleep)

    def _poll(self, result: _WaveResult, pending: _OpenBatch) -> bool:
        """Return whether a batch is lost, or has ended with its results logged."""
        batch_id, api = pending.batch.id or "", pending.lane.api
        try:
            status = self._retry(pending.lane, partial(api.get_status, pending.server, batch_id))
            result.misses.pop(pending.batch.name, None)
            result.confirmed.add(pending.lane.account)
            return status.ended and self._receive(result, pending, status)
        except NotFound:
            return self._give_up_if_lost(result, pending)

    def _give_up_if_lost(self, result: _WaveResult, pending: _OpenBatch) -> bool:
        """Give up a batch that the server does not have. Raises AccountFault if the key could be the reason."""
        name, account = pending.batch.name, pending.lane.account
        result.misses[name] = result.misses.get(name, 0) + 1
        if result.misses[name] < _MAX_READS:
            return False
        is_right_key = embedded_kind(account.server) is not None or account in result.confirmed
        if not is_right_key and self._timing.time() < (pending.batch.expires or 0.0):
            raise AccountFault(
                f"{account} has no batch {pending.batch.id}",
                hint="batches are visible only to keys from the same project: resume with such a key",
            )
        self._log_results(pending.batch, self._rows(pending.batch), BatchStatus("", ended=True), {}, result)
        return True

    def _receive(self, result: _WaveResult, pending: _OpenBatch, status: BatchStatus) -> bool:
        """Log the results of a finished batch."""
        rows = self._rows(pending.batch)
        entries = {} if status.failed else self._read_entries(pending, status, rows)
        self._log_results(pending.batch, rows, status, entries, result)
        return True

    def _read_entries(self, pending: _OpenBatch, status: BatchStatus, rows: Sequence[_Row]) -> dict[str, BatchEntry]:
        """Return the first entry with each name. If some are missing, read the entries again."""
        entries, names, api = dict[str, BatchEntry](), _names(pending.batch, rows), pending.lane.api
        for number in range(_MAX_READS):
            if number:
                self._sleep(_FIRST_POLL, self._describe_wait([pending]))
            for entry in self._retry(pending.lane, lambda: list(api.read_entries(pending.server, status))):
                if entry.is_complete:
                    entries.setdefault(entry.name, entry)
            if entries.keys() >= set(names):
                break
        return entries

    def _log_results(
        self,
        batch: SentBatch,
        rows: Sequence[_Row],
        status: BatchStatus,
        entries: dict[str, BatchEntry],
        result: _WaveResult,
    ) -> None:
        """Log all results of a batch in one transaction, and settle them with the budget."""
        settlements = list[tuple[int, Spend, Spend, bool]]()
        with self._wave_log.transaction():
            for name, (entry, attempt) in zip(_names(batch, rows), rows, strict=True):
                answer = BatchEntry(name) if status.failed else entries.get(name)
                used, is_reply = self._log_entry(entry, attempt, answer, self._timing.time() - batch.since, result)
                worst = self._lanes[entry.player].tariff.worst_cost(attempt.request)
                settlements.append((entry.game, worst, used, is_reply))
                result.replies += is_reply
            self._wave_log.end_batch(batch.name)
            result.last_error = status.failed or result.last_error
        for settlement in settlements:
            self._budget.settle(*settlement)
        self._budget.wake_waiting()

    def _log_entry(
        self, entry: Awaited, attempt: Attempt, answer: BatchEntry | None, seconds: float, result: _WaveResult
    ) -> tuple[Spend, bool]:
        """Log the result of a request. Return its cost and whether it is a reply."""
        lane = self._lanes[entry.player]
        failed: TryFailed | AccountFault | None
        body = answer.body or _find_rejected_output(answer.error, attempt) if answer else None
        if body is not None:
            used, failed = self._log_body(entry, attempt, body, seconds)
            if failed is None:
                self._wave_log.remove(entry)
                return used, True
        else:
            used, failed = Spend(calls=1), TryFailed("server", "it was not processed")
            if answer is None:
                used = lane.tariff.worst_cost(attempt.request)
                failed = TryFailed("server", "its result is missing", billed=True)
            elif answer.error is not None:
                failed = lane.provider.errors.read_batch_entry(answer.status, answer.error, attempt)
            kind = failed.kind if isinstance(failed, TryFailed) else "account"
            self._log.fail_try(entry.key, kind, str(failed), used, seconds)
        was_processed = answer is None or answer.body is not None or answer.error is not None
        self._ask_again_or_give_up(entry, lane, failed, is_counted=was_processed and isinstance(failed, TryFailed))
        result.last_error = one_line(str(failed), 240)
        if isinstance(failed, AccountFault):
            result.fault = result.fault or failed
        return used, False

    def _log_body(
        self, entry: Awaited, attempt: Attempt, body: str, seconds: float
    ) -> tuple[Spend, TryFailed | AccountFault | None]:
        """Log a body. Return its cost, and the error if it is not a reply."""
        lane, received = self._lanes[entry.player], RawReply(200, body)
        _, used, failed = log_reply(
            self._log, entry.key, attempt, received, lane.estimator, lane.provider.errors, seconds
        )
        return used, failed

    def _ask_again_or_give_up(
        self, entry: Awaited, lane: Lane, failed: TryFailed | AccountFault, *, is_counted: bool
    ) -> None:
        """Ask again in the next wave, or give up the request.

        A request is unreachable if it failed in several waves in which others were answered. If none are answered, the
        run stops first.
        """
        is_rate_limit = isinstance(failed, TryFailed) and failed.kind == "rate_limit"
        failures = entry.failures + (is_counted and not is_rate_limit)
        if isinstance(failed, TryFailed) and failed.kind in FINAL_FAILURES:
            self._wave_log.give_up(entry, failed.kind, str(failed))
        elif failures >= max(_MIN_FAILURES, lane.settings.tries) and not (self._suspend or self._waves_without_reply):
            self._wave_log.give_up(entry, "unreachable", f"failed in {failures} waves; last error: {failed}")
        else:
            self._wave_log.send_again(entry, failures)

    def _describe_wait(self, pending: Sequence[_OpenBatch]) -> str:
        batches = [each.batch for each in pending]
        accounts = ", ".join(sorted({batch.account for batch in batches}))
        since = format_duration(max(0.0, self._timing.time() - min(batch.since for batch in batches)))
        return f"for {sum(batch.entries for batch in batches):,} replies from {accounts} ({since})"

    def _retry(self, lane: Lane, call: Callable[[], _Result]) -> _Result:
        """Return the call's result. Repeat the call while it fails, until patience runs out."""
        began, number = self._timing.clock(), 0
        while True:
            self._raise_if_stopped()
            try:
                return call()
            except TryFailed as error:
                if error.kind in FINAL_FAILURES:
                    raise
                number += 1
                if self._timing.clock() - began >= self._timing.patience:
                    raise AccountFault(
                        f"{lane.account} cannot be reached, and its batches are unfinished; last error: {error}",
                        hint=(
                            f"`patience` is {format_duration(self._timing.patience)}: resume later to collect the "
                            "batches that were sent"
                        ),
                    ) from None
                seconds = max(_FIRST_POLL, backoff(error, number, lane.settings.retry_after_cap))
                self._sleep(seconds, f"for {lane.account} (no answer)")

    def _sleep(self, seconds: float, why: str) -> None:
        """Sleep. Raises Interrupted on a stop."""
        until = self._timing.clock() + seconds
        while (left := until - self._timing.clock()) > 0:
            self._raise_if_stopped()
            self._timing.sleep(min(left, _STOP_POLL), why)
        self._raise_if_stopped()

    def _raise_if_stopped(self) -> None:
        if self._timing.stopped():
            raise Interrupted("stopped by Ctrl-C")


@dataclass(frozen=True, slots=True)
class BatchOrLive:
    """A stage that batches the games' requests but sends preflight requests immediately."""

    waves: Waves
    live: Asks

    def ask(self, attempt: Attempt) -> Reply:
        return self.waves.wait(attempt) if attempt.place.is_in_game else self.live.ask(attempt)


@dataclass(slots=True)
class _Submission:
    """Submits a batch. After a failure or in a resumed run, first looks for the batch on the server."""

    waves: Waves
    pending: _OpenBatch
    path: str
    lines: Sequence[bytes]
    may_exist: bool = field(init=False)

    def __post_init__(self) -> None:
        self.may_exist = self.pending.new_rows is None

    def run(self) -> BatchStatus:
        status = self.waves.find_on_server(self.pending) if self.may_exist else None
        self.may_exist = True
        return status or self.pending.lane.api.submit(
            self.pending.server, self.pending.batch.name, self.path, self.lines
        )


def _split_rows(rows: Sequence[_Row], api: type[BatchApi]) -> list[list[_Row]]:
    """Split the rows into parts that each fit into one batch."""
    parts, size = list[list[_Row]](), 0
    for entry, attempt in rows:
        name = entry_name("0" * 2 * _NAME_BYTES, attempt, entry.number)
        line_size = len(api.entry_line(name, attempt)) + 1
        if not parts or len(parts[-1]) >= api.max_entries or size + line_size > api.max_bytes:
            parts.append([])
            size = 0
        parts[-1].append((entry, attempt))
        size += line_size
    return parts


def _names(batch: SentBatch, rows: Sequence[_Row]) -> list[str]:
    return [entry_name(batch.name, attempt, entry.number) for entry, attempt in rows]


def _find_rejected_output(error: Any, attempt: Attempt) -> str | None:
    """Return an entry's error as a body if it reports that the model's output is invalid."""
    body = error_text(error if "error" in as_mapping(error) else {"error": error})
    return body if read_reply(attempt.request.protocol, RawReply(200, body)).finish == "invalid" else None

"""From a question to a reply: the stages of a call, each a function around the next, composed in `Pipeline.asker`.

    taped(cached(retried(beginnings.turn(budget.in_turn(gate.before_budget(budget.around(gate.after_budget(logged(provider)))))))))

A decision (one node) takes up to 1 + `reasks` attempts: the question, then re-asks. An attempt takes as many tries,
one HTTP call each, as the account's troubles want. The gate stands on both sides of the budget: a try
waits for its time before the budget reserves, and is looked at again after that.

`Pipeline` is a run's; `asker` gives a player's way in. A finished attempt is on the tape (the run's
`attempts`) with its reply or its cause; nothing is ever used that is not on disk.

Before the first game, `preflight.py` asks what the game will ask.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count
from shlex import quote
from threading import Lock
from typing import Final, cast

from dubito.errors import RunStopped, UsageError, one_line
from dubito.game import Bool, Node
from dubito.llm.answers import form_of
from dubito.llm.budget import Budget, Caps
from dubito.llm.cache import ReplyCache
from dubito.llm.client import Provider, error_in_place, instead_in_words
from dubito.llm.gate import Gate, MakeAttempt, MakeTry, Timing, retried
from dubito.llm.prices import Asked, Likely, Past, Price, Tariff, beyond
from dubito.llm.protocols import Exchange, build_request, kept_reply, read_reply
from dubito.llm.request import (
    AccountFault,
    Api,
    Ask,
    AttemptFailed,
    Cause,
    Interrupted,
    Place,
    RawReply,
    Reply,
    Request,
    TryFailed,
)
from dubito.llm.settings import Account, ModelSettings, account_of, has_limits_by_model, is_house, key_of
from dubito.llm.warm import Beginnings
from dubito.llm.waves import Lane, Waves
from dubito.store.model_log import ModelLog, Spend, TapedAttempt
from dubito.store.wave_log import WaveLog

_PROBE: Final = -2  # and that of the probes, which ask whether an account answers at all
_PROBE_KEY: Final = (_PROBE, 0, 0, 0)  # all of them are tries of one attempt
_SYSTEM: Final = "This is a check of the connection, before a card game begins."
_USER: Final = "Reply with the JSON object that you are asked for, with `answer` true."
_PROBE_FORM: Final = form_of(("answer",), Node("probe", "", Bool()))
_PROBE_QUESTIONS: Final = {"questions": [{"type": "predicate", "name": "probe", "instructions": "This can be read."}]}


def probe_of(name: str, settings: ModelSettings) -> Ask:
    return Ask(_probe_request(settings), "probe", Place(name, _PROBE, _PROBE, 0, 0, 0, "probe"))


def _probe_request(settings: ModelSettings) -> Request:
    schema = _PROBE_QUESTIONS if settings.api == "decisions" else _PROBE_FORM.schema
    exchange = Exchange(_SYSTEM, _USER, schema)
    return build_request(settings, exchange, "dubito-preflight")


@dataclass(frozen=True, slots=True)
class PipelineOptions:
    """What a run says about its calls; none of it can change a completed run's results."""

    in_flight: int
    offline: bool
    suspend: bool  # `provider_errors: suspend`
    house_address: Callable[[Api, str], str]  # (api, `house...`) -> base URL of the embedded server
    timing: Timing
    counted: Callable[[str], None] = lambda origin: None  # told the origin of each reply, for the progress line
    waits: bool = False  # whether its games can wait for waves


class Pipeline:
    """Everything a run's calls share: cache, budget, log, and a gate and a client for each account."""

    def __init__(self, log: ModelLog, cache: ReplyCache, caps: Caps, options: PipelineOptions) -> None:
        self._log, self._cache, self._options = log, cache, options
        caps = Caps() if options.offline else caps  # no call is made
        past, kept = Past(log.ended(), *log.in_games()), WaveLog(log)
        held = kept.reserved()  # for what is under way
        spent, assumed = log.spent() - held, log.spent(assumed=True) - held
        self.budget = Budget(caps, options.timing.waiting, spent, past, assumed, held)
        timing, at_once = options.timing, options.in_flight
        self.waves = Waves(log, kept, self.budget, timing, suspend=options.suspend, in_flight=at_once)
        self._goes_on = options.suspend or log.begun()  # there may be something on the tape
        self._gates: dict[tuple[Account, str | None], Gate] = {}
        self._probes = count(log.tries(_PROBE_KEY) + 1)
        self._providers: dict[Account, Provider] = {}
        self._beginnings: dict[Account, Beginnings] = {}
        self._likely: dict[str, Likely] = {}  # by player
        self._own = set[tuple[str, str, str]]()  # what this run has asked itself: server, request, draw
        self._lock = Lock()

    def asker(self, name: str, settings: ModelSettings, price: Price | None) -> MakeAttempt:
        """A player's way to ask; raises UsageError if its key is not set and calls are allowed."""
        account = account_of(settings)
        options, tariff = self._options, Tariff(price, settings.max_output if settings.api != "decisions" else 0)
        gate = self._gate(account, settings.model)
        if options.offline:
            live: MakeAttempt = partial(self._offline_miss, account)
        else:
            provider, beginnings = self._provider(account, name), self._beginnings_of(account)
            likely = Likely(tariff, self._log.replies_of(name) if self._goes_on else ())
            self._likely[name] = likely
            logged = self._logged(provider, account, settings, likely)
            sending = gate.after_budget(logged, settings.retry_after_cap)
            paced = self.budget.in_turn(gate.before_budget(self.budget.around(sending, tariff)), tariff)

            def tried(ask: Ask, number: int) -> Reply:
                provider.prepare()  # slow the first time, so before the pace says when a call goes out
                with beginnings.turn(ask.request):
                    return paced(ask, number)

            live = retried(
                tried,
                settings,
                gate,
                options.timing.sleep,
                probe=None if options.suspend else lambda: tried(probe_of(name, settings), next(self._probes)),
                made=lambda ask: self._log.tries(ask.place.key) if self._goes_on else 0,
                suspend=options.suspend,
            )
            if settings.wait is not None:
                live = self._waiting(name, settings, price, provider, live)
        return self._taped(self._cached(live, account), account)

    def _waiting(
        self, name: str, settings: ModelSettings, price: Price | None, provider: Provider, live: MakeAttempt
    ) -> MakeAttempt:
        """The way to ask of a player who waits for waves: only before the first game it asks live."""
        if not self._options.waits:
            raise UsageError(
                f"{one_line(name)}: wait: only the games of `dubito run` can wait for a batch: take it out of its entry"
            )
        tariff = Tariff(price, settings.max_output, batch=True)
        replies = self._log.replies_of(name) if self._goes_on else ()
        lane = Lane(account_of(settings), provider, settings, Likely(tariff, replies))
        self._likely[name] = lane.likely
        self._goes_on = True  # a game that waits is played again from the tape
        self.waves.joins(name, lane)
        return lambda ask: self.waves.wait(ask) if ask.place.in_game else live(ask)

    def _gate(self, account: Account, model: str) -> Gate:
        with self._lock:
            key = (account, model if has_limits_by_model(account) else None)
            if key not in self._gates:
                self._gates[key] = Gate(account, self._options.in_flight, self._options.timing)
            return self._gates[key]

    @property
    def paced(self) -> list[str]:
        with self._lock:
            return [paced for gate in self._gates.values() if (paced := gate.paced) is not None]

    @property
    def put_back(self) -> set[int]:
        return set().union(*(gate.put_back for gate in self._gates.values()))

    def try_again(self) -> None:
        for gate in self._gates.values():
            gate.try_again()

    def close(self) -> None:
        """Put back what an outage took, say what lost calls probably cost, close clients and cache."""
        try:
            if self.put_back:
                self._log.reopen(self.put_back)
            for player, likely in self._likely.items():
                if (rates := likely.rates) is not None:
                    self._log.assume(player, likely.tariff.max_output, *rates)
        finally:
            for provider in self._providers.values():
                provider.close()
            self._cache.close()

    def _beginnings_of(self, account: Account) -> Beginnings:
        with self._lock:
            return self._beginnings.setdefault(account, Beginnings(self._options.timing, self._check_stop))

    def _provider(self, account: Account, name: str) -> Provider:
        with self._lock:
            if account not in self._providers:
                house = is_house(account.server)
                address = self._options.house_address(account.api, account.server) if house else account.server
                key = key_of(account, name)
                self._providers[account] = Provider(account, address, key, self._options.in_flight)
            return self._providers[account]

    def _offline_miss(self, account: Account, ask: Ask) -> Reply:
        place, run, cache = ".".join(map(str, ask.place.key)), str(self._log.folder), str(self._cache.folder)
        if kept := self._cache.stored(account.server, ask.request, ask.draw):
            fault = read_reply(ask.request.protocol, kept).failure
            came = instead_in_words(fault.instead, ask.request.protocol) if fault and fault.instead else "an error"
            raise AccountFault(
                f"--offline: the cache has {came} where the reply for {ask.place} should be; run once without "
                f"--offline, which asks anew; `dubito cache drop --cause malformed --cache {quote(cache)}` drops it"
            )
        raise AccountFault(
            f"--offline: the cache has no reply for {ask.place}; run once without --offline, or with the --cache that "
            f"has it; `dubito cache explain {place} --run {quote(run)} --cache {quote(cache)}` says what it has instead"
        )

    def _logged(self, provider: Provider, account: Account, settings: ModelSettings, likely: Likely) -> MakeTry:
        """The try's row before the call, the body before anything reads it."""
        check = self.budget.check_total if self._log.is_shared else None

        def logged(ask: Ask, number: int) -> Reply:
            key, worst = (*ask.place.key, number), likely.tariff.worst(ask.request)
            start, usual = self._options.timing.clock(), likely.of(ask.request)
            asked = (ask.place.player, str(account), ask.request.digest, ask.draw)
            self._log.try_opens(key, *asked, worst, priced=usual is not None, likely=usual, check=check)
            try:
                received = provider(ask, number, settings.deadline)
            except (TryFailed, AccountFault) as error:
                kind, billed = (error.kind, error.billed) if isinstance(error, TryFailed) else ("account", False)
                used = worst if billed else Spend(calls=1)
                self._log.try_failed(key, kind, str(error), used, self._options.timing.clock() - start)
                raise
            reply = read_reply(ask.request.protocol, received)
            usage, price = reply.usage, likely.tariff.price
            used = likely.tariff.of(usage, reply.charges, Asked.by(ask.request)) if usage else worst
            failed = error_in_place(provider, reply, ask, used)
            used = (failed.spent if failed else None) or used
            self._log.try_received(
                key,
                received.status,
                received.raw,
                received.headers,
                usage=usage.counts if usage else None,
                spent=used,
                saved=price.saved(usage) if usage and price else 0,
                seconds=self._options.timing.clock() - start,
                beyond=beyond(used, worst),
                failed=(failed.kind if isinstance(failed, TryFailed) else "account", str(failed)) if failed else None,
            )
            if failed:
                raise failed
            likely.learns(len(ask.request.text), usage, used.usd)
            return reply

        return logged

    def _cached(self, inner: MakeAttempt, account: Account) -> MakeAttempt:
        waiting = partial(self._options.timing.waiting, "for another process that asks the same")

        def cached(ask: Ask) -> Reply:
            key = (account.server, ask.request.digest, ask.draw)
            replies: list[Reply] = []  # as read, for it takes as long as all the rest; the last one is used

            def asked() -> RawReply:
                replies.append(self._paid(account, ask) or inner(ask))
                self._own.add(key)
                return replies[-1].received

            def serves(received: RawReply) -> bool:
                replies.append(read_reply(ask.request.protocol, received, "cache"))
                # A filter's stop may have been a passing fault of the server, so another run's is asked anew.
                is_old_refusal = replies[-1].finish == "refusal" and key not in self._own and not self._options.offline
                return replies[-1].failure is None and not is_old_refusal

            self._cache.once(account.server, ask.request, ask.draw, asked, waiting, self._check_stop, serves)
            return replies[-1]

        return cached

    def _paid(self, account: Account, ask: Ask) -> Reply | None:
        paid = self._log.paid_reply(account.server, ask.request.digest, ask.draw) if self._goes_on else None
        reply = read_reply(ask.request.protocol, paid) if paid else None
        return reply if reply and reply.failure is None else None

    def _check_stop(self) -> None:
        if self._options.timing.stopped():
            raise Interrupted("stopped by Ctrl-C")

    def _taped(self, inner: MakeAttempt, account: Account) -> MakeAttempt:
        def taped(ask: Ask) -> Reply:
            self._check_stop()
            self.budget.asked(ask.place.game)
            kept = self._log.finished_attempt(ask.place.key) if self._goes_on and ask.place.in_game else None
            reply = self._from_tape(kept, ask) if kept is not None else self._recorded(inner, account, ask)
            if ask.place.game >= 0:
                self._options.counted(reply.origin)
            return reply

        return taped

    def _recorded(self, inner: MakeAttempt, account: Account, ask: Ask) -> Reply:
        """Make the attempt, and put its outcome on the tape; ended by anything else it stays open, to be made again."""
        reply, cause = None, None
        try:
            return (reply := inner(ask))
        except AttemptFailed as error:
            cause = error.cause
            raise
        finally:
            self._log.attempt(
                ask.place.key,
                player=ask.place.player,
                server=account.server,
                request=ask.request.text,
                draw=ask.draw,
                reply=reply.digest if reply else None,
                raw=reply.received.raw if reply else None,
                cause=cause if ask.place.in_game else None,  # a preflight without a reply is made again
                origin=reply.origin if reply else "live",
                usage=reply.usage.counts if reply and reply.usage else None,
                model=reply.model if reply else None,
            )

    def _from_tape(self, kept: TapedAttempt, ask: Ask) -> Reply:
        """What came of the attempt when it was made; raises AttemptFailed as it did then.

        Raises RunStopped if the tape has another question there: code or files were changed in between.
        """
        if (kept.request, kept.draw) != (ask.request.digest, ask.draw):
            raise RunStopped(
                f"{ask.place}: this request differs from the one this run made before: a file or the version was "
                "changed; resume with the files and the version that it began with, or choose another --output"
            )
        if kept.raw is None:
            failed = AttemptFailed(cast(Cause, kept.cause), "recorded outcome")
            failed.origin = "tape"
            raise failed
        return kept_reply(ask.request.protocol, self._log.text(kept.raw))

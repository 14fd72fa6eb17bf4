"""The checks that `dubito replay` performs in addition to playing the games: sums, prompts, texts and model calls.

Each check raises Differs. `UNPROVEN` in `store/run_db.py` lists what is not checked, and docs/runs.md explains it.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from dubito.errors import BotError, GameError, one_line
from dubito.experiment.play import draw_lineup
from dubito.experiment.stop import replay_decision
from dubito.experiment.stored import Run
from dubito.game.streams import DealStreams
from dubito.llm.prices import Tariff
from dubito.llm.prompts import Prompt
from dubito.llm.protocols import find_protocol, parse_stored_request, read_recorded_reply, read_reply
from dubito.llm.recording import Differs, RecordingEnded, ReplayRecording
from dubito.llm.request import Place, RawReply, Request, compute_draw
from dubito.llm.settings import build_account
from dubito.model_settings import ModelSettings
from dubito.stats.tally import Tally, read_tally
from dubito.store.model_log import ModelLog
from dubito.store.run_db import PROGRAM_SERVER
from dubito.store.spend import TOKENS

if TYPE_CHECKING:
    from dubito.experiment.models import Models

_DATABASE: Final = "run.db"
_MODEL_TABLES: Final = ("attempts", "tries", "decisions", "ended", "texts", "prompts", "awaited", "batches")
_BEYOND: Final = "beyond"

# The text of a request is written with its attempt, after the call, so it may be missing in a killed run.
_REQUESTS_OF_TRIES: Final = (
    "SELECT request FROM tries WHERE (game, seat, decision, attempt) IN "
    "(SELECT game, seat, decision, attempt FROM attempts)"
)


def check_sums(run: Run, everything: Tally, complete: Tally) -> None:
    """Compare the stored sums with the replayed ones, over all games and over complete chunks."""
    expected: dict[Literal["all", "complete"], Tally] = {"all": everything} if everything.games else {}
    if complete.games:
        expected["complete"] = complete
    stored = {chunks for (chunks,) in run.db.read("SELECT chunks FROM tally")}
    if stored != {*expected}:
        raise Differs(_DATABASE, "its sums do not match its games", [f"recorded: sums over {sorted(stored)}"])
    decided = {} if run.planned.stop is None else replay_decision(run).test.rows()
    for chunks, replayed in expected.items():
        deals = replayed.games // run.planned.games_per_deal
        replayed.tables["decided"] = {pair: row for pair, row in decided.items() if row[0] <= deals}
        sums = read_tally(run.db, run.game.results, chunks)
        _compare_tables(sums, replayed)
        if sums.to_json() != run.db.sums_json(chunks) or run.db.has_changed_sums():
            raise Differs(_DATABASE, "its sums were changed or are damaged", [])


def _compare_tables(stored: Tally, replayed: Tally) -> None:
    for table in {**replayed.tables, **stored.tables}:
        recorded, recomputed = stored.tables.get(table, {}), replayed.tables.get(table, {})
        for key in sorted({*recorded, *recomputed}):
            if recorded.get(key) != recomputed.get(key):
                details = [f"{table} {list(key)}", f"recorded: {recorded.get(key)}", f"replayed: {recomputed.get(key)}"]
                raise Differs(_DATABASE, "its sums do not match its games", details)


def check_no_calls(run: Run) -> None:
    for table in _MODEL_TABLES:
        if run.db.read(f"SELECT 1 FROM {table} LIMIT 1"):  # noqa: S608
            raise Differs(_DATABASE, f"it has {table}, although no models play in this run", [])


def replay_uncounted_games(run: Run, models: "Models") -> None:
    """Replay the games that are not counted yet, each until its recording ends."""
    experiment, ended = run.experiment, run.model_log.ended_games()
    rows = run.db.read(
        "SELECT game FROM decisions UNION SELECT game FROM attempts WHERE game >= 0 UNION SELECT game FROM ended"
    )
    for game in sorted(game for (game,) in rows):
        if game in experiment.game_numbers:
            continue
        if game not in run.planned.game_numbers:
            raise Differs(f"game {game}", "the run has no such game", [])
        deal, place = divmod(game, experiment.games_per_deal)
        streams = DealStreams(experiment.seed, deal)
        try:
            run.player.play_with_models(deal, draw_lineup(experiment, deal, place, streams), streams, models)
        except (RecordingEnded, BotError, GameError):
            if game in ended:
                raise


def check_calls(run: Run, recording: ReplayRecording) -> None:
    """Check the calls, prompts and texts of a run after its games have been compared."""
    games = run.experiment.game_numbers
    counts = {
        "decisions of models": ("decisions", "1", recording.decisions),
        "finished attempts": ("attempts", "game >= 0 AND (reply IS NOT NULL OR cause IS NOT NULL)", recording.attempts),
        "unfinished attempts in finished games": (
            "attempts",
            f"game BETWEEN {games.start} AND {games.stop - 1} AND reply IS NULL AND cause IS NULL",
            0,
        ),
        "finished games": ("ended", f"game BETWEEN {games.start} AND {games.stop - 1}", len(games)),
    }
    for what, (table, where, replayed) in counts.items():
        ((stored,),) = run.db.read(f"SELECT count(*) FROM {table} WHERE {where}")  # noqa: S608
        if stored != replayed:
            raise Differs(_DATABASE, f"it has {stored:,} {what} instead of {replayed:,}", [])
    broken = run.db.find_broken_seal()
    if broken is not None:
        table, key = broken
        raise Differs(_DATABASE, f"a row of {table} was changed or is damaged", [f"its key: {_format_key(key)}"])
    check_prompts(run)
    # The digest of every text, and that every text is there.
    log = ModelLog(run.db)
    for (digest,) in run.db.read("SELECT digest FROM texts"):
        log.text(digest)
    used = ["SELECT request FROM attempts", "SELECT raw FROM attempts WHERE raw IS NOT NULL"]
    used += [_REQUESTS_OF_TRIES, "SELECT raw FROM tries WHERE raw IS NOT NULL", "SELECT request FROM awaited"]
    query = f"SELECT * FROM ({' UNION '.join(used)}) EXCEPT SELECT digest FROM texts LIMIT 1"  # noqa: S608
    for (digest,) in run.db.read(query):
        raise Differs(_DATABASE, f"the text {one_line(digest[:16])} is missing", [])
    calls = _Calls(run)
    calls.check_attempts()
    calls.check_tries()


def check_prompts(run: Run) -> None:
    """Compare the stored prompts with the digests in the players' settings."""
    players = {spec.prompt: spec.name for spec in run.planned.players if spec.prompt}
    for digest, player in players.items():
        sources = run.model_log.prompt(digest)
        if not sources or Prompt(Path("stored"), sources, run.game).digest != digest:
            name = one_line(player, 60)
            raise Differs(_DATABASE, f"{name}'s prompt does not match its digest", [])
    for (digest,) in run.db.read("SELECT DISTINCT digest FROM prompts"):
        if digest not in players:
            raise Differs(_DATABASE, f"no player uses the prompt {one_line(str(digest), 20)}", [])


class _Try(NamedTuple):
    """The verifiable columns of `tries`."""

    game: int
    seat: int
    decision: int
    attempt: int
    number: int
    player: str
    account: str
    request: str
    draw: str
    state: str
    kind: str | None
    error: str | None
    status: int | None
    raw: str | None
    usage: str | None
    tokens: int
    assumed: int

    @property
    def name(self) -> str:
        return f"try {self.number} of {'.'.join(map(str, self[:4]))}"


class _Calls:
    """Compares a run's attempts and tries with its players' settings and with the texts."""

    def __init__(self, run: Run) -> None:
        self._run, self._log = run, run.model_log
        self._settings = {spec.name: model.settings for spec, model in run.resolved.models}
        self._programs = {spec.name for spec in run.resolved.programs}
        self._names = lru_cache(maxsize=1)(self._read_players)
        self._request = lru_cache(maxsize=64)(self._read_request)

    def check_attempts(self) -> None:
        """Check the attempts of preflights, and the origin of each reply."""
        for player, server in self._run.db.read("SELECT DISTINCT player, server FROM attempts"):
            expected = PROGRAM_SERVER
            if player not in self._programs:
                expected = build_account(self._get_settings(player, "an attempt")).server
            if server != expected:
                raise Differs(_DATABASE, f"{one_line(player)} does not use the server {one_line(server)}", [])
        empty = " AND ".join(f"{name} IS NULL" for name in ("raw", "model", *TOKENS))
        received = "SELECT 1 FROM tries t WHERE t.state = 'received' AND t.raw = a.raw AND"
        same_key = "(t.game, t.seat, t.decision, t.attempt) = (a.game, a.seat, a.decision, a.attempt)"
        wrong = {
            "an attempt without a reply has data of a reply": f"reply IS NULL AND NOT ({empty} AND origin = 'live')",
            "an attempt of the preflight has a cause of failure": "game < 0 AND cause IS NOT NULL",
            "an attempt has an unknown origin": "origin NOT IN ('live', 'cache')",
            "no call received a reply that is marked as live": (
                f"origin = 'live' AND server != '{PROGRAM_SERVER}' AND reply IS NOT NULL AND NOT EXISTS "
                f"({received} (t.request, t.draw) = (a.request, a.draw))"
            ),
            "a call received a reply that is marked as cached": (
                f"origin = 'cache' AND game >= 0 AND EXISTS ({received} {same_key})"
            ),
        }
        for what, where in wrong.items():
            key = "game, seat, decision, attempt"
            for row in self._run.db.read(f"SELECT {key} FROM attempts a WHERE {where} LIMIT 1"):  # noqa: S608
                raise Differs(f"attempt {_format_key(row)}", what, [])
        columns = f"player, request, reply, raw, model, {', '.join(TOKENS)}"
        for player, request, digest, raw, model, *usage in self._run.db.read(
            f"SELECT {columns} FROM attempts WHERE game < 0 AND reply IS NOT NULL"  # noqa: S608
        ):
            reply = read_recorded_reply(self._request(request).protocol, self._log.text(raw) if raw else None)
            counts = reply.usage.counts if reply.usage else (None,) * len(TOKENS)
            if (reply.digest, tuple(usage)) != (digest, counts) or model not in (reply.model, None):
                raise Differs(
                    f"the preflight of {one_line(player)}", "its reply does not match its recorded details", []
                )

    def check_tries(self) -> None:
        """Check every call, including that the tries of an attempt are numbered from 1."""
        columns = ", ".join("try" if name == "number" else name for name in _Try._fields)
        before, number = None, 0
        for row in self._run.db.read(f"SELECT {columns} FROM tries ORDER BY game, seat, decision, attempt, try"):  # noqa: S608
            call = _Try(*row)
            number = number + 1 if call[:4] == before else 1
            before = call[:4]
            if call.number != number and call.game >= -1:
                raise Differs(call.name, f"it should be try {number}", [])
            self._check_try(call)

    def _check_try(self, call: _Try) -> None:
        settings = self._get_settings(call.player, call.name)
        reply = None if call.raw is None else read_reply(settings.api, RawReply(200, self._log.text(call.raw)))
        usage, worst = reply.usage if reply else None, call.tokens
        if self._run.db.read("SELECT 1 FROM texts WHERE digest = ?", (call.request,)):
            tariff = Tariff(None, settings.max_output if find_protocol(settings.api).writes_text else 0)
            worst = tariff.worst_cost(self._request(call.request)).tokens
        used = usage.input + usage.output if usage else worst
        states = {"open", "failed"}
        if reply is not None:
            states = {"received"} if reply.non_reply is None else {"failed"}
        expected: dict[str, tuple[object, set[Any]]] = {
            "account": (call.account.rpartition(" (")[0], {build_account(settings).server}),
            "usage": (call.usage, {json.dumps(usage.counts) if usage else None}),
            "state": (call.state, states),
            "tokens": (call.tokens, {used} if call.state in ("received", "open") else {0, used}),
            "assumed": (call.assumed, {int(usage is None and call.tokens > 0)}),
            "kind": (call.kind is None, {call.state == "open" or (call.state == "received" and call.kind is None)}),
            "error": (call.error is None, {call.kind is None}),
            "status": (call.status is None, {reply is None}),
        }
        if call.state == "received":
            expected["kind"] = (call.kind, {_BEYOND} if call.tokens > worst else {None, _BEYOND})
        if call.game >= 0:
            deal = self._run.planned.deal_of(call.game)
            place = Place(call.player, call.game, deal, call.seat, call.decision, call.attempt, "")
            expected["draw"] = (call.draw, {compute_draw(self._run.planned.seed, place, settings.sample)})
            expected["player"] = (call.player, {self._names(call.game).get(call.seat)})
        for column, (stored, allowed) in expected.items():
            if stored not in allowed:
                details = [f"recorded: {stored}", f"expected: {' or '.join(sorted(map(str, allowed)))}"]
                raise Differs(call.name, f"its {column} does not match its request, reply and settings", details)

    def _get_settings(self, player: str, where: str) -> ModelSettings:
        if player not in self._settings:
            raise Differs(where, f"the run has no model player {one_line(player, 60)!r}", [])
        return self._settings[player]

    def _read_request(self, digest: str) -> Request:
        return parse_stored_request(self._log.text(digest))

    def _read_players(self, game: int) -> Mapping[int, str]:
        experiment = self._run.experiment
        deal, place = divmod(game, experiment.games_per_deal)
        lineup = draw_lineup(experiment, deal, place, DealStreams(experiment.seed, deal))
        return {seat: experiment.players[player].name for seat, player in enumerate(lineup.seats)}


def _format_key(key: tuple[Any, ...]) -> str:
    return one_line(".".join(map(str, key)), 120)

"""The calls in `run.db`: reserved before they are sent, settled once, with consistent sums."""

import zlib
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dubito.errors import RunStopped
from dubito.store.model_log import Decision, ModelLog, RawReply
from dubito.store.run_db import RunDb
from dubito.store.spend import PlayerLog, Spend

WORST = Spend(1, 9000, 77_000)
USED = Spend(1, 120, 1_234)
USAGE = (100, 60, 10, 20, 5)
ATTEMPT = (3, 1, 4, 0)
TRY = (*ATTEMPT, 1)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[RunDb]:
    with RunDb.create(tmp_path / "run.db") as db:
        yield db


@pytest.fixture
def log(db: RunDb) -> ModelLog:
    return ModelLog(db)


def opens(log: ModelLog, key: tuple[int, ...] = TRY, player: str = "one", priced: bool = True) -> None:
    log.open_try(
        key, player, "a server (A_KEY)", "a request", "d", WORST, priced=priced, likely=9_000 if priced else None
    )


def received(log: ModelLog, key: tuple[int, ...] = TRY, **changes: Any) -> None:
    fields: dict[str, Any] = {"usage": USAGE, "spent": USED, "saved": 55, "seconds": 0.5}
    log.receive_try(key, 200, "a body", {"request-id": "1"}, **fields | changes)


def record_attempt(log: ModelLog, key: tuple[int, ...] = ATTEMPT, **changes: Any) -> None:
    fields: dict[str, Any] = {"player": "one", "server": "house", "request": "what was asked", "draw": "d"}
    fields |= {"reply": "digest", "raw": "a body", "cause": None, "origin": "live", "usage": USAGE}
    log.record_attempt(key, **fields | changes)


def row(db: RunDb) -> tuple[Any, ...]:
    ((*found,),) = db.read("SELECT state, kind, tokens, picodollars, assumed, saved FROM tries")
    return tuple(found)


def test_open_try_counts_as_its_worst_case(db: RunDb, log: ModelLog) -> None:
    opens(log)
    assert row(db) == ("open", None, 9000, 77_000, True, 0)
    assert log.spent() == WORST


def test_reply_replaces_the_worst_case(db: RunDb, log: ModelLog) -> None:
    opens(log)
    received(log)
    assert row(db) == ("received", None, 120, 1_234, False, 55)
    assert log.spent() == USED
    ((digest, headers, usage),) = db.read("SELECT raw, headers, usage FROM tries")
    assert (log.text(digest), headers, usage) == ("a body", '{"request-id": "1"}', "[100, 60, 10, 20, 5]")


def test_reply_without_usage_keeps_the_worst_case(db: RunDb, log: ModelLog) -> None:
    opens(log)
    received(log, usage=None, spent=WORST, saved=0)
    assert row(db) == ("received", None, 9000, 77_000, True, 0)


@pytest.mark.parametrize(
    ("spent", "counted"),
    [(Spend(1), ("failed", "server", 0, 0, False, 0)), (WORST, ("failed", "server", 9000, 77_000, True, 0))],
)
def test_failure_costs_nothing_or_the_worst_case(
    db: RunDb, log: ModelLog, spent: Spend, counted: tuple[Any, ...]
) -> None:
    opens(log)
    log.fail_try(TRY, "server", "status 500", spent, 0.5)
    assert row(db) == counted
    assert log.spent() == spent
    assert log.count_failures() == {"server": 1}


def test_cost_is_unknown_without_a_price(db: RunDb, log: ModelLog) -> None:
    opens(log, priced=False)
    opens(log, (*ATTEMPT, 2), priced=False)
    received(log)
    log.fail_try((*ATTEMPT, 2), "connection", "lost", WORST, 0.5)
    assert db.read("SELECT picodollars FROM tries") == [(None,), (None,)]
    assert log.spent() == Spend(2, 120 + 9000, 0)
    assert log.player("one").picodollars is None


def test_repeated_try_is_refused(log: ModelLog) -> None:
    opens(log)
    with pytest.raises(RunStopped):
        opens(log)
    assert log.spent() == WORST


def test_totals_count_only_the_players_calls(db: RunDb, log: ModelLog) -> None:
    """Preflight calls count as calls of the player but not as decisions. Other players' calls do not count."""
    for key, player in (((-1, 0, 0, 0, 1), "one"), (TRY, "one"), ((*ATTEMPT, 2), "one"), ((3, 2, 0, 0, 1), "other")):
        opens(log, key, player)
    for key in ((-1, 0, 0, 0, 1), (*ATTEMPT, 2), (3, 2, 0, 0, 1)):
        received(log, key)
    log.fail_try(TRY, "deadline", "late", WORST, 0.5)
    record_attempt(log, (-1, 0, 0, 0))
    record_attempt(log)
    record_attempt(log, (3, 1, 4, 1), origin="cache")
    record_attempt(log, (3, 1, 5, 0), reply=None, raw=None, usage=None, cause="unreachable")
    record_attempt(log, (4, 1, 0, 0), reply=None, raw=None, usage=None)
    record_attempt(log, (3, 2, 0, 0), player="other")
    log.decision(Decision(3, 1, 4, 9, "C", True, "model_after_reask", 0.5))
    log.decision(Decision(3, 1, 5, 9, "D", True, "fallback:unreachable"))
    log.decision(Decision(3, 2, 0, 9, "A", False, "model"))
    assert log.player("one") == PlayerLog(
        decisions=2,
        games=1,
        outcomes={"model_after_reask": 1, "fallback:unreachable": 1},
        reasks=1,
        calls=3,
        cached=1,
        attempts=3,
        tokens={"input": 200, "cached": 120, "cache_write": 20, "output": 40, "reasoning": 10},
        picodollars=2 * 1_234 + 9_000,
        likely=9_000,
        at_worst=77_000,
        saved=110,
        assumed=1,
        deadlines=1,
        beyond=0,
        first_beyond=None,
    )
    assert log.players() == ["one", "other"]
    assert log.spent() == Spend(4, 3 * 120 + 9000, 3 * 1_234 + 77_000)


def test_assumed_costs_are_updated(db: RunDb, log: ModelLog) -> None:
    """Later replies update them, up to the worst case, unless the cost is known or there is no price."""
    for number in (1, 2, 3):
        opens(log, (*ATTEMPT, number))
    opens(log, (*ATTEMPT, 4), priced=False)
    opens(log, (*ATTEMPT, 5), "other")
    received(log, (*ATTEMPT, 2))
    log.fail_try((*ATTEMPT, 3), "rate_limit", "no", Spend(1), 0.5)
    log.estimate_unknown_costs("one", 8192, 2.5, 1_000)
    likely = [(1_000 + int(808 * 2.5),), (None,), (None,), (None,), (9_000,)]
    assert db.read("SELECT likely FROM tries ORDER BY try") == likely
    log.estimate_unknown_costs("one", 8192, 1e6, 1_000)
    assert db.read("SELECT likely FROM tries WHERE try = 1") == [(77_000,)]


def test_a_file_with_a_probe_and_a_loss_by_caching_is_read(log: ModelLog) -> None:
    """Game numbers start at 0; -1 is a preflight and -2 a probe."""
    for key in ((-2, 0, 0, 0, 1), (-1, 0, 0, 0, 1), TRY):
        opens(log, key)
        received(log, key, saved=-700_000)
    with RunDb.open(log.db.path) as db:
        assert ModelLog(db).player("one").saved == -2_100_000


def test_totals_of_a_player_without_calls(log: ModelLog) -> None:
    nobody = log.player("nobody")
    assert (nobody.calls, nobody.decisions, nobody.picodollars) == (0, 0, 0)
    assert set(nobody.tokens.values()) == {0}


def test_texts_are_stored_once_and_unchanged(db: RunDb, log: ModelLog) -> None:
    for number in range(3):
        record_attempt(log, (3, 1, number, 0), request="half a character \ud83d, a null \x00", raw="x" * 100_000)
    assert db.read("SELECT count(*) FROM texts") == [(2,)]
    asked = log.find("3.1.2")
    assert asked is not None
    assert asked.text == log.text(asked.digest) == "half a character \ud83d, a null \x00"


def test_similar_texts_are_stored_as_differences(db: RunDb, log: ModelLog) -> None:
    """Differences take a tenth of the bytes.

    A text is reported as damaged if it or the text that it refers to is missing or changed.
    """
    long = "".join(map(chr, Random(1).choices(range(65, 122), k=6_000)))
    for number in range(20):
        record_attempt(log, (3, 1, number, 0), request=f"{long} question {number}", raw=f"{long} answer {number}")
    kept = dict(db.read("SELECT digest, length(text) FROM texts"))
    assert len(kept) == 40
    assert sum(sorted(kept.values())[:-2]) < 38 * 120, "all but the first of each kind are small"
    for digest in kept:
        assert sha256(log.text(digest).encode()).hexdigest() == digest
    whole = [digest for digest, size in kept.items() if size > 3_000]
    other = next(digest for digest, size in kept.items() if size < 3_000)
    with db.writing() as connection:
        connection.executemany("DELETE FROM texts WHERE digest = ?", [(digest,) for digest in whole])
    with pytest.raises(RunStopped, match="is missing, changed or damaged"):
        log.text(other)
    with db.writing() as connection:
        itself = b"\0" + bytes.fromhex(other) + zlib.compress(b"x")
        connection.execute("UPDATE texts SET text = ? WHERE digest = ?", (itself, other))
    with pytest.raises(RunStopped, match="is missing, changed or damaged"):
        log.text(other)


def test_uncommitted_text_is_not_a_base_of_differences(db: RunDb, log: ModelLog) -> None:
    def fails() -> None:
        with db.writing() as connection:
            for n in "", " again":
                log._save_text(connection, f"the first, and then the disk is full{n}", "kind")
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    with db.writing() as connection:
        digests = [log._save_text(connection, f"the first, and then the disk is full{n}", "kind") for n in ("", *"012")]
    assert [log.text(digest)[-1] for digest in digests] == ["l", "0", "1", "2"]


def test_zip_bomb_is_not_unpacked(db: RunDb, log: ModelLog) -> None:
    bomb = bytes((64 << 20) + 1)
    digest = sha256(bomb).hexdigest()
    with db.writing() as connection:
        connection.execute("INSERT INTO texts VALUES (?, ?)", (digest, zlib.compress(bomb, 1)))
    with pytest.raises(RunStopped, match=f"text {digest[:16]} in .* is missing, changed or damaged"):
        log.text(digest)


def test_request_is_found_by_decision_or_digest(log: ModelLog) -> None:
    record_attempt(log)
    record_attempt(log, (3, 1, 4, 1), request="what was asked again", draw="e")
    first, again = log.find("3.1.4"), log.find("3.1.4.1")
    assert first is not None
    assert again is not None
    assert (first.text, first.server, first.draw) == ("what was asked", "house", "d")
    assert (again.text, again.draw) == ("what was asked again", "e")
    assert log.find("3.1.4.0") == log.find(first.digest) == log.find(first.digest[:8]) == first
    for nothing in ("3.1", "3.1.4.2", "4.1.4", first.digest[:7], "????????", "", "9" * 30 + ".0.0"):
        assert log.find(nothing) is None


def test_paid_reply_is_found_by_server_request_and_draw(log: ModelLog) -> None:
    asked = ("a server", "a request", "d")
    opens(log)
    assert log.find_paid_reply(*asked) is None, "the call is still in flight"
    received(log)
    assert log.find_paid_reply(*asked) == RawReply(200, "a body", {"request-id": "1"})
    for others in (("another", *asked[1:]), (asked[0], "another", asked[2]), (*asked[:2], "another")):
        assert log.find_paid_reply(*others) is None


def test_body_logged_as_a_failure_is_not_reused(db: RunDb, log: ModelLog) -> None:
    opens(log)
    received(log, excess="it used more")
    assert log.find_paid_reply("a server", "a request", "d") is not None
    with db.writing() as connection:
        connection.execute("UPDATE tries SET kind = 'server'")
    assert log.find_paid_reply("a server", "a request", "d") is None


def test_reopened_game_has_not_ended(db: RunDb, log: ModelLog) -> None:
    for game in (3, 4):
        log.end_game(game)
    record_attempt(log, (3, 0, 0, 0))
    assert (log.ended_games(), db.reply_count()) == ({3: 1, 4: 0}, 1)
    log.reopen([3])
    assert (log.ended_games(), db.reply_count()) == ({4: 0}, 0)

"""`dubito cache`: statistics, single entries, and explanations of misses."""

import json
import re
import shlex
import shutil
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

import diskcache
import pytest

from dubito.llm.cache import ReplyCache, _TextDisk
from dubito.llm.prompts import OWN_PROMPTS
from dubito.llm.recording import find_nearest
from dubito.llm.request import RawReply, compute_digest
from tests.cli.kit import Result as Ended
from tests.cli.kit import Shell
from tests.llm.kit import ask, contender, reply_body, rows, run_cli

GOOD = RawReply(200, json.dumps(reply_body("responses")), {"request-id": "req_1"})


def fill(*entries: tuple[str, int, str], received: RawReply = GOOD) -> list[str]:
    """Add entries (server, request, draw) to the folder `cache`, and return their keys."""
    with closing(ReplyCache(Path("cache"))) as cache:
        for server, number, draw in entries:
            cache.get_or_ask(server, ask(number).request, draw, lambda: received)
        return list(cache)


def sentence(ended: Ended, code: int = 2) -> str:
    assert (ended.code, ended.out) == (code, "")
    (line,) = ended.err.splitlines()
    return line.removeprefix("dubito: ")


def parts(ended: Ended) -> dict[str, tuple[str, str]]:
    assert ended.code == 0, ended.err
    found = re.findall(r"^- (.*)\n  request: (.*)\n  cached: (.*)$", ended.out, re.MULTILINE)
    return {part: (wanted, stored) for part, wanted, stored in found}


def test_stats_count_the_replies_by_server_and_model(shell: Shell) -> None:
    fill(("house", 1, "a"), ("house", 2, "a"), ("house", 2, "b"), ("http://127.0.0.1:1/v1", 1, "a"))
    ended = shell("cache", "stats")
    title, headers, *lines = ended.out.splitlines()
    assert re.fullmatch(rf"4 replies, [\d,]+ bytes in the cache {re.escape(str(Path('cache').resolve()))}", title)
    assert ended.err == ""
    assert headers.split() == ["server", "model", "replies"]
    assert [line.split() for line in lines] == [["house", "m", "3"], ["http://127.0.0.1:1/v1", "m", "1"]]


def test_stats_mentions_other_caches(shell: Shell) -> None:
    fill(("house", 1, "a"))
    Path("runs").mkdir()
    shutil.copytree("cache", "runs/demo-1/cache")
    assert shell("cache", "stats").err == "there are other caches: --cache runs/demo-1/cache\n"
    assert shell("cache", "stats", "--cache", "runs/demo-1/cache").err == "there are other caches: --cache cache\n"
    shutil.rmtree("cache")
    message = "cache does not contain a cache; give its folder with --cache, for example --cache runs/demo-1/cache"
    assert sentence(shell("cache", "stats")) == message


@pytest.mark.parametrize("words", [("stats",), ("show", "00000000"), ("explain", "0.0.0", "--run", "r")])
def test_folder_without_a_cache_is_refused_and_left_unchanged(shell: Shell, words: tuple[str, ...]) -> None:
    Path("r").mkdir()
    Path("r/run.db").touch()
    ended = shell("cache", *words, "--cache", "elsewhere")
    assert ended.code == 2
    assert not Path("elsewhere").exists()
    if words[0] != "explain":
        assert sentence(ended) == "elsewhere does not contain a cache; give its folder with --cache"


def test_show_prints_request_and_reply(shell: Shell) -> None:
    (key, _) = fill(("house", 1, "a"), ("house", 2, "b"))
    whole = shell("cache", "show", key)
    assert whole.code == 0
    shown = dict(re.findall(r"^([\w-]+): (.*)$", whole.out, re.MULTILINE))
    assert shown["key"] == key
    assert (shown["server"], shown["draw"], shown["status"], shown["request-id"]) == ("house", "a", "200", "req_1")
    assert shown["reply"] == GOOD.raw
    request = whole.out.split("request: ")[1].split("\nstatus: ")[0]
    assert json.loads(request) == json.loads(ask(1).request.text)
    assert shell("cache", "show", key[:8]).out == whole.out


def test_show_refuses_unknown_and_ambiguous_keys(shell: Shell) -> None:
    fill(("house", 1, "a"), ("house", 2, "b"))
    counts = "in cache"
    assert sentence(shell("cache", "show", "xyz")) == f"no key starts with 'xyz' {counts}"
    assert sentence(shell("cache", "show", "")) == f"2 keys start with '' {counts}"
    assert sentence(shell("cache", "show", "written")) == f"no key starts with 'written' {counts}"


@pytest.mark.parametrize("escape", ["\x1b[2J\x1b]0;mine\x07", "\r", "\x00", "\x9b31m", "\u202e"])
def test_control_characters_in_a_reply_are_escaped(shell: Shell, escape: str) -> None:
    (key,) = fill(("house", 1, "a"), received=RawReply(200, f"{escape}\nsecond line", {"request-id": escape}))
    ended = shell("cache", "show", key)
    assert escape not in ended.out
    assert "\nsecond line\n" in ended.out
    assert all(char.isprintable() or char == "\n" for char in ended.out)


def test_control_characters_in_a_server_name_are_escaped(shell: Shell) -> None:
    fill(("http://127.0.0.1/\x1b[2J", 1, "a"))
    assert "\x1b" not in shell("cache", "stats").out


def damage(key: str) -> None:
    with diskcache.Cache("cache") as cache:
        text = zlib.decompress(cache[key]).decode()
        cache[key] = zlib.compress(text.replace('"draw": "a"', '"draw": "b"').encode())


def test_edited_entry_is_named(shell: Shell) -> None:
    (key,) = fill(("house", 1, "a"))
    damage(key)
    assert sentence(shell("cache", "show", key), 3).startswith(
        f"entry {key} of the cache cache was changed or is damaged"
    )


def test_stats_counts_and_skips_damaged_entries(shell: Shell) -> None:
    damage(fill(("house", 1, "a"), ("house", 2, "b"))[0])
    ended = shell("cache", "stats")
    assert (ended.code, ended.err) == (0, "1 damaged entries were skipped; list them with `dubito cache verify`\n")
    assert ended.out.splitlines()[2].split() == ["house", "m", "1"]
    assert "another version" not in ended.out
    assert json.loads(shell("cache", "stats", "--json").out)["damaged"] == 1


def run_of(shell: Shell, *flags: str, folder: str = "r", **changes: Any) -> Ended:
    changes = {"model": "house-random"} | changes
    return run_cli(shell, contender("Asker", **changes), games=1, flags=("--output", folder, *flags))


def explained(shell: Shell, what: str, folder: str = "s", *flags: str) -> Ended:
    return shell("cache", "explain", what, "--run", folder, *flags)


def first_decision(folder: str) -> str:
    """Return the first decision of a run in the form that `explain` accepts."""
    ((game, seat, decision),) = rows(
        Path(folder), "SELECT game, seat, decision FROM attempts WHERE game >= 0 ORDER BY decision LIMIT 1"
    )
    return f"{game}.{seat}.{decision}"


def missed(shell: Shell, folder: str = "s", **changes: Any) -> Ended:
    """Return the explanation of the first cache miss of an offline run with changed settings."""
    if not Path("r").exists():
        assert run_of(shell).code == 0
    ended = run_of(shell, "--offline", folder=folder, **changes)
    assert ended.code == 3, ended.err
    command = re.search(r"`dubito (cache explain [^`]+)`", ended.err)
    assert command is not None
    return shell(*shlex.split(command[1]))


def test_explain_finds_the_reply_of_a_decision_and_of_a_request(shell: Shell) -> None:
    assert run_of(shell).code == 0
    place = first_decision("r")
    ended = explained(shell, place, "r")
    key = ended.out.strip().removeprefix("the cache has a reply: ")
    assert shell("cache", "show", key).code == 0
    assert explained(shell, f"{place}.0", "r").out == ended.out
    query = "SELECT request FROM attempts WHERE (game, seat, decision) = (?, ?, ?)"
    ((digest,),) = rows(Path("r"), query, tuple(map(int, place.split("."))))
    assert explained(shell, digest, "r").out == ended.out
    assert explained(shell, digest[:8], "r").out == ended.out


def test_explain_accepts_the_ids_that_watch_prints(shell: Shell) -> None:
    assert run_of(shell).code == 0
    output = re.findall(r"Request to Asker \(([A-E]), ([\d.]+)\): ", shell("replay", "r", "--game", "0").out)
    taken = rows(Path("r"), "SELECT node, seat, decision FROM decisions ORDER BY decision")
    assert output == [(node, f"0.{seat}.{decision}") for node, seat, decision in taken]
    assert all(explained(shell, number, "r").out.startswith("the cache has a reply: ") for _, number in output)


def test_explain_shows_the_difference(shell: Shell) -> None:
    changed = parts(missed(shell, max_output=99, parameters={"temperature": 0.5, "user": None}, model="house-honest"))
    assert changed == {
        "body.model": ("house-honest", "house-random"),
        "body.max_output_tokens": ("99", "8192"),
        "body.temperature": ("0.5", "(nothing)"),
        "body.user": ("null", "(nothing)"),
    }
    address = "http://127.0.0.1:1/v1"
    assert parts(missed(shell, "t", base_url=address)) == {"server": (address, "house")}
    ((part, (wanted, stored)),) = parts(missed(shell, "u", sample=1)).items()
    assert part.startswith("draw (")
    assert wanted != stored


@pytest.mark.parametrize(
    ("before", "after", "wanted", "stored"),
    [
        pytest.param("{{ walk }}", "{{ walk }} OR NOT", " OR NOT", "", id="late in a long line"),
        pytest.param("{{ walk }}\n", "{{ walk }}\nAND\n", "AND", "- A: bluff, with", id="a line more"),
    ],
)
def test_explain_a_changed_line_of_the_prompt(shell: Shell, before: str, after: str, wanted: str, stored: str) -> None:
    shutil.copytree(OWN_PROMPTS / "plain", "mine")
    system = (OWN_PROMPTS / "shared" / "system.jinja").read_text()
    assert system.count(before) == 1
    Path("mine/system.jinja").write_text(system.replace(before, after))
    changed = parts(missed(shell, prompt="./mine"))
    ((part, (ours, theirs)),) = [item for item in changed.items() if item[0].startswith("body.input.0.content")]
    assert re.fullmatch(r"body\.input\.0\.content, line \d+", part)
    assert wanted in ours
    assert wanted not in theirs
    assert theirs.startswith(stored)
    assert max(len(ours), len(theirs)) < 120
    assert set(changed) - {part} == {"body.prompt_cache_key"}


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([("house", 1, "b"), ("house", 2, "a")], ("house", 1, "b")),  # the same request is preferred to the same draw
        # The same draw is preferred to a longer common beginning.
        ([("house", 12, "b"), ("house", 3, "a")], ("house", 3, "a")),
        ([("house", 12, "a"), ("house", 3, "a")], ("house", 12, "a")),  # the longer common beginning
        ([("http://127.0.0.1:1/v1", 1, "a"), ("house", 1, "b")], ("http://127.0.0.1:1/v1", 1, "a")),
        ([("http://127.0.0.1:1/v1", 3, "a"), ("house", 3, "a")], ("house", 3, "a")),  # the server is compared last
    ],
)
def test_explain_picks_the_nearest_entry(
    shell: Shell, entries: list[tuple[str, int, str]], expected: tuple[str, int, str]
) -> None:
    """The question is request 1 with draw a. Request 12 has a longer common beginning with it than request 3."""
    fill(*entries)
    server, number, draw = expected
    with closing(ReplyCache(Path("cache"))) as cache:
        found = find_nearest(filter(None, map(cache.entry, cache)), "house", ask(1).request.text, "a")
    assert found is not None
    assert (found.server, found.draw) == (server, draw)
    assert found.request == ask(number).request.text


def test_explain_with_an_empty_cache(shell: Shell) -> None:
    assert run_of(shell, "--offline", folder="s").code == 3
    assert explained(shell, first_decision("s")).out == "the cache cache is empty\n"


def test_explain_skips_a_damaged_entry(shell: Shell) -> None:
    assert run_of(shell, "--offline", folder="s").code == 3
    good, bad = fill(("house", 2, "b"), ("house", 1, "a"))
    damage(bad)
    ended = explained(shell, first_decision("s"))
    assert f"the most similar entry, {good}, " in ended.out
    assert ended.err == "1 damaged entries were skipped; list them with `dubito cache verify`\n"


def test_explain_of_an_unknown_decision_is_reported_in_one_sentence(shell: Shell) -> None:
    assert run_of(shell, "--offline", folder="s").code == 3
    for what in (
        *("9.9.9", "0.0", "0.0.0.0.0", "0.0.9999999999999999999999", "a.b.c", "-1.0.0", ""),
        *("0", "abcdef0", "ffffffffffff", "????????", "*", "%%%%%%%%", "[0-9a-f]*", "\x1b[2J\x1b[2J"),
    ):
        message = sentence(shell("cache", "explain", "--run", "s", "--", what))
        assert message.startswith("s has no request ")
        assert message.endswith("`dubito replay RUN --game GAME`, or at least 8 digits of a digest")
        assert message.isprintable()


def test_explain_refuses_an_ambiguous_digest(shell: Shell) -> None:
    assert run_of(shell).code == 0
    with closing(sqlite3.connect("r/run.db")) as connection, connection:
        connection.execute("UPDATE attempts SET request = 'aaaaaaaa' || request WHERE game >= 0")
    assert sentence(explained(shell, "aaaaaaaa", "r")).startswith("r has no request 'aaaaaaaa'")


@pytest.mark.parametrize("other", [{}, {"format": 3}, {"format": "4"}])
def test_entries_of_another_format_are_skipped_and_counted(shell: Shell, other: dict[str, object]) -> None:
    key, _ = fill(("house", 1, "a"), ("house", 2, "b"))
    with diskcache.Cache("cache", disk=_TextDisk) as cache:
        content = json.loads(cache[key].partition("\n")[2])
        del content["format"]
        packed = json.dumps({**content, **other})
        cache[key] = f"{compute_digest(packed)}\n{packed}"
    ended = shell("cache", "stats")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines()[-1] == "1 replies are from another version of Dubito and are not used"
    counted = json.loads(shell("cache", "stats", "--json").out)
    assert (counted["older"], counted["damaged"], counted["replies"]) == (1, 0, 2)
    theirs = f"format {other['format']}" if other else "no format"
    begin = f"entry {key} of the cache cache was written by another version of Dubito ({theirs}; this one reads 4)"
    assert sentence(shell("cache", "show", key)).startswith(begin)
    assert begin in shell("cache", "verify").out


def test_drop_names_the_entry_and_its_copy(shell: Shell) -> None:
    one, other = fill(("house", 1, "a"), ("house", 1, "b"))
    ended = shell("cache", "drop", one[:16])
    assert (ended.code, ended.out) == (0, f"removed {one}; a copy is in cache/dropped/{one}.txt\n")
    assert "no key starts" in sentence(shell("cache", "drop", one[:16]))
    assert shell("cache", "show", other).code == 0

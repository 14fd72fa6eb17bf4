"""Secret seeds: what an agent can find out during a run, and what the run proves afterwards."""

import json
import os
import re
import signal
import stat
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml

import dubito
from dubito.errors import UsageError
from dubito.game.find import find_game
from dubito.game.streams import DealStreams
from dubito.games.dubito.sentences import card_name
from dubito.llm.request import Place, compute_draw
from tests.cli.kit import REPO, Result, Shell
from tests.conftest import in_gate
from tests.seats.kit import Connection, honest_answer, play_agent, serve_agent

SEAT = ("--opponents", "StefaBot,ClaudeBot", "--table-sizes", "3", "--quiet")
PROGRAM = {"name": "mine", "process": [sys.executable, str(REPO / "examples/programs/honest.py")]}
CONFIG = {"games": 4, "table_sizes": [3], "bots": ["StefaBot", "ClaudeBot", PROGRAM]}
GUESSES = {"few": 500, "many": 1_000_000}


def read_manifest(folder: str) -> dict[str, Any]:
    content = yaml.safe_load(Path(folder, "manifest.yaml").read_text())
    assert isinstance(content, dict)
    return content


def write_manifest(folder: str, **changes: Any) -> None:
    Path(folder, "manifest.yaml").write_text(yaml.safe_dump(read_manifest(folder) | changes))


def digest_of(result: Result) -> str:
    assert result.code == 0, result.err
    return str(re.findall(r"results digest: (\w+)", result.out)[0])


def start_run(shell: Shell, *words: str, **settings: Any) -> Result:
    Path("c.yaml").write_text(yaml.safe_dump(CONFIG | settings))
    return shell("run", "c.yaml", "--quiet", *words)


def play_two_games(connection: Connection) -> None:
    """Answer all questions of two games, and stop the run in the third."""
    while (seen := connection.request("observe")[1])["game"] < 2:
        if seen["state"] == "decide":
            body = {"question": seen["question"], "answer": honest_answer(seen["messages"][-1])}
            connection.request("act", body)
    os.kill(os.getpid(), signal.SIGINT)
    while connection.request("observe")[1]["state"] != "over":
        pass


@pytest.fixture
def stopped(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the seed of the run `runs/r`, which stopped after two of its six games."""
    words = ("--games", "6", "--output", "runs/r", *SEAT)
    result, _ = serve_agent(shell, monkeypatch, play_two_games, *words)
    assert result.code == 130, result.err
    assert json.loads(shell("status", "runs/r", "--json").out)["kept"] == 2
    return Path("runs/r/secret_seed").read_text().strip()


def guess_numbers(count: int) -> Iterator[int | str]:
    """Yield what an attacker tries without looking at the run: numbers, times and short texts."""
    yield from range(count)
    now = int(time.time())
    yield from range(now - 1000, now + 1)
    yield from (10**9 * now, 2**32 - 1, 2**53 - 1, 2**64 - 1, 2**128 - 1)
    yield from (f"{number:032x}" for number in range(min(count, 1_000)))


def guess_from(texts: Iterable[str]) -> Iterator[int | str]:
    """Yield seeds made from what an attacker has seen: texts, their numbers and their hashes."""
    for text in texts:
        digits = re.sub("[^0-9a-f]", "", text.lower())
        yield text
        yield from (digits[:32], digits[-32:], digits.rjust(32, "0")[:32])
        yield from (int(part) for part in re.findall(r"\d{1,18}", text))
        yield from (sha256(text.encode()).hexdigest()[:32], sha256(text.encode()).hexdigest())


class Opening:
    """What an agent knows when it is first asked in a game, and the public package to compare it with."""

    def __init__(self, deal: int, messages: list[dict[str, Any]]) -> None:
        hello = next(message for message in messages if message["type"] == "hello")
        facts = next(message for message in messages if message["type"] == "decide")["facts"]
        self._game = find_game(hello["game"], Path.cwd())
        self._rules, self._seats, self._seat = self._game.rules(**hello["rules"]), hello["seats"], hello["seat"]
        self._deal, self._hand = deal, sorted(Counter(facts["hand"]).elements())

    def deals_hand(self, guess: int | str) -> bool:
        """Return whether this seed deals the agent's hand."""
        state = self._game.deal(self._rules, self._seats, DealStreams(guess, self._deal).deck())
        dealt: dict[str, Any] = self._game.deal_to_json(state)
        return sorted(map(card_name, dealt["hands"][self._seat])) == self._hand


def find_seed(openings: Sequence[list[dict[str, Any]]], guesses: Iterable[int | str]) -> int | str | None:
    """Return the guess that deals all hands of an agent. One hand in a few hundred thousand is equal by chance."""
    first, second = (Opening(deal, messages) for deal, messages in enumerate(openings))
    return next((guess for guess in guesses if first.deals_hand(guess) and second.deals_hand(guess)), None)


def see_opening(connection: Connection) -> list[dict[str, Any]]:
    return [*connection.request("observe?all=true")[1]["messages"]]


def see_two_openings(connection: Connection) -> list[list[dict[str, Any]]]:
    """Play the first game, and return the first messages of both games."""
    openings = [see_opening(connection)]
    while (seen := connection.request("observe")[1])["game"] == 0:
        if seen["state"] == "decide":
            body = {"question": seen["question"], "answer": honest_answer(seen["messages"][-1])}
            connection.request("act", body)
    return [*openings, see_opening(connection)]


@pytest.mark.parametrize("count", in_gate(GUESSES, ["few"]))
def test_an_agent_finds_a_known_seed_but_not_a_secret_one(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, count: str
) -> None:
    """The attack on a known seed must succeed, or the other one would prove nothing."""
    found = list[int | str | None]()

    def attack(connection: Connection) -> None:
        openings, (token,) = see_two_openings(connection), connection.tokens.values()
        messages = [message for opening in openings for message in opening]
        folder = next(Path("runs").iterdir())
        seen = [token, connection.url, str(folder), *connection.lines, *map(json.dumps, messages)]
        seen += [str(message["seed"]) for message in messages if "seed" in message]
        seen += [f"{message['seed']:x}" for message in messages if "seed" in message]
        seen += [(folder / "manifest.yaml").read_text(), read_manifest(str(folder))["identity"].get("seed_sha256", "")]
        place = Place("agent", 0, 0, messages[0]["seat"], 0, 0, "C")
        seen += [compute_draw(number, place, 0) for number in range(10)]
        guesses = [*guess_from(seen), *guess_numbers(GUESSES[count])]
        found.append(find_seed(openings, guesses))
        if (secret := folder / "secret_seed").exists():
            true_seed = secret.read_text().strip()
            assert find_seed(openings, [true_seed]) == true_seed
        play_agent(connection)

    words = ("--games", "2", "--deadline", "3600", *SEAT)
    assert serve_agent(shell, monkeypatch, attack, "--seed", "137", *words)[0].code == 0
    assert found == [137]
    shell.folder.joinpath("runs").rename("before")
    assert serve_agent(shell, monkeypatch, attack, *words)[0].code == 0
    assert found == [137, None]


def test_the_commitment_is_there_from_the_start_and_the_seed_only_at_the_end(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    during = list[Mapping[str, Any]]()

    def look(connection: Connection) -> None:
        see_opening(connection)
        during.append(read_manifest("run"))
        assert stat.S_IMODE(os.stat("run/secret_seed").st_mode) == 0o600
        secret = Path("run/secret_seed").read_text().strip()
        readable = [path for path in Path("run").rglob("*") if path.is_file() and path.name != "secret_seed"]
        assert [path for path in readable if secret.encode() in path.read_bytes()] == []
        play_agent(connection)

    result, _ = serve_agent(shell, monkeypatch, look, "--games", "2", "--output", "run", *SEAT)
    assert result.code == 0, result.err
    (before,), after = during, read_manifest("run")
    seed, sha = after["seed"], after["identity"]["seed_sha256"]
    assert re.fullmatch("[0-9a-f]{32}", seed)
    assert sha == sha256(seed.encode()).hexdigest()
    assert (before["identity"], "seed" in before) == (after["identity"], False), "the identity does not change"
    assert "seed" not in after["identity"]
    assert not Path("run/secret_seed").exists()
    assert f"its SHA-256 is {sha}" in result.err
    assert f"seed: {seed} (was secret during play)" in result.out
    assert shell("report", "run").code == 0
    assert "2 games, the seed was secret during play" in Path("run/report/index.html").read_text()
    replayed = shell("replay", "run")
    assert (replayed.code, "seed: was secret during play; it matches its SHA-256" in replayed.out) == (0, True)


def test_a_stopped_run_goes_on_with_its_secret_and_repeats_with_the_revealed_seed(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, stopped: str
) -> None:
    assert "dubito seat runs/r" in json.loads(shell("status", "runs/r", "--json").out)["resume"]
    assert shell("replay", "runs/r").code == 0, "the owner can verify an unfinished run"
    assert serve_agent(shell, monkeypatch, play_agent, "runs/r")[0].code == 0
    assert read_manifest("runs/r")["seed"] == stopped
    digest = digest_of(shell("replay", "runs/r"))
    words = ("--games", "6", "--seed", stopped, "--output", "again", *SEAT)
    assert serve_agent(shell, monkeypatch, play_agent, *words)[0].code == 0
    assert digest_of(shell("replay", "again")) == digest
    assert read_manifest("again")["identity"]["seed"] == stopped
    compared = shell("compare", "runs/r", "again")
    assert compared.code == 0, compared.err


def test_nothing_written_about_an_unfinished_run_contains_its_seed(shell: Shell, stopped: str) -> None:
    assert shell("report", "runs/r").code == 0
    assert shell("report", "runs/r", "--site", "site").code == 0
    shared = shell("share", "runs/r", "--game", "0")
    assert shared.code == 0, shared.err
    assert "The seed is secret until the run ends" in Path("game-0.html").read_text()
    outputs = [shell("status", "runs/r", "--json"), shell("replay", "runs/r", "--game", "0"), shell("status", "runs")]
    outputs += [shell("prompts", "positions", "runs/r", "--output", "positions"), shell("watch", "runs/r")]
    assert not any(stopped in one.out + one.err for one in [*outputs, shared])
    written = [path for path in shell.folder.rglob("*") if path.is_file() and path.name != "secret_seed"]
    assert len(written) > 20
    assert [path for path in written if stopped.encode() in path.read_bytes()] == []
    overview = Path("runs/r/report/index.html").read_text()
    assert f"SHA-256 {sha256(stopped.encode()).hexdigest()} (is secret until the run ends)" in overview
    run = dubito.load("runs/r")
    with run:
        assert next(run.games()).events


def test_an_unfinished_run_is_exported_only_with_its_seed(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, stopped: str
) -> None:
    refused = shell("export", "runs/r", "r.zip")
    assert (refused.code, Path("r.zip").exists()) == (2, False)
    assert "its seed is still secret" in refused.err
    assert "finish it with `dubito seat runs/r`; or end it now with --reveal" in refused.err
    fewer = shell("seat", "runs/r", "--games", "2")
    assert (fewer.code, "keeps its seed secret until all of its 6 games" in fewer.err) == (2, True)
    assert shell("export", "runs/r", "r.zip", "--reveal").code == 0
    assert shell("replay", "r.zip").code == 0
    again = shell("seat", "runs/r")
    assert (again.code, "has been revealed" in again.err) == (2, True)
    assert json.loads(shell("status", "runs/r", "--json").out)["resume"] is None
    assert Path("runs/r/manifest.yaml").read_text().count(stopped) == 1


def test_the_same_command_starts_a_new_run(shell: Shell) -> None:
    results = [json.loads(start_run(shell, "--json").out) for _ in range(2)]
    folders, seeds = ([result[key] for result in results] for key in ("folder", "seed"))
    assert folders[1] == f"{folders[0]}-2"
    assert len({*seeds}) == 2
    assert {result["seed_was"] for result in results} == {"secret"}
    given = start_run(shell, "--output", folders[0])
    assert given.code == 2
    assert f"`dubito run {folders[0]}` continues that run" in given.err
    kept = shell("run", folders[0], "--json")
    assert json.loads(kept.out)["seed"] == seeds[0], "a finished run is printed again"
    longer = shell("run", folders[0], "--games", "8")
    assert (longer.code, "has been revealed, so more games would be played with known cards" in longer.err) == (2, True)


def test_only_runs_with_programs_draw_a_secret_seed(shell: Shell) -> None:
    known = json.loads(start_run(shell, "--json", bots=["StefaBot", "ClaudeBot", "UsualBot"]).out)
    assert (known["seed"], known["seed_was"]) == (0, "known")
    assert read_manifest(known["folder"])["identity"]["seed"] == 0
    contender = start_run(shell, "--json", bots=["StefaBot", "ClaudeBot"], contenders=[PROGRAM])
    assert json.loads(contender.out)["seed_was"] == "secret"
    given = start_run(shell, "--json", seed=5)
    assert "the seed is known, so programs and agents could compute all cards" in given.err
    assert (json.loads(given.out)["seed"], json.loads(given.out)["seed_was"]) == (5, "known")
    shard = start_run(shell, "--shard", "1/2", games=4000)
    assert (shard.code, "which its shards cannot share; set --seed" in shard.err) == (2, True)


def test_a_revealed_seed_that_does_not_match_is_refused(shell: Shell) -> None:
    assert start_run(shell, "--output", "run").code == 0
    seed = read_manifest("run")["seed"]
    changes: list[Mapping[str, Any]] = [
        {"seed": seed[:-1] + ("0" if seed[-1] != "0" else "1")},
        {"seed": 5},
        {"seed": seed.upper() + "x"},
        {"identity": {**read_manifest("run")["identity"], "seed_sha256": "0" * 64}},
        {"identity": {**read_manifest("run")["identity"], "seed": 0}},
    ]
    original = Path("run/manifest.yaml").read_text()
    for change in changes:
        write_manifest("run", **change)
        for command in ("replay", "report", "status"):
            result = shell(command, "run")
            assert (result.code, "run/manifest.yaml is damaged: " in result.err) == (2, True), (change, result)
        Path("run/manifest.yaml").write_text(original)


def remove_manifest(folder: Path) -> None:
    for path in folder.iterdir():
        if path.name not in ("lock", "secret_seed", "config.yaml"):
            path.unlink()


def remove_games(folder: Path) -> None:
    for path in folder.glob("run.db*"):
        path.unlink()


def hide_seed_again(folder: Path) -> None:
    """Leave the run as if it was killed after its last game."""
    content = read_manifest(str(folder))
    (folder / "secret_seed").write_text(content.pop("seed") + "\n")
    (folder / "manifest.yaml").write_text(yaml.safe_dump(content))


def keep_secret(folder: Path) -> None:
    (folder / "secret_seed").write_text(read_manifest(str(folder))["seed"] + "\n")


def test_a_run_killed_between_two_writes_goes_on(shell: Shell) -> None:
    """Each state is what a kill leaves: before the manifest, before the games, and before and after the reveal."""
    assert start_run(shell, "--output", "run").code == 0
    seed, digest = read_manifest("run")["seed"], digest_of(shell("replay", "run"))
    keep_secret(Path("run"))
    assert digest_of(shell("run", "run")) == digest, "killed after the reveal"
    hide_seed_again(Path("run"))
    assert digest_of(shell("run", "run")) == digest, "killed before the reveal"
    assert (read_manifest("run")["seed"], Path("run/secret_seed").exists()) == (seed, False)
    hide_seed_again(Path("run"))
    Path("run/all_games.yaml").unlink()
    remove_games(Path("run"))
    assert digest_of(shell("run", "run")) == digest, "killed before the first game"
    hide_seed_again(Path("run"))
    remove_manifest(Path("run"))
    assert start_run(shell, "--output", "run").code == 0, "killed before the manifest"
    assert read_manifest("run")["seed"] != seed


def test_a_lost_secret_is_reported(shell: Shell) -> None:
    assert start_run(shell, "--output", "run").code == 0
    hide_seed_again(Path("run"))
    Path("run/secret_seed").write_text("0" * 32)
    assert "the seed in secret_seed does not match its SHA-256" in shell("run", "run").err
    Path("run/secret_seed").unlink()
    for command in ("run", "replay", "status"):
        result = shell(command, "run")
        assert result.code == 2
        assert "is still secret: cannot read run/secret_seed: No such file or directory; restore the file" in result.err
    os.mkfifo("run/secret_seed")
    assert "cannot read run/secret_seed: it is a pipe" in shell("status", "run").err


@pytest.mark.parametrize("seed", ["0f" * 16, "1" * 32, "0" * 32])
def test_a_text_seed_deals_the_same_everywhere(shell: Shell, seed: str) -> None:
    bots = ["StefaBot", "ClaudeBot", "UsualBot"]
    digest = digest_of(start_run(shell, "--output", "file", bots=bots, seed=seed))
    flags = shell("run", "--bots", ",".join(bots), "--table-sizes", "3", "--games", "4", "--seed", seed)
    assert digest_of(flags) == digest
    assert digest_of(shell("replay", "file")) == digest
    assert json.loads(shell("run", "file", "--json").out)["seed"] == seed
    words = ("--seed", seed, "--show-hands")
    assert shell("watch", *bots, *words).out != shell("watch", *bots, "--show-hands").out
    for wrong in (seed[:-1], seed.replace("0", "g").replace("1", "g")):
        if not wrong.isdecimal():
            with pytest.raises(UsageError, match="must be a whole number, or a revealed seed of 32 hex digits"):
                dubito.run(games=4, seed=wrong)


def test_a_shared_game_with_a_revealed_seed_can_be_verified_and_played(shell: Shell) -> None:
    assert start_run(shell, "--output", "run").code == 0
    seed = read_manifest("run")["seed"]
    assert shell("share", "run", "--game", "1").code == 0
    page = Path("game-1.html").read_text()
    assert "The seed was secret during play" in page
    assert re.search(rf"dubito play .*--seed {seed} --deal 1", re.sub("<[^>]*>", "", page))
    report = shell("report", "run")
    assert report.code == 0
    assert f"{seed} (was secret during play)" in Path("run/report/index.html").read_text()

"""Local models in a run: the server's lifetime, and weights as part of the identity."""

import os
import re
import select
from pathlib import Path
from typing import Final

import pytest

from tests.cli.kit import REPO, Shell, start
from tests.conftest import in_gate

# Recorded runs with their numbers of games and decisions.
RECORDED: Final = (
    *(("kuhn", 600, 485), ("dubito", 200, 1683), ("dubito_prompts", 240, 2209)),
    *(("leduc", 600, 761), ("liars_dice", 600, 810)),
)
RUN: Final = (
    "run",
    "--bots",
    "Sherlock,ClaudeBot,local:m.gguf",
    "--games",
    "3",
    "--table-sizes",
    "3",
    "--max-turns",
    "6",
)


def test_local_model_plays_costs_nothing_and_replays(shell: Shell, model: Path) -> None:
    ran = shell(*RUN, "--output", "r")
    assert ran.code == 0, ran.err
    assert "local:m.gguf  model" in ran.out
    assert re.search(r"^local:m.gguf  model +9 +0\.0 +0 +\d+ .* \$0\.0000 ", ran.out, re.MULTILINE)
    again = shell("replay", "r")
    assert (again.code, "identical" in again.out) == (0, True), again.out + again.err
    assert "local?weights=" in (shell.folder / "r" / "manifest.yaml").read_text()


@pytest.mark.parametrize(("name", "games", "decisions"), in_gate(RECORDED, 1))
def test_recorded_run_of_real_models_replays_with_the_published_table(
    shell: Shell, name: str, games: int, decisions: int
) -> None:
    export = REPO / "examples" / "runs" / f"{name}.zip"
    replayed = shell("replay", str(export), "--quiet")
    assert replayed.out.splitlines()[0] == f"identical: {games} games, {decisions:,} decisions"
    assert replayed.code == 0
    table = re.findall(
        r"^\S+ +(?:model|hand-written) .*$", shell("compare", str(export)).out.partition("Pairs")[0], re.M
    )
    published = export.with_name("README.md").read_text()
    rows = {(row.split()[0], row.split("  ")[-1].strip()) for row in table}
    assert len(rows) == ({"dubito": 2, "dubito_prompts": 4}.get(name, 3))
    for player, result in rows:
        assert re.search(rf"^{re.escape(player)} .*{re.escape(result)}$", published, re.M), (player, result)


def test_other_weights_in_the_file_end_the_resume(shell: Shell, model: Path) -> None:
    assert shell(*RUN, "--output", "r").code == 0
    model.write_bytes(b"GGUF other weights")
    refused = shell(*RUN, "--output", "r")
    assert (refused.code, "base_url" in refused.err) == (2, True), refused.err
    pinned = "{bot: OpenAIBot, api: chat, base_url: 'local?weights=0', model: m.gguf}"
    (shell.folder / "c.yaml").write_text(f"bots: [Sherlock, ClaudeBot, {pinned}]\n")
    refused = shell("run", "c.yaml", "--games", "1")
    assert (refused.code, ", not ?weights=0" in refused.err) == (2, True)


def test_model_that_cannot_be_loaded_is_reported_in_one_message(shell: Shell, model: Path) -> None:
    model.write_bytes(b"GGUF broken")
    refused = shell(*RUN, "--output", "r")
    assert refused.code == 3
    assert refused.err.splitlines()[-1].startswith("dubito: the local model server ended: RuntimeError: Failed to load")


def test_without_the_extra_the_message_names_it(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dubito.plugins.local.server.find_spec", lambda name: None)
    (shell.folder / "m.gguf").write_bytes(b"GGUF weights")
    refused = shell(*RUN, "--output", "r")
    assert refused.code == 2
    assert "pip install 'dubito[local]'" in refused.err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are not available")
def test_server_ends_with_a_run_that_is_killed(shell: Shell, model: Path) -> None:
    os.mkfifo(shell.folder / "m.gguf.alive")
    # The server has opened the other end of the pipe.
    with start(shell.folder, *RUN, "--output", "r") as process, open(shell.folder / "m.gguf.alive") as alive:
        process.kill()
        assert select.select([alive], [], [], 20)[0], "the pipe must close with the server"

"""The model that answered is stored with each reply, shown, and reported if it changes."""

import json
from pathlib import Path
from typing import Any

import pytest

from dubito.llm.protocols import read_reply
from dubito.llm.request import RawReply
from tests.cli.kit import Shell
from tests.llm.kit import PROTOCOLS, Incoming, Response, Server, config_file, player_at, reply_body, respond, rows

OLD, NEW = "some-model-2026-01-01", "some-model-2026-11-11"


class Changing:
    """A server whose replies name these models in turn, and then always the last."""

    def __init__(self, *names: str) -> None:
        self.names = [*names]
        self.server = Server(self._answer)

    def _answer(self, request: Incoming) -> Response:
        return respond(request.protocol, model=self.names.pop(0) if len(self.names) > 1 else self.names[0])

    def run(self, shell: Shell, folder: str, player: str = "Asker") -> str:
        """Run the model and return the output of `dubito run`."""
        config = config_file(player_at(self.server, name=player), in_flight=1)
        ended = shell("run", config, "--output", folder, "--quiet", "--cache", f"{folder}-cache", "--no-preflight")
        assert ended.code == 0
        return ended.out


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_reply_names_its_model(protocol: Any) -> None:
    def read(**changes: Any) -> str | None:
        return read_reply(protocol, RawReply(200, json.dumps(reply_body(protocol, **changes)))).model

    assert read(model=OLD) == OLD
    assert [read(), read(model=None), read(model=7), read(model="")] == [None] * 4
    assert read(model="\ud800" * 999) == "?" * 200


def test_answering_models_are_recorded_and_differences_reported(shell: Shell) -> None:
    changing = Changing(OLD, OLD, NEW)
    with changing.server:
        output = changing.run(shell, "r")
    ids = {OLD: 2, NEW: len(rows(Path("r"), "SELECT 1 FROM attempts")) - 2}
    assert dict(rows(Path("r"), "SELECT model, count(*) FROM attempts GROUP BY 1")) == ids
    words = f"{OLD} (2) and {NEW} ({ids[NEW]})"
    assert f"Several models answered for Asker: {words}" in " ".join(output.split())
    status = shell("status", "r").out
    assert f"  answered by: {OLD} (2), {NEW} ({ids[NEW]})\n" in status
    assert json.loads(shell("status", "r", "--json").out)["models"][0]["ids"] == ids


def test_comparison_reports_a_changed_model(shell: Shell) -> None:
    changing = Changing(OLD)
    with changing.server:
        changing.run(shell, "r")
        changing.run(shell, "t", "Other")
        changing.names = [NEW]
        changing.run(shell, "s")
    notes = [line for line in shell("compare", "r", "s").err.splitlines() if "not the same model" in line]
    assert notes == [
        f"note: some-model is not the same model in both runs: it answered as {OLD} in r and as {NEW} in s"
    ]
    assert "not the same model" not in shell("compare", "r", "t").err

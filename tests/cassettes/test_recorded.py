"""Replay short games that were recorded through the real SDKs, without any network.

`python -m tests.cassettes.record` records them; see tests/cassettes/README.md.
"""

from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from dubito.experiment.experiment import Experiment
from dubito.experiment.run import RunResult
from dubito.model_settings import Api
from tests.cassettes.kit import INDEX, played_whole
from tests.games.bs import models as bs
from tests.llm.kit import BOT_OF, PROTOCOLS, contender, run_games, small

FAULTS: Final = "house?faults=fenced:0.2,wrong_string:0.1,refusal:0.1,rate_limit:0.1"  # faults that cause re-asks
OF_BS: Final = "bs-"  # prefix of the names of BS prompts
SCENES: Final = [(protocol, prompt) for protocol in PROTOCOLS for prompt in ("plain", "reasoned", f"{OF_BS}plain")]


def game(protocol: Api, prompt: str, index: dict[str, Any], turns: int = 6) -> Experiment:
    """Return a short game of a model against two hand-written bots (three at BS)."""
    real, of_bs = index["against"] == "providers", prompt.startswith(OF_BS)
    settings = {"api": protocol, "prompt": prompt.removeprefix(OF_BS), "base_url": None if real else FAULTS}
    model = "house-careful" if of_bs and not real else index["models"][protocol]
    player = contender("model", model, BOT_OF[protocol], **settings)
    return bs.experiment(bs.short(player, games=1, rounds=1)) if of_bs else small(player, games=1, turns=turns)


def play_config(protocol: Api, prompt: str, index: dict[str, Any], folder: Path) -> RunResult:
    run = bs.ran if prompt.startswith(OF_BS) else run_games
    return run(game(protocol, prompt, index), folder, in_flight=1)


@pytest.mark.vcr
@pytest.mark.block_network
@pytest.mark.parametrize(("protocol", "prompt"), SCENES)
def test_recorded_game_has_the_same_digest_and_outcomes(tmp_path: Path, protocol: Api, prompt: str, vcr: Any) -> None:
    index = yaml.safe_load(INDEX.read_text(encoding="utf-8"))
    with played_whole(vcr):
        run = play_config(protocol, prompt, index, tmp_path / "run")
    assert run.failure is None
    found = {"digest": run.results_digest, "outcomes": dict(run.models["model"].outcomes)}
    scene = f"{protocol}-{prompt}"
    if not vcr.write_protected:  # it has just been recorded
        index["results"][scene] = found
        INDEX.write_text(yaml.safe_dump(index, sort_keys=True), encoding="utf-8")
    assert found == index["results"][scene]
    assert 2 <= len(vcr) < 50, "vcrpy searches all of them for each request"

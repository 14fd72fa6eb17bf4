"""Short games as they were recorded through the real SDKs, replayed with no network: not even loopback.

`python -m tests.cassettes.record` records these, and only these, anew; docs/cassettes.md has the rest.
"""

from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from dubito.experiment.config import Experiment
from dubito.llm.wire import Protocol
from tests.cassettes.kit import INDEX, played_whole
from tests.llm.kit import BOT_OF, PROTOCOLS, contender, ran, small

FAULTS: Final = "house?faults=fenced:0.2,wrong_string:0.1,refusal:0.1,rate_limit:0.1"  # so that there are re-asks
SCENES: Final = [(protocol, prompt) for protocol in PROTOCOLS for prompt in ("plain", "reasoned")]


def game(protocol: Protocol, prompt: str, index: dict[str, Any], turns: int = 6) -> Experiment:
    """One short game of a model against two hand-written bots."""
    real = index["against"] == "providers"
    settings = {"api": protocol, "prompt": prompt, "base_url": None if real else FAULTS}
    return small(contender("model", index["models"][protocol], BOT_OF[protocol], **settings), games=1, turns=turns)


@pytest.mark.vcr
@pytest.mark.block_network
@pytest.mark.parametrize(("protocol", "prompt"), SCENES)
def test_a_recorded_game(tmp_path: Path, protocol: Protocol, prompt: str, vcr: Any) -> None:
    index = yaml.safe_load(INDEX.read_text(encoding="utf-8"))
    with played_whole(vcr):
        run = ran(game(protocol, prompt, index), tmp_path / "run", in_flight=1)
    assert run.failure is None
    found = {"digest": run.results_digest, "outcomes": dict(run.models["model"].outcomes)}
    scene = f"{protocol}-{prompt}"
    if not vcr.write_protected:  # it was recorded just now
        index["results"][scene] = found
        INDEX.write_text(yaml.safe_dump(index, sort_keys=True), encoding="utf-8")
    assert found == index["results"][scene]
    assert 2 <= len(vcr) < 50, "vcrpy looks through all of them for each request"

"""The sheet agrees with SciPy and scikit-learn on the rows of an exported dataset."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.kit import Shell

RUN = """
contenders:
- {bot: "house:house-sharp", prompt: reasoned, name: one}
- {bot: "house:house-sharp", prompt: beliefs, name: two, sample: 1}
bots: [StefaBot, UsualBot]
games: 24
table_sizes: [4]
rules: {max_turns: 60}
"""


@pytest.fixture
def exported(tmp_path: Path, shell: Shell) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the sheet of a run of fake models, and the rows of its questions about lies."""
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "c.yaml").write_text(RUN)
    assert shell("run", "c.yaml", "--output", "r", "--quiet").code == 0
    assert shell("export", "r", "--dataset", "data").code == 0
    rows = parquet.read_table(tmp_path / "data" / "decisions.parquet").to_pylist()
    sheet = json.loads(shell("deception", "r", "--json", "--quiet").out)
    return sheet, [row for row in rows if row["node"] == "C"]


@pytest.mark.at_length
def test_figures_are_those_of_scipy_and_scikit_learn(exported: tuple[dict[str, Any], list[dict[str, Any]]]) -> None:
    norm, metrics = pytest.importorskip("scipy.stats").norm, pytest.importorskip("sklearn.metrics")
    calibration = pytest.importorskip("sklearn.calibration")
    import numpy as np

    sheet, rows = exported
    models = [one for one in sheet["players"] if one["beliefs"]]
    assert len(models) == 2
    for one in models:
        own = [row for row in rows if row["player"] == one["name"]]
        truth = np.array([json.loads(row["truth"]) for row in own])
        called = np.array([json.loads(row["answer"]) for row in own])
        assert len(own) >= 100
        hits, alarms = ((called[truth == so].sum() + 0.5) / ((truth == so).sum() + 1) for so in (True, False))
        whole = one["parts"][0]
        assert whole["d_prime"]["value"] == pytest.approx(norm.ppf(hits) - norm.ppf(alarms), abs=1e-9)
        assert whole["criterion"]["value"] == pytest.approx(-(norm.ppf(hits) + norm.ppf(alarms)) / 2, abs=1e-9)
        assert whole["rates"]["precision"]["value"] == pytest.approx(metrics.precision_score(truth, called))
        assert whole["rates"]["recall"]["value"] == pytest.approx(metrics.recall_score(truth, called))
        has_belief = np.array([row["p_bluff"] is not None for row in own])
        stated = np.array([row["p_bluff"] for row in own if row["p_bluff"] is not None])
        lies = truth[has_belief]
        inside = np.minimum(stated + 1e-9, 1)  # our bins contain their lower end, and those of scikit-learn the upper
        shares, means = calibration.calibration_curve(lies, inside, n_bins=10)
        sizes = np.histogram(inside, bins=10, range=(0, 1))[0]
        error = np.average(np.abs(shares - means), weights=sizes[sizes > 0])
        assert one["beliefs"]["statements"] == len(stated)
        assert one["beliefs"]["auroc"]["value"] == pytest.approx(metrics.roc_auc_score(lies, stated))
        assert one["beliefs"]["brier"]["value"] == pytest.approx(metrics.brier_score_loss(lies, stated))
        assert one["beliefs"]["ece"]["value"] == pytest.approx(error, abs=1e-6)
        loss = metrics.log_loss(lies, stated.clip(0.001, 0.999))
        assert one["gap"]["loss"]["value"] == pytest.approx(loss, abs=1e-6)

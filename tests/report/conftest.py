"""Shared runs and reports."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.report.kit import hand_written, models, report_of, stating


@pytest.fixture(scope="package", autouse=True)
def short_odds() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dubito.show.odds.PLAYOUTS", 2)
        yield


@pytest.fixture(scope="package")
def bots_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Play a run of hand-written bots with a report."""
    folder = tmp_path_factory.mktemp("bots") / "run"
    hand_written(folder)
    report_of(folder)
    return folder


@pytest.fixture(scope="package")
def models_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Play a run of two model players with a report."""
    folder = tmp_path_factory.mktemp("models") / "run"
    models(folder)
    report_of(folder)
    return folder


@pytest.fixture(scope="package")
def stating_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Play a run of a model player that states probabilities, with a report."""
    folder = tmp_path_factory.mktemp("stating") / "run"
    stating(folder)
    report_of(folder)
    return folder

"""The fakes of the providers' addresses, and the variables that lead there."""

from collections.abc import Iterator

import pytest

from tests.providers.kit import Providers


@pytest.fixture(scope="module")
def fakes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Providers]:
    with Providers(tmp_path_factory.mktemp("providers")) as fakes:
        yield fakes


@pytest.fixture
def providers(fakes: Providers, monkeypatch: pytest.MonkeyPatch) -> Providers:
    for name, value in fakes.variables.items():
        monkeypatch.setenv(name, value)
    fakes.requests.clear()
    fakes.faults.clear()
    return fakes

"""A model server without faults, shared by a module's tests."""

from collections.abc import Iterator

import pytest

from dubito.house.server import House
from tests.house.kit import POLICY, Asker


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    with House(policy=POLICY) as house:
        yield house


@pytest.fixture(scope="module")
def ask(house: House) -> Iterator[Asker]:
    with Asker(house) as ask:
        yield ask

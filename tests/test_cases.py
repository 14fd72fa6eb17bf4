"""`cases`: each row that fails is named, and none hides another."""

import pytest

from tests.conftest import cases


@cases(("given", "expected"), [(1, 1), (2, 3), (4, 4), ("five", 5)])
def same(given: object, expected: int, more: int) -> None:
    assert given == expected + more


def test_every_row_that_fails_is_named_with_its_values() -> None:
    with pytest.raises(BaseExceptionGroup, match="2 of 4 cases failed") as caught:
        same(more=0)
    notes = [error.__notes__ for error in caught.value.exceptions]
    assert notes == [["in the case given=2, expected=3"], ["in the case given='five', expected=5"]]

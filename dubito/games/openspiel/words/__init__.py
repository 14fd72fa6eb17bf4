"""STUB."""

from typing import Any, Protocol


class Words(Protocol):
    title: str
    rules: tuple[str, ...]

    def names(self, seat: int) -> tuple[str, ...]: ...
    def holds(self, state: Any, seat: int) -> str: ...
    def history(self, state: Any, seat: int) -> list[tuple[int | None, str]]: ...


def words_for(game: Any) -> Words | None:
    return None

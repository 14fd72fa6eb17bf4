"""Who plays whom, when and from which position; and every match's own seeds, which nothing else can shift."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import shake_256
from typing import NamedTuple

from dubito.referee.match import MatchDraws


class Pairing(NamedTuple):
    """All matches of two bots in one game: they are played one after the other."""

    game: int  # places in the lists of the config
    bots: tuple[int, int]  # the first of them has seat 0 in matches 0, 2, 4, ...


def rounds(bots: int) -> Iterator[list[tuple[int, int]]]:
    """The circle method: every two bots meet once, and in a round nobody plays twice."""
    circle = [*range(bots), *([-1] if bots % 2 else [])]  # -1: whoever meets it rests
    half = len(circle) // 2
    for _ in range(len(circle) - 1):
        pairs = zip(circle[:half], reversed(circle[half:]), strict=True)
        yield sorted((min(pair), max(pair)) for pair in pairs if -1 not in pair)
        circle.insert(1, circle.pop())


def pairings(games: int, bots: int) -> list[Pairing]:
    """All that a tournament has to play, a game after the other, round by round."""
    return [Pairing(game, pair) for game in range(games) for pairs in rounds(bots) for pair in pairs]


def startable(waiting: Sequence[Pairing], busy: set[int]) -> Pairing | None:
    """The first of these whose bots are both free and wait for none before it.

    So a bot is in one match at a time, and meets its opponents in the same order however many pairs play at once.
    """
    taken = set(busy)
    for pairing in waiting:
        if taken.isdisjoint(pairing.bots):
            return pairing
        taken.update(pairing.bots)
    return None


def seats(match: int) -> tuple[int, int]:
    """Which of a pairing's two bots sits in seat 0, and which in seat 1: in turns."""
    return (match % 2, 1 - match % 2)


@dataclass(frozen=True, slots=True)
class Seeds:
    """What a match is drawn from, 64 bits each."""

    chance: tuple[int]
    replacements: tuple[int, int]  # of each seat
    bots: tuple[int, int]  # told to each seat, for bots that want to play the same match again

    def draws(self) -> MatchDraws:
        """The match's random streams."""
        return MatchDraws(self.chance[0], self.replacements)


class Source(NamedTuple):
    """What all seeds of a tournament come from."""

    seed: int  # public: bots' seeds need nothing else
    secret: str  # without which nobody can tell the other draws from what bots are told
    twins: bool = False  # a match and the next one, with seats swapped, have chance draws alike
    stay: bool = False  # bots stay for all matches of a seat, and are told one seed for all of them

    def seeds(self, game: str, pair: tuple[str, str], match: int) -> Seeds:
        """The seeds of one match."""
        where = f"seed {self.seed}, game {game}, pair {pair!r}, match"
        twin = match // 2 * 2 if self.twins else match
        (chance,) = _numbers(f"chance, secret {self.secret!r}, {where} {twin}", 1)
        one, other = _numbers(f"replacements, secret {self.secret!r}, {where} {match}", 2)
        told, told_other = _numbers(f"bots, {where} {match % 2 if self.stay else match}", 2)
        return Seeds((chance,), (one, other), (told, told_other))


def _numbers(text: str, count: int) -> list[int]:
    drawn = shake_256(f"dubito referee 2: {text}".encode()).digest(8 * count)
    return [int.from_bytes(drawn[8 * i : 8 * i + 8], "little") for i in range(count)]

"""CounterBot: Sherlock who knows beforehand how one player plays, from games of it; `dubito rate` fits it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from bots.manual.sherlock import KINDS, Kind, Sherlock

WEIGHT = 4.0  # decisions that the rate over all situations counts for in each


class CounterBot(Sherlock):
    """Sherlock who knows the habits of one player from its games, as `dubito rate` fits it to them."""

    origin, usual = "Dubito", False

    def __init__(
        self,
        id: int,
        opens: float = 0.5,
        answers: float = 0.5,
        loose: float = 0.3,
        doubts: Sequence[float] = (0.4,) * 24,
    ) -> None:
        """The player's rates: of bluffs when it opens, and with the number in hand; of plays with fewer cards than it
        could; of doubts, by `situation`."""
        super().__init__(id)
        self.kind: Kind = (opens, answers), loose, lambda k, has, alone, share, b: doubts[situation(k, has, alone, b)]

    @classmethod
    def fitted(cls, moves: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
        """The settings that say how a player plays, of its moves, each with the state of the game before it."""
        seen = Counter[tuple[str, int]]()  # by what was asked, and the situation: how often, and how often it was a yes
        yes = Counter[tuple[str, int]]()

        def count(question: str, answer: bool, place: int = 0) -> None:
            seen[question, place] += 1
            yes[question, place] += answer

        for state, output in moves:
            turn, held = state.view(), state.hands[state.seat].counts
            k, board, number = turn.n_cards_played, turn.board_cards, turn.current_number
            if turn.can_doubt:
                count("doubts", output.doubt, situation(k, bool(held[number]), board == k, board))
            if output.doubt:
                continue
            number = number or output.number
            bluffs = any(card not in (0, number) for card in output.cards)
            if not board:
                count("opens", bluffs)
            elif held[number]:
                count("answers", bluffs)
            most = turn.my_n_cards if bluffs else held[number]
            count("loose", len(output.cards) < min(3, most))
        whole = rate(yes.total(), seen.total(), 0.5)
        found: dict[str, Any] = {key: rate(yes[key, 0], seen[key, 0], whole) for key in ("opens", "answers", "loose")}
        times = [(yes["doubts", place], seen["doubts", place]) for place in range(24)]
        usual = rate(sum(y for y, _ in times), sum(n for _, n in times), 0.4)
        return found | {"doubts": [rate(y, n, usual) for y, n in times]}

    def _doubts(self, has: Sequence[float], k: int, by: int, more: int) -> list[float]:
        board, no, doubts = sum([play[1] for play in self.plays]) + more, has[0], self.kind[2]
        chance = (1 - no) * doubts(k, True, board == k, 0, board) + no * doubts(k, False, board == k, 0, board)
        return [chance] * len(KINDS)

    def _likely(self, kind: Kind, k: int, most: int, has: Sequence[float], opens: bool) -> tuple[float, float]:
        return super()._likely(self.kind, k, most, has, opens)


def situation(k: int, has: bool, alone: bool, board: int) -> int:
    """Of a doubt: how many cards were played, whether it has the number, whether they are all the board, its size."""
    return ((min(k, 3) - 1) * 2 + has) * 4 + alone * 2 + (board > 6)


def rate(yes: int, seen: int, usual: float) -> float:
    """How often, drawn to what is usual where little was seen."""
    return round((yes + WEIGHT * usual) / (seen + WEIGHT), 4)

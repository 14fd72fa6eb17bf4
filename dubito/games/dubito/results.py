"""What a game of Dubito comes to in numbers: buckets, measures, counts (R10, R12, R30, R31)."""

from collections.abc import Mapping
from typing import Final

from dubito.game import Habit, Measure, Results
from dubito.games.dubito.core_game import Result

_BUCKETS: Final = tuple(Result)
_HARD_WIN, _SOFT_WIN, _LOSS, _UNFINISHED = range(len(_BUCKETS))


def _bucket(place: int, capped: bool) -> int:
    if place:
        return _HARD_WIN if place == 1 else _SOFT_WIN
    return _UNFINISHED if capped else _LOSS


def _position(place: int, seats: int, capped: bool) -> int:
    """Twice the number of players behind this one, tied losers 1 (R31)."""
    if place:
        return 2 * (seats - place)
    return 0 if capped else 1


def equal_share(seats: int) -> Mapping[str, float]:
    """What every seat of a table gets if all are equal: one hard win, n - 3 soft wins, two losses (R10)."""
    return {
        "score": (seats - 1) / (2 * seats),
        "hard_wins": 1 / seats,
        "soft_wins": (seats - 3) / seats,
        "losses": 2 / seats,
        "unfinished": 0.0,
    }


RESULTS: Final = Results(
    buckets=_BUCKETS,
    endings=("hard win", "soft win", "loss", "unfinished"),
    bucket=_bucket,
    measures=(
        Measure("score", "Score", "Score", (2, 1, 0, 0), scale=2),  # counted in halves
        Measure("hard_wins", "hard", "Hard wins", (1, 0, 0, 0)),
        Measure("soft_wins", "soft", "Soft wins", (0, 1, 0, 0)),
        Measure("losses", "loss", "Losses", (0, 0, 1, 0)),
        Measure("unfinished", "unfinished", "Unfinished games", (0, 0, 0, 1)),
    ),
    headline=("score", "hard_wins"),
    equal_share=equal_share,
    game_counts=("turns", "free_turns"),  # free ones are not among the turns (R32)
    seat_counts=(
        "cards",  # held at the end
        "bluffs",
        "bluff_caught",
        "doubts",
        "successful_doubts",
        "cards_played",
        "play_turns",
        "not_first_turns",
    ),
    averaged=("cards",),
    habits=(
        Habit("bluff", "all bluffs, % of plays", "bluffs", "bluffs", "play_turns"),
        Habit("caught", "caught, % of bluffs", "caught", "bluff_caught", "bluffs"),
        Habit("doubt", "doubts, % of turns with cards on the board", "doubts", "doubts", "not_first_turns"),
        Habit("accuracy", "right, % of doubts", "right", "successful_doubts", "doubts"),
        Habit("cards", "cards per play", "cards", "cards_played", "play_turns", most=3),
    ),
    lies="bluff",
    lies_in_words="A bluff is by choice where its seat opened the round or held the number: a model has said so at "
    "node A or D. It is forced where the seat did not hold the number, so that node D was never asked. A play that "
    "comes out honest, as that of a joker alone, is no bluff, whatever was meant.",
    lie_nodes=("A", "D"),
    charted=("bluff", "doubt"),
    standing=_position,
    unfinished=Result.UNFINISHED,
    ended=lambda place, capped: f"place {place}" if place else "unfinished" if capped else "lost",
    turns_in_words=lambda means: f"{means[0]:.1f} without free turns, {sum(means):.1f} with them",
    rate="hard-win rate",
    meaning="Score is 1 for a hard win (first out of cards), 1/2 for a soft win (out of cards later), 0 for a loss.",
    neighbours="The next player may doubt what you put down; the previous one plays what you may doubt. So in general "
    "aggressive bots, who bluff much, vary with the next player, and passive ones with the previous.",
    habits_in_words="A bluff is a play with a card that is neither the declared number nor a joker. A doubt is right "
    "when it turns over a bluff.",
    stated="that the last play is dishonest (node C)",
)

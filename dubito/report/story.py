"""A game told turn by turn, as the viewer shows it. The engine says every state; the viewer knows no rules."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from dubito.errors import DubitoError, UsageError
from dubito.games.dubito.core_game import Game
from dubito.games.dubito.game_data import Event, PlayerWonEvent, TurnOutput
from dubito.games.dubito.hand import Hand
from dubito.games.dubito.record import GameRecord, Label, card_name, ending, in_order, narrated
from dubito.games.dubito.rules import is_honest
from dubito.human import GUEST, labels, names_to, to_me

_LETTERS: Final = "*A23456789TJQK"  # a card is a letter, so that a hand is a short word

Turns = Iterator[tuple[TurnOutput, Sequence[Event]]]


def told(
    game: Game, turns: Turns, names: Sequence[str], label: Label, spoken: Callable[[str], str] = str
) -> dict[str, Any]:
    """The game told, from its deal on; an error of a turn that cannot be played is passed on.

    `label` names the players in sentences, which are then `spoken` to whom they are for.
    """
    held = [list(hand.cards) for hand in game.hands]
    dealt = [_letters(hand) for hand in held]
    shown: list[dict[str, Any]] = []
    story: list[str] = []
    opened, number, free, seat = 0, 0, 0, game.seat
    for output, events in turns:
        was_free, free = game.free_turns > free, game.free_turns
        if output.doubt:
            opened = len(shown) + 1
        story.append(" ".join(spoken(narrated(event, label)) for event in events))
        now = [list(hand.cards) for hand in game.hands]
        shown.append(
            {
                "seat": seat,
                "pile": opened,  # the first turn whose cards lie on the board
                "won": [event.player_id for event in events if isinstance(event, PlayerWonEvent)],
                "free": was_free,
                "hands": {place: _letters(hand) for place, hand in enumerate(now) if hand != held[place]},
                **_played(output, number),
            }
        )
        number, seat, held = game.number, game.seat, now
    return {
        "names": list(names),
        "hands": dealt,
        "turns": shown,
        "story": story,  # a line for each turn
        "places": list(game.places),
        "ending": spoken(ending(game, label)),
    }


def of_outputs(game: Game, outputs: Iterable[TurnOutput]) -> Turns:
    """The turns of a game that is played from what its players gave back."""
    return ((output, game.apply(output)) for output in outputs)


def of_record(record: GameRecord) -> dict[str, Any]:
    """A saved game told; the person at its table, `me`, is spoken to as they were while they played.

    Raises UsageError if the record breaks the rules, or ends before its game does.
    """
    me = record.players.index(GUEST) if record.players.count(GUEST) == 1 else None
    label = labels(record.players, me)
    names = names_to(record.players, me)
    game = Game(record.rules, [Hand(cards) for cards in record.hands])
    outputs = (TurnOutput(output.doubt, output.number, output.cards) for output in record.outputs)
    try:
        whole = told(game, of_outputs(game, outputs), names, label, to_me)
    except DubitoError as error:
        raise UsageError(f"turn {game.turns_played + 1} of the record breaks the rules: {error}") from None
    if not game.over:
        raise UsageError(f"the record breaks off after {game.turns_played} turns, before the game is over")
    return whole | {"me": me, "capped": game.capped}


def _played(output: TurnOutput, number: int) -> dict[str, Any]:
    """What was put down, and as what; nothing of a doubt."""
    if output.doubt:
        return {}
    assert output.cards is not None
    claimed = output.number or number
    return {
        "claimed": card_name(claimed, plural=True),
        "cards": _letters(output.cards),
        "honest": is_honest(output.cards, claimed),
    }


def _letters(cards: Iterable[int]) -> str:
    return "".join(_LETTERS[card] for card in in_order(cards))

"""What a person sees of the table after each turn.

Pages only draw frames and do not implement any rules. A frame contains nothing that is hidden from the person.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

from dubito.game.words import Label, to_second_person
from dubito.games.dubito.cards import NUMBERS, TurnOutput
from dubito.games.dubito.engine import RESULTS, State, is_honest
from dubito.games.dubito.events import DoubtResolvedEvent, Event, PlayerWonEvent
from dubito.games.dubito.sentences import card_name, sentence, sort_cards
from dubito.games.dubito.words import DubitoWords

WORDS: Final = {
    "one": [card_name(card) for card in (0, *NUMBERS)],
    "many": [card_name(card, plural=True) for card in (0, *NUMBERS)],
    "lie": RESULTS.lie_words[0],
}


@dataclass(frozen=True, slots=True)
class ShownDoubt:
    """A doubt: the play that was revealed, and the player who picked up the board."""

    doubter: int
    target: int
    loser: int
    number: int  # claimed
    cards: list[int]
    correct: bool


@dataclass(frozen=True, slots=True)
class Frame:
    """The table between two turns. `really` and `honest` are None if they are hidden from the person."""

    turn: int  # turns played, free ones included
    mover: int | None  # whose turn it was
    said: list[str]
    counts: list[int]
    places: list[int | None]
    board: int
    number: int
    last: int  # cards of the last play
    last_player: int | None
    can_doubt: bool
    gone: list[int]  # numbers that have left the game
    to_move: int | None
    won: list[int]  # seats that have just won
    shown: ShownDoubt | None
    hand: list[int]  # the person's own cards
    hands: list[list[int]]  # all hands, once the game is over; None before
    turned: list[int]  # the board's cards, the last one on top, once the game is over; None before
    really: list[int] | None  # this turn's cards, if the person played them or the game is over
    honest: bool | None


def first_frame(state: State, label: Label, me: int) -> Frame:
    return next_frame(
        state,
        None,
        None,
        (),
        [to_second_person(sentence(cast(Event, state.start[0]), label), DubitoWords.SECOND_PERSON)],
        me,
    )


def next_frame(
    state: State, mover: int | None, output: TurnOutput | None, events: Sequence[Event], lines: list[str], me: int
) -> Frame:
    shown = output.cards if output and (mover == me or state.over) else None
    really = None if shown is None else sort_cards(shown)
    return Frame(
        turn=state.turns_played,
        mover=mover,
        said=lines,
        counts=[state.player_data(seat).n_cards for seat in range(len(state.hands))],
        places=list(state.places),
        board=len(state.board),
        number=state.number,
        last=state.n_cards_played,
        last_player=state.last_player,
        can_doubt=state.can_doubt,
        gone=[number for number in NUMBERS[: state.rules.ranks] if number not in state.playing_cards],
        to_move=None if state.over else state.seat,
        won=[event.player_id for event in events if isinstance(event, PlayerWonEvent)],
        shown=next((_show_doubt(event) for event in events if isinstance(event, DoubtResolvedEvent)), None),
        hand=sort_cards(state.hands[me].cards),
        hands=[sort_cards(hand.cards) for hand in state.hands] if state.over else [],
        turned=list(state.board) if state.over else [],
        really=really,
        honest=None if really is None else is_honest(really, state.number),
    )


def _show_doubt(event: DoubtResolvedEvent) -> ShownDoubt:
    cards = sort_cards(event.latest_cards)
    return ShownDoubt(event.doubter_id, event.target_id, event.loser_id, event.declared_number, cards, event.correct)

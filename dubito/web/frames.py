"""What is seen of the table after each turn: by the person who plays, or, of a finished game, by anybody.

A page shows frames and knows no rules. A frame of a running game holds nothing that its person may not know.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from dubito.core_game import Game
from dubito.errors import IllegalOutput, UsageError
from dubito.game_data import NUMBERS, DoubtResolvedEvent, Event, GameStartEvent, PlayerWonEvent, TurnOutput
from dubito.hand import Hand
from dubito.human import GUEST, in_words_to, labels, sorted_hand, to_me
from dubito.record import GameRecord, Label, card_name, ending
from dubito.rules import is_honest

WORDS: Final = {
    "one": [card_name(card) for card in (0, *NUMBERS)],
    "many": [card_name(card, plural=True) for card in (0, *NUMBERS)],
}


@dataclass(frozen=True, slots=True)
class Shown:
    """A doubt: the play that was turned over, and who took the board."""

    doubter: int
    target: int
    loser: int
    number: int  # claimed
    cards: list[int]
    correct: bool


@dataclass(frozen=True, slots=True)
class Frame:
    """The table between two turns; the last three fields are None where they are nobody's to see."""

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
    shown: Shown | None
    hand: list[int] | None  # the person's own
    really: list[int] | None  # the cards of this turn's play, where they are known
    honest: bool | None
    hands: list[list[int]] | None = None  # of a finished game: everybody's
    pile: list[int] | None = None  # and what lies on the board


def names(players: Sequence[str], me: int | None) -> list[str]:
    """What the seats are called, the person's as he is spoken to."""
    label = labels(players, me)
    return ["You" if seat == me else label(seat) for seat in range(len(players))]


def dealt(game: Game, label: Label, me: int | None, open_hands: bool = False) -> Frame:
    """The table before the first turn."""
    counts = tuple(len(hand.cards) for hand in game.hands)
    start = GameStartEvent(tuple(range(len(counts))), counts)
    return _frame(game, None, [in_words_to(start, label)], (), me, None, open_hands)


def after(
    game: Game, mover: int, output: TurnOutput, events: Sequence[Event], said: list[str], me: int | None
) -> Frame:
    """The table after a turn, as the person sees it who sits at `me`."""
    return _frame(game, mover, said, events, me, output if mover == me else None, False)


def _frame(
    game: Game,
    mover: int | None,
    said: list[str],
    events: Sequence[Event],
    me: int | None,
    known: TurnOutput | None,
    open_hands: bool,
) -> Frame:
    really = None if known is None or known.cards is None else sorted_hand(known.cards)
    return Frame(
        turn=game.turns_played,
        mover=mover,
        said=said,
        counts=[game.player_data(seat).n_cards for seat in range(len(game.hands))],
        places=list(game.places),
        board=len(game.board),
        number=game.number,
        last=game.n_cards_played,
        last_player=game.last_player,
        can_doubt=game.can_doubt,
        gone=[number for number in NUMBERS if number not in game.playing_cards],
        to_move=None if game.over else game.seat,
        won=[event.player_id for event in events if isinstance(event, PlayerWonEvent)],
        shown=next((_shown(event) for event in events if isinstance(event, DoubtResolvedEvent)), None),
        hand=None if me is None else sorted_hand(game.hands[me].cards),
        really=really,
        honest=None if really is None else is_honest(really, game.number),
        hands=[sorted_hand(hand.cards) for hand in game.hands] if open_hands else None,
        pile=list(game.board) if open_hands else None,
    )


def _shown(event: DoubtResolvedEvent) -> Shown:
    cards = sorted_hand(event.latest_cards)
    return Shown(event.doubter_id, event.target_id, event.loser_id, event.declared_number, cards, event.correct)


def opened(record: GameRecord) -> dict[str, Any]:
    """A finished game with open hands, frame by frame; raises UsageError for one that breaks the rules."""
    me = record.players.index(GUEST) if record.players.count(GUEST) == 1 else None
    label = labels(record.players, me)
    return {
        "names": names(record.players, me),
        "me": me,
        "words": WORDS,
        "rules": asdict(record.rules),
        "seed": record.seed,
        "deal": record.deal,
        "frames": [asdict(frame) for frame in _replayed(record, label)],
    }


def _replayed(record: GameRecord, label: Label) -> Iterator[Frame]:
    game = Game(record.rules, [Hand(cards) for cards in record.hands])
    yield dealt(game, label, None, open_hands=True)
    for output in record.outputs:
        mover, turn = game.seat, TurnOutput(output.doubt, output.number, output.cards)
        try:
            events = game.apply(turn)
        except IllegalOutput as error:
            raise UsageError(f"turn {game.turns_played + 1} of the record breaks the rules: {error}") from None
        said = [in_words_to(event, label) for event in events]
        if game.over:
            said.append(to_me(ending(game, label)))
        yield _frame(game, mover, said, events, None, turn, True)

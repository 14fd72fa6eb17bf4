"""Dubito's rules, the state of a game, the deal and the results (R10, R12, R30, R31).

The caller (a table of bots, a terminal, a replay) repeats `view()` and `apply(output)` until `over`. An illegal
output raises an error and changes nothing (R13). The engine uses no clock and no I/O. Its only randomness is the deal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Any, ClassVar, Final, Literal, get_args

from dubito.errors import IllegalOutput, UsageError
from dubito.game import Ending, GameEvent, Habit, Lie, Measure, Player, Results
from dubito.game.events import ANNOUNCED
from dubito.game.native import Loose, mypyc_attr
from dubito.game.streams import DealStreams, SeatStreams
from dubito.game.table import Entrant, Table
from dubito.games.dubito.cards import COPIES, JOKER, MAX_PLAY, NUMBERS, Hand, HandView, PlayerData, TurnData, TurnOutput
from dubito.games.dubito.events import (
    CardList,
    CardsPlayedEvent,
    DiscardEvent,
    DoubtResolvedEvent,
    GameStartEvent,
    HandDealtEvent,
    OwnCardsEvent,
    PlayerWonEvent,
)

WinRule = Literal["immediate", "contested"]

MIN_PLAYERS: Final = 3
MAX_PLAYERS: Final = 8
DUEL: Final = 2  # seats in the variant
MAX_JOKERS: Final = 2
MIN_RANKS: Final = 2  # with a single number every play would be honest
MIN_COPIES: Final = 2  # with one of each number every card would be a set


@mypyc_attr(native_class=False)
@dataclass(frozen=True, slots=True)
class Rules:
    """The rules in force: R1 (jokers), R9 (when an empty hand wins), R12 (turn limit), and the variant."""

    # Used to read records. The types are quoted because the compiler only preserves quoted types as written.
    __pydantic_config__: "ClassVar[dict[str, object]]" = {"extra": "forbid", "strict": True}  # noqa: RUF008

    jokers: int = 2
    win_rule: "WinRule" = "immediate"
    max_turns: int = 1000
    ranks: int = 13  # numbers in the deck, from the ace
    copies: int = 4  # of each number
    duel: bool = False  # two seats: the first player without cards wins

    @property
    def engine_rules(self) -> "Rules":
        return self

    @property
    def deck(self) -> list[int]:
        return [*NUMBERS[: self.ranks]] * self.copies + [JOKER] * self.jokers

    @property
    def seats(self) -> tuple[int, int]:
        return (DUEL, DUEL) if self.duel else (MIN_PLAYERS, min(MAX_PLAYERS, len(self.deck)))

    @property
    def is_full_deck(self) -> bool:
        return self.ranks == len(NUMBERS) and self.copies == COPIES

    def stored_form(self) -> dict[str, Any]:
        """Return the rules as stored in runs, records and prompts, without variant fields that have the default."""
        variant = {"ranks": (self.ranks, len(NUMBERS)), "copies": (self.copies, COPIES), "duel": (self.duel, False)}
        own = {key: value for key, (value, usual) in variant.items() if value != usual}
        return {"jokers": self.jokers, "win_rule": self.win_rule, "max_turns": self.max_turns, **own}

    def __post_init__(self) -> None:
        if not 0 <= self.jokers <= MAX_JOKERS:
            raise UsageError(f"jokers: {self.jokers} is not between 0 and {MAX_JOKERS}")
        if self.win_rule not in get_args(WinRule):
            raise UsageError(f"win_rule: {self.win_rule!r} is neither 'immediate' nor 'contested'")
        if self.max_turns < 1:
            raise UsageError(f"max_turns: {self.max_turns} is less than 1")
        if not MIN_RANKS <= self.ranks <= len(NUMBERS):
            raise UsageError(f"ranks: {self.ranks} is not between {MIN_RANKS} and {len(NUMBERS)}")
        if not MIN_COPIES <= self.copies <= COPIES:
            raise UsageError(f"copies: {self.copies} is not between {MIN_COPIES} and {COPIES}")


_USUAL: Final = Rules()


def check_players(n: int, rules: Rules = _USUAL) -> None:
    """Raise UsageError if these rules do not allow a table of this size (R1)."""
    if rules.duel and n != DUEL:
        raise UsageError(f"a duel needs {DUEL} players, not {n}; seat {DUEL}, or leave out `duel`")
    if not rules.duel and not MIN_PLAYERS <= n <= MAX_PLAYERS:
        variant = "; two players need the `duel` variant" if n == DUEL else ""
        raise UsageError(f"Dubito needs {MIN_PLAYERS} to {MAX_PLAYERS} players, not {n}{variant}")


def deal_hands(rng: Random, n_players: int, rules: Rules) -> list[Hand]:
    """Shuffle and deal card by card from seat 0, again and again until no hand contains a set (R1, R2)."""
    check_players(n_players, rules)
    deck = rules.deck
    if len(deck) < n_players:
        raise UsageError(f"the deck has {len(deck)} cards, too few for {n_players} players; set more `ranks`")
    while True:
        _shuffle(deck, rng)
        hands = [Hand(deck[seat::n_players], rules.copies) for seat in range(n_players)]
        if not any(hand.has_set for hand in hands):
            return hands


def _shuffle(deck: list[int], rng: Random) -> None:
    """Shuffle exactly like `Random.shuffle`. This takes half the time if `rng` is a plain `Random`."""
    if type(rng) is not Random:
        rng.shuffle(deck)
        return
    draw = rng.getrandbits
    for last in range(len(deck) - 1, 0, -1):
        bits = (last + 1).bit_length()
        place = draw(bits)
        while place > last:
            place = draw(bits)
        deck[last], deck[place] = deck[place], deck[last]


def last_play_is_dishonest(board: Sequence[int], n: int, number: int | None) -> bool | None:
    return not is_honest(board[-n:], number) if number in NUMBERS else None


def is_honest(cards: Sequence[int], number: int) -> bool:
    """Return whether each card is the declared number or a joker (R5)."""
    for card in cards:  # noqa: SIM110, a generator costs twice as much
        if card != number and card != JOKER:
            return False
    return True


def classify_bluff(cards: Sequence[int] | None, declared: int | None, number: int, held: Sequence[int]) -> Lie | None:
    """Classify a play by the round's number (0 for an opening) and the hand's counts (R5, R25).

    A bluff in an opening is always voluntary. Later a bluff is only voluntary if the hand contains the number; jokers
    do not count (R22).
    """
    if not cards or is_honest(cards, declared or number):
        return None
    return "chosen" if not number or held[number] else "forced"


def why_illegal(output: object, held: list[int], number: int, can_doubt: bool, ranks: int = NUMBERS[-1]) -> str | None:
    """Return why the seat to move may not do this, or None if it may (R3, R4, R13).

    `held` counts the seat's own cards by value, `number` is the round's number (0 on an empty board), and numbers go up
    to `ranks`. Types are compared exactly and only their names are quoted, so that the bot's code does not run.
    """
    if type(output) is not TurnOutput:
        return f"the output must be a TurnOutput, not {_kind(output)}"
    cards: Any = output.cards
    if output.doubt is True:
        if cards is not None and not _is_empty(cards):
            return "a doubt must not include cards"
        if can_doubt:
            return _explain_illegal_number(output.number, number, ranks)
        return "an empty board has no play to doubt" if number == 0 else "the player to doubt has left the game"
    if output.doubt is not False:
        return f"doubt must be True or False, not {_kind(output.doubt)}"
    cards = [*cards] if type(cards) is tuple else cards
    if type(cards) is not list:
        return f"cards must be a list of 1 to {MAX_PLAY} cards, not {_kind(cards)}"
    n = len(cards)
    if not 1 <= n <= MAX_PLAY:
        return f"{n} cards were played; play 1 to {MAX_PLAY}"
    for card in cards:  # check all types first, so that no card's code runs
        if type(card) is not int or not 0 <= card <= 13:
            return f"the deck has no card {_number_or_kind(card)}"
    for card in cards:
        if held[card] < n and held[card] < cards.count(card):
            return f"the hand holds {held[card]} of card {card}, not {cards.count(card)}"
    return None if output.number is None and number else _explain_illegal_number(output.number, number, ranks)


def _explain_illegal_number(declared: object, number: int, ranks: int) -> str | None:
    if number == 0:
        if type(declared) is int and 1 <= declared <= ranks:
            return None
        return f"an opening must declare a number from 1 to {ranks}, not {_number_or_kind(declared)}"
    if declared is None or (type(declared) is int and declared == number):
        return None
    return f"the number of this round is {number}; declare it or None"


def _is_empty(cards: object) -> bool:
    return (type(cards) is list or type(cards) is tuple) and not cards


def _number_or_kind(value: object) -> str:
    return str(value) if type(value) is int and abs(value) < 10**6 else _kind(value)


def _kind(value: object) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"


class Result(StrEnum):
    """A player's result (R10, R12). The values are the buckets of a run's results (R30)."""

    HARD_WIN = "hard_wins"
    SOFT_WIN = "soft_wins"
    LOSS = "losses"
    UNFINISHED = "unfinished"


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
@dataclass(slots=True)
class SeatCounts:
    """A seat's counters, including the ones in its public PlayerData (R31).

    Numbers are Loose, as in PlayerData, so that compiled code passes them on unchanged.
    """

    seat: Loose[int]
    n_cards: Loose[int]
    turns: Loose[int] = 0
    not_first_turns: Loose[int] = 0
    doubts: Loose[int] = 0
    honest_times: Loose[int] = 0
    dishonest_times: Loose[int] = 0
    play_turns: Loose[int] = 0
    cards_played: Loose[int] = 0
    bluffs: Loose[int] = 0
    successful_doubts: Loose[int] = 0

    def public(self) -> PlayerData:
        """Return a new object with what the table knows about the seat."""
        return PlayerData(
            self.seat,
            self.n_cards,
            self.turns,
            self.not_first_turns,
            self.doubts,
            self.honest_times,
            self.dishonest_times,
        )


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class State:
    """The state of one game. Read its attributes freely; change it only through `apply`."""

    def __init__(self, rules: Rules, hands: list[Hand]) -> None:
        """Begin a game with seat 0. Takes ownership of the hands, which must not contain a set (R2)."""
        n = len(hands)
        check_players(n, rules)
        self.rules = rules
        self.hands = hands
        self.counts = [SeatCounts(seat, len(hand.cards)) for seat, hand in enumerate(hands)]
        self.places: list[int | None] = [None] * n  # 1, 2, ... for winners (R10)
        self.n_players = n  # still seated
        self.seat = 0  # whose turn it is
        self.board: list[int] = []
        self.number = 0  # the number of the round; 0 on an empty board
        self.n_cards_played = 0
        self.last_player: int | None = None
        self.streak = 0
        self.can_doubt = False
        self.playing_cards = CardList(NUMBERS[: rules.ranks])
        self.turns = 0  # finished turns, excluding free turns (R12, R32)
        self.free_turns = 0
        self.over = False
        self.capped = False  # the turn limit ended the game; seated players are unfinished
        self._before = [seat - 1 for seat in range(n)]
        self._before[0] = n - 1
        self._after: list[int] = [*range(1, n), 0]
        self._bluffed = False  # the last play was not honest (R5)
        self._free = False  # this turn is a free one (R7)
        self._pending: int | None = None  # contested: the seat that played its last card (R9)
        self._events: list[GameEvent] | None = None

    def view(self) -> TurnData:
        """Return a new object with what the seat to move sees."""
        seat, counts = self.seat, self.counts
        me = counts[seat]
        return TurnData(
            len(self.board),
            self.playing_cards,
            self.number,
            self.n_cards_played,
            self.streak,
            self.n_players,
            me.n_cards,
            me.public(),
            counts[self._before[seat]].public(),
            counts[self._after[seat]].public(),
            self.can_doubt,
            self.last_player,
        )

    def cards(self, seat: int, streams: SeatStreams) -> HandView:
        return HandView(self.hands[seat], streams)

    def copy_of(self, output: TurnOutput) -> TurnOutput:
        return TurnOutput(output.doubt, output.number, None if output.cards is None else list(output.cards))

    @property
    def start(self) -> list[GameEvent]:
        counts = CardList(len(hand.cards) for hand in self.hands)
        hands = [HandDealtEvent(tuple(sorted(hand.cards)), only=seat) for seat, hand in enumerate(self.hands)]
        return [GameStartEvent(CardList(range(len(counts))), counts), *hands]

    @property
    def turns_played(self) -> int:
        return self.turns + self.free_turns

    def result(self, seat: int) -> Result:
        place = self.places[seat]
        if place is not None:
            return Result.HARD_WIN if place == 1 else Result.SOFT_WIN
        return Result.UNFINISHED if self.capped else Result.LOSS

    def ending(self) -> Ending:
        """Return the finished game's counts in the order of `RESULTS` (R31)."""
        counts: list[tuple[int, ...]] = [
            (
                own.n_cards,
                own.bluffs,
                own.dishonest_times,
                own.doubts,
                own.successful_doubts,
                own.cards_played,
                own.play_turns,
                own.not_first_turns,
            )
            for own in self.counts
        ]
        return Ending(self.capped, (self.turns, self.free_turns), [place or 0 for place in self.places], counts)

    def apply(self, output: Loose[TurnOutput], announce: int = ANNOUNCED) -> list[GameEvent]:
        """Apply the output of the seat to move and return its events (R26, see `dubito.game.State`).

        An illegal output raises IllegalOutput and changes nothing.
        """
        if self.over:
            raise IllegalOutput("the game is over")
        seat = self.seat
        reason = why_illegal(output, self.hands[seat].counts, self.number, self.can_doubt, self.rules.ranks)
        if reason is not None:
            raise IllegalOutput(reason)
        events: list[GameEvent] = []
        self._events = events if announce else None
        counts = self.counts[seat]
        counts.turns += 1
        if self.number:
            counts.not_first_turns += 1
        earned = False
        if output.doubt:
            earned = self._doubt(seat)
        else:
            cards: Any = output.cards
            self._play(seat, cards if type(cards) is list else [*cards], output.number or self.number, announce)
        if self._free:
            self.free_turns += 1
        else:
            self.turns += 1
        self._free = earned
        if not earned:
            self.seat = self._after[seat]
            if self.turns >= self.rules.max_turns and not self.over:
                self.over = self.capped = True  # R12: an earned free turn is still played
        return events

    def _play(self, seat: int, cards: list[int], number: int, announce: int) -> None:
        n = len(cards)
        self.hands[seat].remove(cards)
        self.board += cards
        self.number = number
        self.n_cards_played = n
        self.last_player = seat
        self.streak += 1
        self.can_doubt = True
        counts = self.counts[seat]
        counts.play_turns += 1
        counts.cards_played += n
        self._bluffed = not is_honest(cards, number)
        if self._bluffed:
            counts.bluffs += 1
        counts.n_cards -= n
        if self._events is not None:
            self._events.append(CardsPlayedEvent(seat, number, n))
            if announce > ANNOUNCED:
                self._events.append(OwnCardsEvent(tuple(cards), self._bluffed, only=seat))
        if self._pending is not None:
            self._place_pending()
        if counts.n_cards == 0 and not self.over:
            if self.rules.win_rule == "contested":
                self._pending = seat
            else:
                self._win(seat)
                self.can_doubt = False

    def _doubt(self, seat: int) -> bool:
        """Resolve the doubt and return whether it caught a bluff."""
        target = self.last_player
        assert target is not None  # why_illegal has already checked this
        latest = self.board[-self.n_cards_played :]
        counts = self.counts
        counts[seat].doubts += 1
        if self._bluffed:
            counts[seat].successful_doubts += 1
            counts[target].dishonest_times += 1
            loser, picked_up = target, self.board
            if self._pending == target:
                self._pending = None
        else:
            counts[target].honest_times += 1
            older = self.board[: -self.n_cards_played]
            loser, picked_up = seat, older + [card for card in latest if card != JOKER]
        self.hands[loser].add(picked_up)
        if self._events is not None:
            jokers = len(self.board) - len(picked_up)
            shown, taken = CardList(latest), CardList(picked_up)
            self._events.append(DoubtResolvedEvent(seat, target, self._bluffed, shown, taken, self.number, jokers))
        self.board = []
        self.number = self.n_cards_played = self.streak = 0
        self.last_player = None
        self.can_doubt = False
        self._discard_sets(loser)
        if self._pending is not None:
            self._place_pending()
        if counts[loser].n_cards == 0 and not self.over:
            self._win(loser)
        return self._bluffed

    def _discard_sets(self, seat: int) -> None:
        """Discard sets from the hand that just grew, because no other hand can contain a set (R8)."""
        hand = self.hands[seat]
        sets = hand.discard_sets()
        self.counts[seat].n_cards = len(hand.cards)
        if sets:
            self.playing_cards = CardList(number for number in self.playing_cards if number not in sets)
            if self._events is not None:
                self._events.extend(DiscardEvent(seat, number, hand.copies) for number in sets)

    def _place_pending(self) -> None:
        assert self._pending is not None
        self._win(self._pending)
        self._pending = None

    def _win(self, seat: int) -> None:
        """Give the seat the next place. End the game if two players (one in a duel) are left (R10)."""
        place = len(self.places) - self.n_players + 1
        self.places[seat] = place
        self.n_players -= 1
        before, after = self._before[seat], self._after[seat]
        self._after[before] = after
        self._before[after] = before
        if self._events is not None:
            self._events.append(PlayerWonEvent(seat, place))
        if self.n_players <= 2:
            self.over = True


def deal_game(rules: Rules, seats: int, deck: Random) -> State:
    return State(rules, deal_hands(deck, seats, rules))


def deal_table(
    entrants: Sequence[Entrant],
    rules: Rules,
    streams: DealStreams,
    *,
    deal: int = 0,
    number: int = 0,
    fallback: type[Player] | None = None,
    services: Sequence[object] = (),
) -> Table[State]:
    state = deal_game(rules, len(entrants), streams.deck())
    return Table(state, entrants, streams, deal=deal, number=number, fallback=fallback, services=services)


_BUCKETS: Final = tuple(Result)
_HARD_WIN, _SOFT_WIN, _LOSS, _UNFINISHED = range(len(_BUCKETS))


def _bucket(place: int, capped: bool) -> int:
    if place:
        return _HARD_WIN if place == 1 else _SOFT_WIN
    return _UNFINISHED if capped else _LOSS


def _position(place: int, seats: int, capped: bool) -> int:
    if place:
        return 2 * (seats - place)
    return 0 if capped or seats == DUEL else 1


def equal_share(seats: int) -> Mapping[str, float]:
    """Return the chance level: the result that each seat would have if all players were equal (R10)."""
    if seats == DUEL:
        return {"score": 1 / 2, "hard_wins": 1 / 2, "soft_wins": 0.0, "losses": 1 / 2, "unfinished": 0.0}
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
    game_counts=("turns", "free_turns"),  # turns do not include free turns (R32)
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
    describe_lies="A bluff is voluntary if the seat opened the round or held the number: a model chose it at node A or "
    "D. It is forced if the seat did not hold the number, so that node D was not asked. A play that turns out honest, "
    "such as a single joker, is not a bluff, whatever was intended.",
    lie_nodes=("A", "D"),
    lie_words=("bluff", "doubt"),
    found_out="bluff_caught",
    charted=("bluff", "doubt"),
    standing=_position,
    unfinished=Result.UNFINISHED,
    ended=lambda place, capped: f"place {place}" if place else "unfinished" if capped else "lost",
    describe_turns=lambda means: f"{means[0]:.1f} without free turns, {sum(means):.1f} with them",
    rate="hard-win rate",
    meaning="Score is 1 for a hard win (first out of cards), 1/2 for a soft win (out of cards later), 0 for a loss.",
    neighbours="The next player can doubt your plays, and you can doubt the previous player's. The results of bots "
    "that bluff a lot therefore usually depend on the next player, and those of passive bots on the previous player.",
    habits_in_words="A bluff is a play with a card that is neither the declared number nor a joker. A doubt is right "
    "when it turns over a bluff.",
    stated="that the last play is dishonest (node C)",
)

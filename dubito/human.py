"""A person at the table: their seat among bots, what they may do there, and the game in words to them.

Bots are stepped by the code that a run uses; the person's output is checked before the turn is played, so
that a mistake of theirs changes nothing.
"""

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from dubito.errors import IllegalOutput, UsageError, one_line
from dubito.games.dubito.dealing import deal_table
from dubito.games.dubito.game_data import Event, TurnData, TurnOutput
from dubito.games.dubito.player import PlayerAI
from dubito.games.dubito.record import GameRecord, Label, RecordedOutput, Recorder, ending, narrated
from dubito.games.dubito.rules import Rules, check_players, why_illegal
from dubito.games.dubito.spec import SPEC
from dubito.handlers import Entrant, step
from dubito.streams import DealStreams

GUEST: Final = "Guest"  # what a record calls the person
GOOD_BOTS: Final = ("ClaudeBot", "AdaptyBoi", "StefaBot")
SEEDS: Final = 2**53  # whole numbers that every browser can hold

_ME: Final = "\0"  # stands for the person while a sentence is made; no name can contain it
_TO_ME: Final = {
    f"{_ME} puts": "You put",
    f"{_ME} doubts": "You doubt",
    f"{_ME}, who shows": "you, and you show",
    f"{_ME} picks": "You pick",
    f"{_ME} discards": "You discard",
    f"{_ME} is": "You are",
    f"{_ME} holds": "you hold",
    _ME: "you",
}


class Guest(PlayerAI):
    """The person, as the table sees them: plays what was typed."""

    given: TurnOutput

    def play(self, p: TurnData) -> TurnOutput:
        """What the person decided."""
        return self.given


@dataclass(frozen=True, slots=True)
class Setup:
    """All that fixes a game beside the person's own moves."""

    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid", "strict": True}  # where it is read again

    bots: list[str]
    seat: int
    seed: int
    deal: int = 0
    rules: Rules = field(default_factory=Rules)

    def __post_init__(self) -> None:
        check_players(len(self.bots) + 1)
        if GUEST in self.bots:
            raise UsageError(f"nobody else may be named {GUEST}: a record calls the person at the table so")
        if not 0 <= self.seat <= len(self.bots):
            raise UsageError(f"seat: {self.seat} is not between 0 and {len(self.bots)}")

    @property
    def players(self) -> list[str]:
        """Who sits at the table, seat by seat."""
        return [*self.bots[: self.seat], GUEST, *self.bots[self.seat :]]


def set_up(bots: Sequence[str], rules: Rules, seat: int | None, seed: int | None, deal: int = 0) -> Setup:
    """A game with the person in that seat; what they do not say, chance does."""
    seed = secrets.randbelow(SEEDS) if seed is None else seed
    if seat is None:
        seat = DealStreams(seed, deal).seating().randrange(len(bots) + 1)
    return Setup(list(bots), seat, seed, deal, rules)


class Sitting:
    """One game with a person at the table, told turn by turn."""

    def __init__(
        self,
        setup: Setup,
        bots: Sequence[Entrant],
        fallback: type[PlayerAI],
        services: Sequence[object] = (),
        number: int = 0,
    ) -> None:
        """Deal the cards to the person and these bots, those of `setup`.

        A bot that fails is stood in for by `fallback`, and what it did kept in `errors`. `services` are what the
        bots need who ask a model, one each, and `number` the game's in the store of what they are asked.
        """
        self.setup = setup
        self.me = setup.seat
        self.asks_models = any(bot.bot.is_model for bot in bots)
        self.number = number if self.asks_models else 0
        seats = [*bots[: self.me], Entrant(GUEST, Guest), *bots[self.me :]]
        given = [*services[: self.me], None, *services[self.me :]] if services else ()
        self._table = deal_table(
            seats,
            setup.rules,
            DealStreams(setup.seed, setup.deal),
            deal=setup.deal,
            number=self.number,
            fallback=fallback,
            services=given,
        )
        self.game = self._table.game
        self.label = labels(setup.players, self.me)
        self.recorder = Recorder(self.game)

    @property
    def asked(self) -> bool:
        """Whether it is the person's turn."""
        return not self.game.over and self.game.seat == self.me

    @property
    def errors(self) -> list[str]:
        """What bots did wrong so far. Not for the person before the end: it may tell of their cards."""
        return [str(error) for error in self._table.errors]

    @property
    def waits_for(self) -> str | None:
        """The player whose turn it is, in words, if it asks a model and so may take its time."""
        game = self.game
        if game.over or not self._table.entrants[game.seat].bot.is_model:
            return None
        return self.label(game.seat)

    def why_not(self, output: TurnOutput) -> str | None:
        """Why the person may not do this on their turn, in the engine's words; None if they may."""
        game = self.game
        return why_illegal(output, game.hands[self.me].counts, game.number, game.can_doubt)

    def step(self, output: TurnOutput | None = None) -> tuple[TurnOutput, Sequence[Event], list[str]]:
        """Play one turn, the person's with their output: what was put down, the events, and both in words to them.

        Raises IllegalOutput, nothing changed, for what they may not do.
        """
        game, table = self.game, self._table
        seat, stood_in = game.seat, sum(table.fallback_turns)
        if self.asked:
            reason = "it is your turn" if output is None else self.why_not(output)
            if output is None or reason is not None:
                raise IllegalOutput(reason)
            me = table.players[self.me]
            assert isinstance(me, Guest)
            me.given = output
        elif output is not None:
            raise IllegalOutput("the game is over" if game.over else "it is not your turn")
        played, events = step(table, announce=True)
        self.recorder.add(game.turns_played, played, events)
        words = [in_words_to(event, self.label) for event in events]
        if sum(table.fallback_turns) > stood_in:
            words.insert(0, f"{self.label(seat)} has failed: {SPEC.fallback}'s rules play its turn.")
        if game.over:
            words.append(to_me(ending(game, self.label)))
        return played, events, words

    def play_again(self, outputs: Iterable[RecordedOutput], take: Callable[[TurnOutput | None], object]) -> None:
        """Play turns that were played before, from the deal on; `take` makes each, the person's with their output.

        Raises UsageError where a bot does something else than it did.
        """
        for output in outputs:
            seat = self.game.seat
            take(TurnOutput(output.doubt, output.number, output.cards) if self.asked else None)
            if self.recorder.outputs[-1] != output:
                name = self.label(seat)
                raise UsageError(f"{name} does not play as it did: its file was changed, or it is not repeatable")

    def record(self) -> GameRecord:
        """The finished game."""
        number = self.number if self.asks_models else None
        return self.recorder.record(self.game, self.setup.players, self.setup.seed, self.setup.deal, number)


def labels(players: Sequence[str], me: int | None) -> Label:
    """The player's name, with the seat where several share one or it is "You"; the person's seat is their stand-in."""

    def label(seat: int) -> str:
        if seat == me:
            return _ME
        name = one_line(players[seat])
        alone = players.count(players[seat]) == 1 and (me is None or name.casefold() != "you")
        return name if alone else f"{name} {seat}"

    return label


def names_to(players: Sequence[str], me: int | None) -> list[str]:
    """What the seats are called, the person's as they are spoken to."""
    label = labels(players, me)
    return ["You" if seat == me else label(seat) for seat in range(len(players))]


def in_words_to(event: Event, label: Label) -> str:
    """One event in a card player's words; what the person does is said to them."""
    return to_me(narrated(event, label))


def to_me(text: str) -> str:
    """The sentence with the person spoken to."""
    for words, said in _TO_ME.items():
        text = text.replace(words, said)
    return text


def sorted_hand(cards: Iterable[int]) -> list[int]:
    """A hand as a player sorts it: ascending, jokers last."""
    return sorted(cards, key=lambda card: (card == 0, card))


def as_sentence(reason: str) -> str:
    """The engine's reason with a capital, unless an address begins it, and a full stop."""
    first = reason[:1] if "://" in reason.partition(" ")[0] else reason[:1].upper()
    return f"{first}{reason[1:]}{'' if reason.endswith(('.', '?', '!')) else '.'}"

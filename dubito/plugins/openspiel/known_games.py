"""Four OpenSpiel games in words: their rules, the names of their actions, and what a seat holds and has seen.

Every sentence of the rules describes what the engine does, including oddities, and is tested against the engine. One
detail is omitted: if two arrangements of a gin hand leave the same number of points, the engine (gin_rummy_utils.cc)
uses the first it finds. All descriptions depend only on the seat's information state. This module does not import
OpenSpiel. Callers pass the game and its states.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, Final, Protocol, cast

from dubito.errors import pluralize
from dubito.game.reader import Reader
from dubito.game.words import Face, Panel
from dubito.plugins.openspiel.engine import parameters
from dubito.plugins.openspiel.engine_types import Engine, EngineState, GinState

Line = tuple[int | None, str]  # the acting seat (None for chance) and the sentence

_RANKS: Final = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "jack", "queen", "king")


def describe_seats(players: int) -> str:
    return "Two players sit in seats 0 and 1" if players == 2 else f"{players} players sit in seats 0 to {players - 1}"


def ranks(count: int) -> tuple[str, ...]:
    return _RANKS[len(_RANKS) - count :]


def pot(put: Sequence[int], seat: int) -> str:
    shares = (f"{count} of {'yours' if player == seat else f'seat {player}'}" for player, count in enumerate(put))
    return f"pot {pluralize(sum(put), 'chip')}: {', '.join(shares)}"


_SIGNS: Final = {rank: rank[0].upper() for rank in ("jack", "queen", "king")}


def card_sign(rank: str) -> str:
    return _SIGNS.get(rank) or str(_RANKS.index(rank) + 2)


def bet_panels(put: Sequence[int], reader: Reader) -> list[Panel]:
    seats = [
        Panel(reader.name(seat), f"{pluralize(count, 'chip')} in the pot", seat=seat) for seat, count in enumerate(put)
    ]
    return [*seats, Panel("The pot", pluralize(sum(put), "chip"))]


def action_line(player: int, seat: int, verb: str, rest: str = "") -> Line:
    if player == seat:
        return player, f"You {verb}{rest}."
    return player, f"seat {player} {verb}{'es' if verb.endswith('s') else 's'}{rest}."


_GIN_RANKS: Final = "A23456789TJQK"
_GIN_SUITS: Final = "scdh"
_CARDS: Final = tuple(rank + suit for suit in _GIN_SUITS for rank in _GIN_RANKS)  # by number
_GIN_NAMES: Final = tuple(
    f"{rank} of {suit}" for suit in ("spades", "clubs", "diamonds", "hearts") for rank in ("ace", *_RANKS)
)  # spelled out
_GIN_FACES: Final = {
    name: Face(card[0].replace("T", "10"), name.rpartition(" ")[2])
    for name, card in zip(_GIN_NAMES, _CARDS, strict=True)
}
_GIN_KNOWN: Final = {
    "oklahoma",
    "knock_card",
    "gin_bonus",
    "undercut_bonus",
    "num_ranks",
    "num_suits",
    "hand_size",
}
_DRAWS: Final = ("draw upcard", "draw stock")
# Action ids; lower ids are cards, and those from the last on are melds.
_UPCARD, _STOCK, _PASS, _KNOCK, _MELDS = range(52, 57)
_UNDRAWN_CARDS: Final = 2  # cards of the stock that are never drawn
_MAX_UPCARDS: Final = 50


def gin_rummy(game: Engine) -> "GinRummy | None":
    """Return the game's words, or None for Oklahoma, an incomplete deck, or negative bonuses."""
    given = parameters(game)
    if given.keys() != _GIN_KNOWN or given["oklahoma"] or (given["num_ranks"], given["num_suits"]) != (13, 4):
        return None
    if min(given["gin_bonus"], given["undercut_bonus"]) < 0:
        return None
    return GinRummy(given["hand_size"], given["knock_card"], given["gin_bonus"], given["undercut_bonus"])


@dataclass(frozen=True)
class GinRummy:
    """Gin rummy: one hand with `size` cards per player."""

    size: int
    knock: int  # highest deadwood that allows a knock
    gin: int
    undercut: int

    title: ClassVar[str] = "gin rummy"
    unit: ClassVar[str] = "point"
    lead: ClassVar[str] = (
        "Gin rummy: draw and discard until your cards form sets and runs. The player with less left over after a knock "
        "wins the difference."
    )

    @property
    def rules(self) -> tuple[str, ...]:
        stock = len(_CARDS) - 2 * self.size - 1
        return (
            "Two players in seats 0 and 1 play one hand. A card is its rank and suit, such as Ts or 4h. The ranks from "
            f"the lowest are {' '.join(_GIN_RANKS)}; the suits are {' '.join(_GIN_SUITS)} (spades, clubs, diamonds, "
            f"hearts). Each player is dealt {self.size} cards, unseen by the other. The next card is turned up (the "
            f"upcard); the other {stock} are the face-down stock.",
            "A meld is three or four cards of one rank, or three to five cards of one suit in sequence. The ace is low "
            "only, and a card is in one meld at most. Cards in no meld are deadwood: A counts 1 point, T, J, Q and K "
            "10, other cards their number.",
            "Seat 0 may take the first upcard or pass, then seat 1 the same; if both pass, seat 0 draws from the "
            "stock. Then they take turns.",
            "On your turn you draw the upcard, or the top card of the stock, unseen by the other player. Then you "
            "discard a card, which becomes the new upcard, or knock. After a draw from the stock, the old upcard "
            "goes to the discard pile, out of play.",
            f"You may knock if your deadwood is at most {self.knock}, counted with the best melds among your "
            f"{self.size + 1} cards and without the highest other card.",
            f"The knocker discards a card to the discard pile, such that at most {self.knock} points can be left, then "
            "lays melds one at a time, and passes when at most that many are left in hand.",
            "Then the other player may lay off cards, one at a time, on the knocker's melds (the fourth card of a "
            "rank, or the next card at either end of a sequence, at most two at each end) and passes; then lays their "
            "own melds likewise and passes, which ends the hand. If the knocker has no deadwood (gin), nothing "
            "can be laid off. Cards not laid are deadwood, even if they could form a meld.",
            "The knocker's result is the other player's deadwood minus their own. Gin adds "
            f"{self.gin}. If the knocker's deadwood is higher, the knocker loses {self.undercut} more. The other "
            "player's result is the opposite.",
            f"When a discard leaves {_UNDRAWN_CARDS} cards in the stock, the other player may only pass, or knock by "
            "taking the upcard if that makes their deadwood low enough. After a pass both results are 0.",
            "Both results are also 0 if a player draws the upcard and at once discards it and the other player then "
            f"does the same, and if the upcard is drawn for the {_MAX_UPCARDS}th time, not counting the first one.",
        )

    @property
    def names(self) -> tuple[str, ...]:
        return _NAMES

    faces: ClassVar[Mapping[str, Face]] = _GIN_FACES

    def cards(self, state: EngineState, seat: int) -> list[str]:
        return _gin_card_names(sorted(cast(GinState, state).hands()[seat]))

    def panels(self, state: EngineState, reader: Reader) -> list[Panel]:
        state = cast(GinState, state)
        upcard, discarded = [card for card in [state.upcard()] if card is not None], state.discard_pile()
        seats = [Panel(reader.name(seat), pluralize(len(state.hands()[seat])), seat=seat) for seat in (0, 1)]
        melds = [
            Panel(f"Melds laid by {reader.name(seat)}", self._melds(state, seat))
            for seat in (0, 1)
            if state.layed_melds()[seat]
        ]
        return [
            *seats,
            Panel("Upcard", _format_cards(upcard), cards=_gin_card_names(upcard)),
            Panel("Stock", f"{pluralize(state.stock_size())}, face down"),
            Panel("Discard pile, the last one last", _format_cards(discarded), cards=_gin_card_names(discarded)),
            *melds,
        ]

    def describe_hand(self, state: EngineState, seat: int) -> str:
        state = cast(GinState, state)
        hand = sorted(state.hands()[seat])
        knocked, other = any(state.knocked()), 1 - seat
        points = sum(map(_points, hand)) if knocked else state.deadwood()[seat]
        upcard = "none" if state.upcard() is None else _upcard(state)
        parts = [
            f"{_format_cards(hand)} ({len(hand)} cards, deadwood {points})",
            f"upcard: {upcard}",
            f"stock: {state.stock_size()} cards",
            f"discard pile, the last one last: {_format_cards(state.discard_pile())}",
            f"known in the hand of seat {other}: {_format_cards(state.known_cards()[other])}",
        ]
        if knocked:
            who = "you" if state.knocked()[seat] else f"seat {other}"
            parts += [f"{who} knocked", f"melds that you have laid: {self._melds(state, seat)}"]
            parts += [
                f"melds of seat {other}: {self._melds(state, other)}",
                f"laid off: {_format_cards(state.layoffs())}",
            ]
        return "; ".join(parts)

    def history(self, state: EngineState, seat: int) -> list[Line]:
        entries = state.full_history()
        dealt = 2 * self.size + 1
        if len(entries) < dealt:
            return []
        replay = cast(GinState, state.get_game().new_initial_state())
        for entry in entries[:dealt]:
            replay.apply_action(entry.action)
        cards = _format_cards(sorted(replay.hands()[seat]))
        lines: list[Line] = [(None, f"The cards are dealt. Yours: {cards}. The upcard is {_upcard(replay)}.")]
        drawer = None
        for entry in entries[dealt:]:
            if entry.player < 0:
                assert drawer is not None
                what = _CARDS[entry.action] if drawer == seat else "a card"
                lines.append(action_line(drawer, seat, "draw", f" {what} from the stock"))
            elif entry.action == _STOCK:
                drawer = entry.player
            else:
                lines.append(action_line(entry.player, seat, *self._act(replay, entry.action)))
            replay.apply_action(entry.action)
        return lines

    def _act(self, state: GinState, action: int) -> tuple[str, str]:
        """Return the verb of the next action, and the rest of the sentence."""
        phase = state.current_phase().name
        if action == _UPCARD:
            return "draw", f" the upcard {_upcard(state)}"
        if action == _KNOCK:
            return "knock", f" with the upcard {_upcard(state)}" if phase == "WALL" else ""
        if action >= _MELDS:
            return "lay", f" the meld {self.names[action]}"
        if action == _PASS:
            return "pass", self._describe_pass(state, phase)
        return ("lay", f" off {_CARDS[action]}") if phase == "LAYOFF" else ("discard", f" {_CARDS[action]}")

    def _describe_pass(self, state: GinState, phase: str) -> str:
        if phase == "FIRST_UPCARD":
            return f" on the upcard {_upcard(state)}"
        if phase == "WALL":
            return ", and the hand is over"
        return ": no more melds" if phase == "KNOCK" or state.finished_layoffs() else ": no more cards to lay off"

    def _melds(self, state: GinState, seat: int) -> str:
        return ", ".join(self.names[_MELDS + meld] for meld in state.layed_melds()[seat]) or "none"


def _upcard(state: GinState) -> str:
    card = state.upcard()
    assert card is not None
    return _CARDS[card]


def _melds_by_number() -> Iterable[Sequence[int]]:
    """Yield all melds in the engine's order.

    For each rank, sets of three come first, ordered by the missing suit, then the set of four. Sequences follow, by
    length, suit and lowest rank.
    """
    for rank in range(13):
        four = range(rank, 52, 13)
        yield from reversed([*combinations(four, 3)])
        yield four
    for length in (3, 4, 5):
        for suit in range(4):
            for low in range(14 - length):
                yield range(13 * suit + low, 13 * suit + low + length)


def _points(card: int) -> int:
    return min(10, card % 13 + 1)


def _cards(numbers: Iterable[int]) -> list[str]:
    return [_CARDS[number] for number in numbers]


def _gin_card_names(numbers: Iterable[int]) -> list[str]:
    return [_GIN_NAMES[number] for number in numbers]


def _format_cards(numbers: Iterable[int]) -> str:
    return " ".join(_cards(numbers)) or "none"


_NAMES: Final = (*_CARDS, *_DRAWS, "pass", "knock", *("".join(_cards(meld)) for meld in _melds_by_number()))


_BET: Final = 1  # action id of a bet


def kuhn(game: Engine) -> "Kuhn | None":
    given = parameters(game)
    return Kuhn(given["players"]) if given.keys() == {"players"} else None


@dataclass(frozen=True)
class Kuhn:
    """Kuhn poker for `players` seats."""

    players: int

    title: ClassVar[str] = "Kuhn poker"
    unit: ClassVar[str] = "chip"
    lead: ClassVar[str] = (
        "Kuhn poker, the smallest poker game: one card each, one bet, and the highest card takes the pot."
    )
    names: ClassVar[tuple[str, ...]] = ("pass", "bet")

    @property
    def rules(self) -> tuple[str, ...]:
        cards = ranks(self.players + 1)
        return (
            f"{describe_seats(self.players)}. The deck has {len(cards)} cards, from the lowest to the highest: "
            f"{', '.join(cards)}. Each player puts 1 chip into the pot and is dealt one card, unseen by the others; "
            "the last card stays unseen.",
            "Seat 0 begins, and the players act in seat order. A bet puts 1 more chip into the pot, a pass nothing.",
            "Once a player has bet, each of the others acts once more, in seat order after that player: a bet then "
            "calls, with 1 more chip, and a pass folds. Nobody can raise. Then the game is over.",
            "If somebody has bet, the highest card among the players who bet or called wins the pot. If everybody has "
            "passed, the game is over and the highest card of all wins it. A player's result is the chips they take "
            "out of the pot minus the chips they put in.",
        )

    @property
    def faces(self) -> Mapping[str, Face]:
        return {rank: Face(card_sign(rank), "spades") for rank in ranks(self.players + 1)}

    def cards(self, state: EngineState, seat: int) -> list[str]:
        return [ranks(self.players + 1)[card] for card in state.history()[seat : seat + 1]]

    def panels(self, state: EngineState, reader: Reader) -> list[Panel]:
        return bet_panels(self._bets(state), reader)

    def describe_hand(self, state: EngineState, seat: int) -> str:
        done = state.history()
        return f"{self._card(done[seat]) if seat < len(done) else 'no card yet'}; {pot(self._bets(state), seat)}"

    def _bets(self, state: EngineState) -> list[int]:
        put = [1] * self.players
        for entry in state.full_history()[self.players :]:
            put[entry.player] += entry.action == _BET
        return put

    def history(self, state: EngineState, seat: int) -> list[Line]:
        entries = state.full_history()
        if len(entries) < self.players:
            return []
        lines: list[Line] = [(None, f"The cards are dealt. Yours: {self._card(entries[seat].action)}.")]
        has_bet = False
        for entry in entries[self.players :]:
            bets = entry.action == _BET
            so = f"{'call' if bets else 'fold'}{'' if entry.player == seat else 's'}"
            then = f" ({so})" if has_bet else ""
            lines.append(action_line(entry.player, seat, self.names[entry.action], then))
            has_bet = has_bet or bets
        return lines

    def _card(self, number: int) -> str:
        return f"the {ranks(self.players + 1)[number]}"


_LEDUC_KNOWN: Final = {"players", "action_mapping", "starting_player", "suit_isomorphism"}
_LEDUC_SUITS: Final = ("hearts", "spades")
_RAISES: Final = (2, 4)  # in chips, by round
_MAX_RAISES: Final = 2  # in a round
_POT_PATTERN = re.compile(r"\[Ante: ([\d ]+)\]")  # each seat's chips so far, in the engine's observation


def leduc(game: Engine) -> "Leduc | None":
    """Return the game's words, or None for mapped actions, isomorphic suits, or a first seat that does not exist."""
    given = parameters(game)
    if given.keys() != _LEDUC_KNOWN or given["action_mapping"] or given["suit_isomorphism"]:
        return None
    first, players = given["starting_player"], given["players"]
    return Leduc(players, first) if 0 <= first < players else None


@dataclass(frozen=True)
class Leduc:
    """Leduc poker for `players` seats, in which seat `first` acts first."""

    players: int
    first: int

    title: ClassVar[str] = "Leduc poker"
    unit: ClassVar[str] = "chip"
    lead: ClassVar[str] = (
        "Leduc poker: one card each, a round of bets, one card for all, and bets again. A pair with it wins, otherwise "
        "the highest card."
    )
    names: ClassVar[tuple[str, ...]] = ("fold", "call", "raise")

    @property
    def rules(self) -> tuple[str, ...]:
        order = ranks(self.players + 1)
        return (
            f"{describe_seats(self.players)}. The deck has {2 * len(order)} cards: {', '.join(order)}, from the "
            f"lowest to the highest, each once in {_LEDUC_SUITS[0]} and once in {_LEDUC_SUITS[1]}. Each player puts 1 "
            "chip into the pot and is dealt one card, unseen by the others.",
            "There are two rounds of betting; between them one more card is turned up, the community card. In each "
            f"round seat {self.first} begins, or the next seat that has not folded, and the players act in seat order.",
            "A call matches the most chips that any player has put in, which may cost nothing. A raise does the same "
            f"and adds {_RAISES[0]} chips in the first round, {_RAISES[1]} in the second; a round has at most "
            f"{_MAX_RAISES} raises by all players together. A fold leaves the game, and is allowed only if a call "
            "would cost chips.",
            "A round is over when all players who have not folded have called, or have called the last raise. When "
            "only one player has not folded, the game is over and that player takes the pot.",
            "After the second round the cards are compared: a card of the community card's rank is a pair, which beats "
            "everything else; without a pair the highest rank wins. Suits do not count. Two players with the same rank "
            "share the pot. A player's result is the chips they take out of the pot minus the chips they put in.",
        )

    @property
    def faces(self) -> Mapping[str, Face]:
        return {
            f"{rank} of {suit}": Face(card_sign(rank), suit)
            for rank in ranks(self.players + 1)
            for suit in _LEDUC_SUITS
        }

    def cards(self, state: EngineState, seat: int) -> list[str]:
        return self._dealt_cards(state)[: self.players][seat : seat + 1]

    def panels(self, state: EngineState, reader: Reader) -> list[Panel]:
        shown = self._dealt_cards(state)[self.players :]
        return [
            *bet_panels(_chips_in_pot(state), reader),
            Panel("Community card", " ".join(shown) or "none yet", cards=shown),
        ]

    def _dealt_cards(self, state: EngineState) -> list[str]:
        names = [*self.faces]
        return [names[entry.action] for entry in state.full_history() if entry.player < 0]

    def describe_hand(self, state: EngineState, seat: int) -> str:
        dealt = [entry.action for entry in state.full_history() if entry.player < 0]
        own = self._card(dealt[seat]) if seat < len(dealt) else "no card yet"
        shown = self._card(dealt[self.players]) if len(dealt) > self.players else "none yet"
        return f"{own}; community card: {shown}; {pot(_chips_in_pot(state), seat)}"

    def history(self, state: EngineState, seat: int) -> list[Line]:
        entries = state.full_history()
        if len(entries) < self.players:
            return []
        replay = state.get_game().new_initial_state()
        for entry in entries[: self.players]:
            replay.apply_action(entry.action)
        lines: list[Line] = [(None, f"The cards are dealt. Yours: {self._card(entries[seat].action)}.")]
        for entry in entries[self.players :]:
            before = _chips_in_pot(replay)
            replay.apply_action(entry.action)
            if entry.player < 0:
                lines.append((None, f"The community card is {self._card(entry.action)}."))
            else:
                put = _chips_in_pot(replay)[entry.player] - before[entry.player]
                name, chips = self.names[entry.action], pluralize(put, "chip") if put else "nothing"
                lines.append(action_line(entry.player, seat, name, "" if name == "fold" else f", putting in {chips}"))
        return lines

    def _card(self, number: int) -> str:
        return f"the {ranks(self.players + 1)[number // 2]} of {_LEDUC_SUITS[number % 2]}"


def _chips_in_pot(state: EngineState) -> list[int]:
    match = _POT_PATTERN.search(state.observation_string(0))
    assert match is not None
    return [int(count) for count in match[1].split()]


_DICE_KNOWN: Final = {"players", "numdice", "dice_sides", "bidding_rule"}
_NUMBERS: Final = (
    *("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
)
_MAX_NAMES: Final = 250  # providers limit the options of a choice
_LIAR: Final = "liar"


def liars_dice(game: Engine) -> "LiarsDice | None":
    """Return the game's words, or None if there are more than two players or too many bids to name."""
    given = parameters(game)
    if given.keys() != _DICE_KNOWN or given["players"] != 2:
        return None
    dice, sides = given["numdice"], given["dice_sides"]
    if not 1 <= 2 * dice <= len(_NUMBERS) or 2 * dice * sides >= _MAX_NAMES:
        return None
    return LiarsDice(dice, sides, given["bidding_rule"] == "reset-face")


@dataclass(frozen=True)
class LiarsDice:
    """Liar's dice with `dice` dice per player, each with `sides` sides."""

    dice: int
    sides: int
    number_first: bool  # whether bids are ordered by the number of dice, then by face

    title: ClassVar[str] = "liar's dice"
    unit: ClassVar[str] = ""
    lead: ClassVar[str] = (
        "Liar's dice: both players roll in secret and bid, ever higher, how many of all dice show a face. When one "
        "calls the other a liar, the dice decide."
    )

    @property
    def rules(self) -> tuple[str, ...]:
        if self.number_first:
            higher = "more dice of any face, or the same number of dice of a higher face"
        else:
            higher = "any number of dice of a higher face, or more dice of the same face"
        each = "one die" if self.dice == 1 else f"{_NUMBERS[self.dice - 1]} dice"
        return (
            f"Two players sit in seats 0 and 1. Each rolls {each} with the faces 1 to {self.sides}, unseen by the "
            "other. Seat 0 begins, and they take turns.",
            "On your turn you make a bid, or call the other player's last bid a lie. A bid claims that at least this "
            f"many of both players' {_NUMBERS[2 * self.dice - 1]} dice show a face, for example {_bid(1, 1)} or "
            f"{_bid(2, self.sides)}. Every {self.sides} is wild: it counts as any face that is bid.",
            f"Each bid must be higher than the one before it: {higher}. A bid is for at most "
            f"{_NUMBERS[2 * self.dice - 1]} dice. The game begins with a bid, not with a call. After the highest of "
            f"all bids, {_bid(2 * self.dice, self.sides)}, the other player must call.",
            f"A call ({_LIAR}) ends the game, and all dice are shown. If at least as many dice as were bid show the "
            "face or are wild, the bidder wins, otherwise the caller. The winner's result is 1, the loser's -1.",
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Return names by action id: the bids in ascending order, then the call."""
        most = 2 * self.dice
        if self.number_first:
            bids = [_bid(number, face) for number in range(1, most + 1) for face in range(1, self.sides + 1)]
        else:
            bids = [_bid(number, face) for face in range(1, self.sides + 1) for number in range(1, most + 1)]
        return (*bids, _LIAR)

    @property
    def faces(self) -> Mapping[str, Face]:
        return {
            str(face): Face("" if face <= 6 else str(face), f"die-{face}" if face <= 6 else "die")
            for face in range(1, self.sides + 1)
        }

    def cards(self, state: EngineState, seat: int) -> list[str]:
        return [*map(str, self._dice(state, seat))]

    def panels(self, state: EngineState, reader: Reader) -> list[Panel]:
        seats = [
            Panel(reader.name(seat), f"{self.dice} {'die' if self.dice == 1 else 'dice'}", seat=seat) for seat in (0, 1)
        ]
        bids = [entry for entry in state.full_history()[2 * self.dice :] if self.names[entry.action] != _LIAR]
        last = f"{self.names[bids[-1].action]}, by {reader.name(bids[-1].player)}" if bids else "none yet"
        return [*seats, Panel("The last bid", last)]

    def describe_hand(self, state: EngineState, seat: int) -> str:
        bids = [entry for entry in state.full_history() if entry.player >= 0]
        bids = [entry for entry in bids if self.names[entry.action] != _LIAR]
        dice = self._dice(state, seat)
        shown = " ".join(map(str, dice)) or "no dice yet"
        if not bids:
            return f"{shown}; no bid yet"
        who = "you" if bids[-1].player == seat else f"seat {bids[-1].player}"
        return f"{shown}; last bid: {self.names[bids[-1].action]}, by {who}"

    def history(self, state: EngineState, seat: int) -> list[Line]:
        dice = self._dice(state, seat)
        if not dice:
            return []
        lines: list[Line] = [(None, f"The dice are rolled. Yours: {' '.join(map(str, dice))}.")]
        for entry in state.full_history()[2 * self.dice :]:
            name = self.names[entry.action]
            verb, rest = ("call", ": liar") if name == _LIAR else ("bid", f" {name}")
            lines.append(action_line(entry.player, seat, verb, rest))
        return lines

    def _dice(self, state: EngineState, seat: int) -> list[int]:
        rolled = [entry.action + 1 for entry in state.full_history() if entry.player < 0]
        return sorted(rolled[seat * self.dice : (seat + 1) * self.dice]) if len(rolled) == 2 * self.dice else []


def _bid(number: int, face: int) -> str:
    return f"{_NUMBERS[number - 1]} {face}{'s' * (number > 1)}"


_WORDS: Final[Mapping[str, Callable[[Engine], "OwnWords | None"]]] = {
    "gin_rummy": gin_rummy,
    "kuhn_poker": kuhn,
    "leduc_poker": leduc,
    "liars_dice": liars_dice,
}


class OwnWords(Protocol):
    """One game with its parameters, in words."""

    @property
    def title(self) -> str:
        """The game's name within a sentence."""

    @property
    def unit(self) -> str:
        """The singular unit of a result, such as chip. Empty if only winning counts."""

    @property
    def lead(self) -> str:
        """A sentence that introduces the game to newcomers."""

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules in force, each as a paragraph."""

    @property
    def names(self) -> tuple[str, ...]:
        """Unique names by action id."""

    @property
    def faces(self) -> Mapping[str, Face]:
        """How pages draw the cards or dice, by name."""

    def cards(self, state: EngineState, seat: int) -> list[str]:
        """Return the names of the cards or dice that the seat holds."""

    def panels(self, state: EngineState, reader: Reader) -> list[Panel]:
        """Return the public panels: one for each seat, then the board's."""

    def describe_hand(self, state: EngineState, seat: int) -> str:
        """Describe what the seat holds and what is public, as one line without a full stop."""

    def history(self, state: EngineState, seat: int) -> list[Line]:
        """Return what the seat has seen, in order: the acting seat (None for chance) and a sentence."""


def find_words(game: Engine) -> OwnWords | None:
    make = _WORDS.get(game.get_type().short_name)
    return make(game) if make else None

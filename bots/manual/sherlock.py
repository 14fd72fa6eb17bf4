"""Sherlock, a bot to fear; docs/bots.md has its figures, and what each of its ideas is worth."""

from collections import Counter
from collections.abc import Callable, Sequence
from math import comb

from dubito import game_data as of
from dubito.player import PlayerAI

AGAIN, TEMPER = 0.15, 0.6  # who plays again on a board has few true cards left; nobody is quite of one kind
WAIT, POWER, EDGE = 0.8, 2.0, 2.0  # the race: for each seat that moves before, by cards to lose, and for playing better
MILD, STEEP = (0, 0.05, 0.30, 0.65), (0, 0.3, 0.6, 0.9)  # suspicion of a play by its size
Kind = tuple[tuple[float, float], float, Callable[[int, bool, bool, float, int], float]]
# How often it bluffs when it opens, and with the number in hand; how often it lays fewer cards than it could; how
# likely it doubts k cards of whoever is known to bluff in this share, with the number or not, alone on a board of b.
KINDS: tuple[Kind, ...] = (
    ((0.50, 0.50), 1.0, lambda k, has, alone, share, b: 0.33 if has else 0.5),  # tosses coins
    ((0.02, 0.02), 0.1, lambda k, has, alone, share, b: not has),  # honest; doubts rather than lie
    ((0.02, 0.02), 0.1, lambda k, has, alone, share, b: 0),  # honest where it can be, believes all
    ((0.98, 0.98), 0.1, lambda k, has, alone, share, b: 0),  # always bluffs, believes all
    ((0.50, 0.98), 0.1, lambda k, has, alone, share, b: 1),  # doubts all
    ((0.50, 0.50), 0.1, lambda k, has, alone, share, b: alone or k == 3),  # doubts openings and three cards
    ((0.02, 0.02), 0.1, lambda k, has, alone, share, b: STEEP[k] if has else 1),  # honest, wary of size
    ((0.67, 0.67), 0.1, lambda k, has, alone, share, b: 0 if alone else STEEP[k]),  # bold, wary of size
    ((0.10, 0.50), 0.1, lambda k, has, alone, share, b: 0 if has else 1 - min(1, b * b / 40)),  # fears large boards
    ((0.50, 0.50), 0.1, lambda k, has, alone, share, b: share),  # goes by the other's record
    ((0.02, 0.50), 0.1, lambda k, has, alone, share, b: share + MILD[k] / (1 + alone) > 0.7 + 0.3 * has),  # weighs all
)


class Sherlock(PlayerAI):
    """Remembers all that was seen, learns how each opponent plays, and plays for the best expected share."""

    origin, usual = "Dubito", False

    def __init__(self, id: int) -> None:
        super().__init__(id)
        self.n: dict[int, int] = {}  # cards held, by seat still in the game
        self.known: dict[int, Counter[int]] = {}  # cards that others surely hold, since they picked them up
        self.kinds: dict[int, list[float]] = {}  # how likely a seat is of each kind
        self.record: dict[int, list[int]] = {}  # of a seat's doubted plays: honest ones, bluffs
        self.plays: list[tuple[int, int, int, Sequence[float]]] = []  # of the round: seat, cards, most, `_holding`
        self.held, self.put, self.gone = Counter[int](), Counter[int](), Counter[int]()  # own, own on board, in sets

    def observe(self, event: of.Event) -> None:
        before, self.held = self.held, self.cards.count_all()
        match event:
            case of.GameStartEvent(seats, counts):
                self.n = dict(zip(seats, counts, strict=True))
                self.known, self.record = {seat: Counter() for seat in seats}, {seat: [0, 0] for seat in seats}
                self.kinds = {seat: [1 / len(KINDS)] * len(KINDS) for seat in seats}
            case of.CardsPlayedEvent(seat, number, k):
                has = self._answers(seat, number, doubts=False)
                if seat in [play[0] for play in self.plays]:
                    has = [1 - AGAIN * (1 - has[0]), *[AGAIN * chance for chance in has[1:]]]
                self.plays.append((seat, k, min(3, self.n[seat]), has))
                self.n[seat] -= k
                self.put += before - self.held if seat == self.id else Counter()
            case of.DoubtResolvedEvent():
                self._answers(event.doubter_id, event.declared_number, doubts=True)
                self._turn_over(event)
            case of.DiscardEvent(seat, number):
                self.n[seat], self.gone[number], self.known[seat][number] = self.n[seat] - 4, 4, 0
            case of.PlayerWonEvent(seat):
                del self.n[seat]

    def _answers(self, seat: int, number: int, doubts: bool) -> Sequence[float]:
        """Learn from a doubt, or from none, and return what the seat held of the number."""
        has, (last, k) = self._holding(seat, number), self.plays[-1][:2] if self.plays else (None, 0)
        if last in self.n and last is not None:
            self._learn(seat, [rate if doubts else 1 - rate for rate in self._doubts(has, k, last, 0)])
        return has

    def _turn_over(self, event: of.DoubtResolvedEvent) -> None:
        """The whole board is seen: each claim of the round was honest or not, and the loser holds these cards."""
        shown = [*event.board_cards[: sum(play[1] for play in self.plays[:-1])], *event.latest_cards]
        for place, (seat, k, most, has) in enumerate(self.plays):
            cards, shown = shown[:k], shown[k:]
            self.known[seat] -= Counter(cards)
            honest = all(card in (0, event.declared_number) for card in cards)
            self._learn(seat, [self._likely(kind, k, most, has, place == 0)[honest] for kind in KINDS])
        self.record[event.target_id][event.correct] += 1
        self.n[event.loser_id] += len(event.board_cards)
        self.known[event.loser_id].update(event.board_cards if event.loser_id != self.id else ())
        self.plays, self.put = [], Counter()

    def _learn(self, seat: int, chances: Sequence[float]) -> None:
        """Bayes' rule, tempered."""
        new = [old * (chance + 0.005) ** TEMPER + 1e-9 for old, chance in zip(self.kinds[seat], chances, strict=True)]
        self.kinds[seat] = [weight / sum(new) for weight in new]

    def _holding(self, seat: int, number: int) -> Sequence[float]:
        """The chances that a seat holds 0 to 4 of a number: what it surely holds, and a draw from what is not seen."""
        places = (self.held, self.put, *self.known.values())
        left = max(0, 4 - self.gone[number] - sum([cards[number] for cards in places]))
        hidden = max(0, self.n[seat] - self.known[seat].total())
        total = sum(self.n.values()) + sum([play[1] for play in self.plays])
        pool = max(total - sum([cards.total() for cards in places]), left + hidden)
        chances, sure, draws = [0.0] * 5, self.known[seat][number], comb(pool, hidden)
        for j in range(min(left, hidden) + 1):
            chances[min(4, sure + j)] += comb(left, j) * comb(pool - left, hidden - j) / draws
        return chances

    def _doubts(self, has: Sequence[float], k: int, by: int, more: int) -> list[float]:
        """How likely each kind doubts a play of k cards by that seat, on the board and so many cards more."""
        board, (honest, bluffs), no = sum([play[1] for play in self.plays]) + more, self.record[by], has[0]
        given = board == k, bluffs / (honest + bluffs) if honest + bluffs else 0.5, board
        return [0.03 + 0.94 * ((1 - no) * rate(k, True, *given) + no * rate(k, False, *given)) for *_, rate in KINDS]

    def _likely(self, kind: Kind, k: int, most: int, has: Sequence[float], opens: bool) -> tuple[float, float]:
        """How likely a kind plays k cards as a bluff (an opening: under one of 13 numbers), and as the truth."""
        bluffs, loose = kind[0][not opens], kind[1]
        truth = (1 - loose) * (has[k] if k < 3 else has[3] + has[4]) + loose / 2 * sum(has[k:])
        lies = bluffs / 13 if opens else has[0] + (1 - has[0]) * bluffs
        return lies * ((1 - loose) * (k == most) + loose / 3), (1 - bluffs) * truth

    def _bluffed(self) -> float:
        """The chance that the last play is a bluff, over the kinds that its player may be of."""
        seat, k, most, has = self.plays[-1]
        both = zip(*[self._likely(kind, k, most, has, len(self.plays) == 1) for kind in KINDS], strict=True)
        odds: list[float] = [sum([w * c for w, c in zip(self.kinds[seat], chances, strict=True)]) for chances in both]
        return odds[0] / sum(odds)

    def _race(self, first: int, mine: int, grown: int | None = None, by: int = 0) -> float:
        """My share of winning, that seat to move; the last three cards go at once where none may doubt them."""
        spare, order = 2 * (self.rules.win_rule == "immediate"), sorted(self.n, key=lambda seat: (seat < first, seat))
        hands = [mine if seat == self.id else self.n[seat] + by * (seat == grown) for seat in order]
        strengths: list[float] = [WAIT**wait * max(n - spare, 1) ** -POWER for wait, n in enumerate(hands)]
        own = strengths[order.index(self.id)]
        return EDGE * own / (sum(strengths) + (EDGE - 1) * own)

    def play(self, p: of.TurnData) -> of.TurnOutput:
        moves, board, after, n = [], p.board_cards, p.next.id, p.my_n_cards
        then, lost = min(self.n, key=lambda seat: (seat <= after, seat)), self._race(after, n + board)
        # Under `contested` a seat without cards wins unless it is caught; of three players, so ends the game.
        rest, safe = 1.0 if p.prev.n_cards else 0.5 * (p.n_players > 3), n * (self.rules.win_rule == "immediate")
        if p.can_doubt:
            bluffed, right = self._bluffed(), self._race(self.id, n, self.plays[-1][0], board)
            moves.append((bluffed * right + (1 - bluffed) * lost * rest, of.TurnOutput(True)))
        passed = [self._race(after, n - k) if k < n else 1.0 for k in range(4)]
        proved = [self._race(then, n - k, after, board + k) if k < n else 1.0 for k in range(4)]
        for number in [p.current_number] if board else [number for number in self.held if number] or [1]:
            has, true = self._holding(after, number), [number] * self.held[number] + [0] * self.held[0]
            false = sorted(self.cards, key=lambda card: (card in (0, number), self.held[card], card))
            for k, cards in [(k, cards[:k]) for k in (1, 2, 3) for cards in (true, false) if k <= len(cards)]:
                doubted = sum([w * r for w, r in zip(self.kinds[after], self._doubts(has, k, self.id, k), strict=True)])
                caught = proved[k] if k == safe or all(card in (0, number) for card in cards) else lost
                worth = (passed[k] + doubted * (caught - passed[k])) * rest
                moves.append((worth, of.TurnOutput(False, None if board else number, cards)))
        return max(moves, key=lambda move: move[0])[1]

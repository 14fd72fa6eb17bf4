"""Sherlock, the strongest hand-written bot. docs/bots.md has its results and the value of each idea."""

from collections import Counter
from collections.abc import Callable, Sequence
from math import comb

from dubito import game_data as of
from dubito.player import PlayerAI

AGAIN, TEMPER = 0.15, 0.6  # second plays in a round are often bluffs; players mix kinds
WAIT, POWER, EDGE = 0.8, 2.0, 2.0  # race: per seat that moves earlier, by hand size, own skill
MILD, STEEP = (0, 0.05, 0.30, 0.65), (0, 0.3, 0.6, 0.9)  # suspicion of a play by its size
Kind = tuple[tuple[float, float], float, Callable[[int, bool, bool, float, int], float]]
# Each kind of opponent: how often it bluffs when opening and with the number in hand; how often it plays fewer cards
# than it could; the probability that it doubts k cards of a player with this share of bluffs.
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
    """Remembers every card seen, learns how each opponent plays, and maximizes its expected result."""

    origin, usual = "Dubito", False

    def __init__(self, id: int) -> None:
        super().__init__(id)
        self.n: dict[int, int] = {}  # cards held, by seat still in the game
        self.known: dict[int, Counter[int]] = {}  # cards that others picked up and still hold
        self.kinds: dict[int, list[float]] = {}  # probability of each kind, by seat
        self.record: dict[int, list[int]] = {}  # honest and dishonest doubted plays, by seat
        self.plays: list[tuple[int, int, int, Sequence[float]]] = []  # this round: seat, cards, most, `_holding`
        self.held, self.put, self.gone = (
            Counter[int](),
            Counter[int](),
            Counter[int](),
        )  # in hand, on the board, in sets

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
        """Learn from a doubt, or from the lack of one, and return how many of the number the seat held."""
        has, (last, k) = self._holding(seat, number), self.plays[-1][:2] if self.plays else (None, 0)
        if last in self.n and last is not None:
            self._learn(seat, [rate if doubts else 1 - rate for rate in self._doubts(has, k, last, 0)])
        return has

    def _turn_over(self, event: of.DoubtResolvedEvent) -> None:
        """Learn from the board, which shows who bluffed in this round and what the loser now holds."""
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
        """Update the seat's kinds by a tempered Bayes rule."""
        new = [old * (chance + 0.005) ** TEMPER + 1e-9 for old, chance in zip(self.kinds[seat], chances, strict=True)]
        self.kinds[seat] = [weight / sum(new) for weight in new]

    def _holding(self, seat: int, number: int) -> Sequence[float]:
        """Return the probabilities that a seat holds 0 to 4 of a number: known cards plus a random draw."""
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
        """Return how likely each kind doubts a play of k cards by seat `by`, with `more` cards on the board."""
        board, (honest, bluffs), no = sum([play[1] for play in self.plays]) + more, self.record[by], has[0]
        given = board == k, bluffs / (honest + bluffs) if honest + bluffs else 0.5, board
        return [0.03 + 0.94 * ((1 - no) * rate(k, True, *given) + no * rate(k, False, *given)) for *_, rate in KINDS]

    def _likely(self, kind: Kind, k: int, most: int, has: Sequence[float], opens: bool) -> tuple[float, float]:
        """Return how likely a kind plays k cards as a bluff (openings: under any of 13 numbers) or honestly."""
        bluffs, loose = kind[0][not opens], kind[1]
        truth = (1 - loose) * (has[k] if k < 3 else has[3] + has[4]) + loose / 2 * sum(has[k:])
        lies = bluffs / 13 if opens else has[0] + (1 - has[0]) * bluffs
        return lies * ((1 - loose) * (k == most) + loose / 3), (1 - bluffs) * truth

    def _bluffed(self) -> float:
        """Return the probability that the last play is a bluff, averaged over its player's kinds."""
        seat, k, most, has = self.plays[-1]
        both = zip(*[self._likely(kind, k, most, has, len(self.plays) == 1) for kind in KINDS], strict=True)
        odds: list[float] = [sum([w * c for w, c in zip(self.kinds[seat], chances, strict=True)]) for chances in both]
        return odds[0] / sum(odds)

    def _race(self, first: int, mine: int, grown: int | None = None, by: int = 0) -> float:
        """Estimate the probability of winning if `first` moves next. Under `immediate`, three last cards win."""
        spare, order = 2 * (self.rules.win_rule == "immediate"), sorted(self.n, key=lambda seat: (seat < first, seat))
        hands = [mine if seat == self.id else self.n[seat] + by * (seat == grown) for seat in order]
        strengths: list[float] = [WAIT**wait * max(n - spare, 1) ** -POWER for wait, n in enumerate(hands)]
        own = strengths[order.index(self.id)]
        return EDGE * own / (sum(strengths) + (EDGE - 1) * own)

    def play(self, p: of.TurnData) -> of.TurnOutput:
        moves, board, after, n = [], p.board_cards, p.next.id, p.my_n_cards
        then, lost = min(self.n, key=lambda seat: (seat <= after, seat)), self._race(after, n + board)
        # Under `contested` a seat without cards wins unless it is caught, which ends a game of three.
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

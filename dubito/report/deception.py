"""How players lie and detect lies: figures, a paragraph, and a section for each player's page.

One rate is called higher than another only if their 95 % intervals do not overlap.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeVar

from dubito.errors import pluralize
from dubito.experiment.lies import STAKES, LieCounts, LieRate, TrackedPlay, TrackedResponse, name_band
from dubito.experiment.stored import Run
from dubito.game import FALLBACK_OUTCOME, STATED
from dubito.report.tables import (
    Block,
    Column,
    DrawnCards,
    Paragraph,
    ResultTable,
    Section,
    Tiles,
    cell_text,
    describe_rate,
)
from dubito.stats.players import Calibration, calibrations, cluster_sums, is_mistake
from dubito.stats.rates import Rate, clustered_rate

_MAX_SIZES: Final = 4  # sizes of plays in a player's bars
_MAX_MOMENTS: Final = 5  # maximum number of lies shown, and of mistakes
_MOMENTS_NOTE: Final = (
    "Covers only games with a page, ordered by the cards at stake. Successful: voluntary {lies} that an opponent "
    "could have "
    "called but did not. Mistakes: a false {call} of an honest play, or accepting a play that the player had rated as "
    "probably dishonest."
)


TrackedMove = TypeVar("TrackedMove", TrackedPlay, TrackedResponse)


@dataclass(frozen=True)
class Stories:
    """The lies told and detected by the players of a run.

    `turns` maps each game with a page to the turns of its seats' moves, and `plays` maps it to who played which cards
    at each turn.
    """

    source: Run
    lies: LieCounts
    turns: Mapping[int, Mapping[tuple[int, int], int]]
    plays: Mapping[int, Sequence[tuple[int, DrawnCards]]]

    @property
    def _words(self) -> tuple[str, str, str]:
        results = self.source.game.results
        return results.lie_words[0], results.habit(results.lies).name, results.lie_words[1]

    def tiles(self, names: Sequence[str]) -> list[Tiles]:
        """Return a card for each model among these players, with three figures, a description and two links."""
        lies, cards = self._words[1], []
        for name in (one for one in names if one in self.source.models):
            player = self.source.names.index(name)
            figures = [(f"Voluntary {lies}", self.lies.share(player, "chosen"))]
            if self.source.game.results.found_out:
                figures.append((f"{lies.capitalize()} that were caught", self.lies.share(player, "caught")))
            if self.source.game.has_lie_marks:
                figures.append((f"{lies.capitalize()} it catches", self.lies.share(player, "hits")))
            text = " ".join(self._describe_skill(player))
            path = f"bots/{player}.html"
            cards.append(Tiles(name, self.source.kinds[name], path, figures, text, self._two_moments(player)))
        return cards

    def _two_moments(self, player: int) -> list[tuple[str, str, str, DrawnCards]]:
        links = [self._link_moment(f"Boldest {self._words[0]}", one) for one in self.boldest_lies(player)[:1]]
        return links + [self._link_moment("Costliest mistake", one) for one in self.mistakes(player)[:1]]

    def style(self, player: int) -> list[Section]:
        """Return bars of when the player lies and what it calls, with its best and worst moment."""
        if not self.source.game.has_lie_marks:
            return []
        name, (_, lies, call) = self.source.names[player], self._words
        plays = [one for one in self.lies.tracked_plays if one.player == player]
        words = [one for one in self.lies.tracked_responses if one.player == player]
        figures = [
            (
                f"Voluntary {lies} with {pluralize(cards)}",
                self._voluntary_rate(one for one in plays if one.cards == cards),
            )
            for cards in sorted({one.cards for one in plays})[:_MAX_SIZES]
        ]
        for low, end in zip(STAKES, (*STAKES[1:], math.inf), strict=True):
            rate = self._voluntary_rate(one for one in plays if low <= one.pile < end)
            figures.append((f"Voluntary {lies}, {name_band(STAKES, low)} cards at stake", rate))
        for title, is_lie in ((f"{lies.capitalize()} that it {call}s", True), (f"Honest plays that it {call}s", False)):
            figures.append((title, self._rate((one.game, one.called) for one in words if one.is_lie is is_lie)))
        path = f"bots/{player}.html"
        return [Section("", [Tiles(name, self.source.kinds[name], path, figures, "", self._two_moments(player))])]

    def section(self, player: int, order: Sequence[int]) -> list[Section]:
        """Return the section for the player's page, or an empty list if the game does not mark lies.

        `order` lists all players, best first.
        """
        if not self.source.game.has_lie_marks:
            return []
        _, lies, call = self._words
        key, name = f"bot-{player}", self.source.names[player]
        blocks: list[Block] = [Paragraph(" ".join(self._describe(player)))]
        if links := self._moments_table(player, key):
            blocks.append(links)
        if name in self.source.models:
            blocks.append(self._opponents_table(player, order, key))
        return [Section(f"{lies.capitalize()} and {call}s", blocks)]

    def boldest_lies(self, player: int) -> list[TrackedPlay]:
        voluntary = (one for one in self.lies.tracked_plays if one.player == player and one.lie == "chosen")
        passed = [one for one in voluntary if one.called and not any(called for _, called in one.called)]
        return self._with_pages(passed)

    def mistakes(self, player: int) -> list[TrackedResponse]:
        words = [one for one in self.lies.tracked_responses if one.player == player]
        found = []
        for one in self._with_pages(words):
            outcome, stated = self._answer(one)
            if not outcome.startswith(FALLBACK_OUTCOME) and is_mistake(one.is_lie, one.called, stated):
                found.append(one)
        return found

    def _with_pages(self, moves: Iterable[TrackedMove]) -> list[TrackedMove]:
        return sorted((one for one in moves if one.game in self.turns), key=lambda one: (-one.pile, one.game, one.move))

    def _answer(self, one: TrackedResponse) -> tuple[str, float | None]:
        return self._answers.get((one.game, one.seat, one.move), ("", None))

    @cached_property
    def _answers(self) -> dict[tuple[int, int, int], tuple[str, float | None]]:
        """The outcome and stated probability of the first answer, by game, seat and move."""
        query = f"SELECT seat, turn, outcome, {STATED} FROM decisions WHERE game = ? ORDER BY decision DESC"  # noqa: S608
        return {
            (game, seat, turn): (outcome, stated)
            for game in self.turns
            for seat, turn, outcome, stated in self.source.db.read(query, (game,))
        }

    def _moment(self, one: TrackedPlay | TrackedResponse) -> tuple[str, str, str]:
        """Return a moment's address, what happened, and where."""
        turn = self.turns[one.game][one.seat, one.move]
        lie, _, call = self._words
        if isinstance(one, TrackedPlay):
            what = pluralize(one.cards)
        else:
            what = f"let a {lie} pass" if one.is_lie else f"false {call}"
        return f"games/{one.game}.html#turn-{turn}", what, f"game {one.game}, turn {turn}"

    def _link_moment(self, title: str, one: TrackedPlay | TrackedResponse) -> tuple[str, str, str, DrawnCards]:
        """Return a link that shows the cards of a play, or the cards that a response is about."""
        address, what, where = self._moment(one)
        turn, plays = self.turns[one.game][one.seat, one.move], self.plays[one.game]
        seat, cards = plays[turn - 1]
        if isinstance(one, TrackedResponse) and seat == one.seat:
            cards = plays[turn - 2][1]
        return title, address, f"{what}, {one.pile} at stake · {where}", cards

    def _rate(self, cases: Iterable[tuple[int, bool]]) -> Rate:
        """Return the share of true values, clustered by deal. `cases` contains a (game, value) pair per move."""
        seen, so = Counter[int](), Counter[int]()
        for game, is_so in cases:
            deal = self.source.planned.deal_of(game)
            seen[deal] += 1
            so[deal] += is_so
        sums = [sum(column) for column in zip(*(cluster_sums(m, so[deal]) for deal, m in seen.items()), strict=True)]
        return clustered_rate(*sums) if sums else Rate(None)

    def _describe(self, player: int) -> Iterator[str]:
        """Describe how the player plays, without differences that could be due to chance."""
        lies, names = self._words[1], self.source.names
        keys: tuple[LieRate, ...] = ("chosen", "forced", "caught", "hits", "alarms")
        shares = {key: self.lies.share(player, key) for key in keys}
        rates = {rate: describe_rate(share) for rate, share in shares.items()}
        if shares["chosen"].value is not None:
            others = [self.lies.share(other, "chosen") for other in range(len(names)) if other != player]
            compared = {
                _compare(shares["chosen"], other, "more", "less") for other in others if other.value is not None
            }
            is_extreme = len(compared) == 1 and "" not in compared
            than = f", {compared.pop()} than for any other player" if is_extreme else ""
            yield f"Voluntary {lies} make up {rates['chosen']} of its plays{than}; forced ones, {rates['forced']}."
            plays = [one for one in self.lies.tracked_plays if one.player == player]
            early, late = (self._voluntary_rate(one for one in plays if one.late is half) for half in (False, True))
            if when := _compare(early, late, "first", "second"):
                yield f"Voluntary {lies} are more frequent in the {when} half of a game."
        if shares["caught"].value is not None and self.source.game.results.found_out:
            yield f"Opponents catch {rates['caught']} of its {lies}."
        if shares["hits"].value is not None and shares["alarms"].value is not None:
            yield f"It catches {rates['hits']} of the {lies} it is asked about."
            yield f"It wrongly calls {rates['alarms']} of the honest plays it is asked about."
        yield from self._describe_skill(player)
        yield from (_describe_calibration(one) for one in self._calibrations if one.name == names[player])

    def _describe_skill(self, player: int) -> Iterator[str]:
        """Describe whether the player can tell lies from honest plays, if it was asked about both."""
        lies, hits, alarms = self._words[1], self.lies.share(player, "hits"), self.lies.share(player, "alarms")
        if hits.value is not None and alarms.value is not None:
            yield _compare(
                hits,
                alarms,
                f"It can tell {lies} from honest plays.",
                f"It calls honest plays more often than it calls {lies}.",
                f"There is no significant evidence that it can tell {lies} from honest plays.",
            )

    @cached_property
    def _calibrations(self) -> list[Calibration]:
        return [one for one in calibrations(self.source.tally, self.source.names) if one.statements]

    def _voluntary_rate(self, plays: Iterable[TrackedPlay]) -> Rate:
        return self._rate((one.game, one.lie == "chosen") for one in plays)

    def _opponents_table(self, player: int, order: Sequence[int], key: str) -> ResultTable:
        """Return a table of the opponents that the player deceives or is deceived by."""
        lies, call = self._words[1:]
        asked_moves = [
            (who, one.game, so)
            for one in self.lies.tracked_plays
            if one.player == player and one.lie
            for who, so in one.called
        ]
        words = [one for one in self.lies.tracked_responses if one.player == player]
        theirs = {other: [(game, so) for who, game, so in asked_moves if who == other] for other in order}
        met, honest = (
            {
                other: [(one.game, one.called) for one in words if one.of == other and one.is_lie is lie]
                for other in order
            }
            for lie in (True, False)
        )
        others = [other for other in order if theirs[other] or met[other] or honest[other]]
        columns = [
            Column("other", "against", "player", [self.source.names[other] for other in others]),
            Column("asked", f"asked about its {lies}", "count", [len(theirs[other]) for other in others]),
            Column("called", "called, %", "rate", [self._rate(theirs[other]) for other in others]),
            Column("met", f"{lies} it was asked about", "count", [len(met[other]) for other in others]),
            Column("hits", "called by it, %", "rate", [self._rate(met[other]) for other in others]),
            Column("honest", "honest plays", "count", [len(honest[other]) for other in others]),
            Column("alarms", f"false {call}s, %", "rate", [self._rate(honest[other]) for other in others]),
        ]
        return ResultTable(f"{key}-lies-against", f"Its {lies} and theirs, by opponent", columns)

    def _moments_table(self, player: int, key: str) -> ResultTable | None:
        """Return links to the player's best lies, its costliest caught lies and its worst mistakes."""
        lie, lies, call = self._words
        own_lies = (one for one in self.lies.tracked_plays if one.player == player and one.lie)
        caught = self._with_pages(one for one in own_lies if any(called for _, called in one.called))
        moments: dict[str, Sequence[TrackedPlay | TrackedResponse]] = {
            f"successful {lie}": self.boldest_lies(player),
            f"caught {lie}": caught,
            "mistake": self.mistakes(player),
        }
        found = [(which, one) for which, each in moments.items() for one in each[:_MAX_MOMENTS]]
        if not found:
            return None
        described = [self._moment(one) for _, one in found]
        links = [link for link, _, _ in described]
        stated = [None if isinstance(one, TrackedPlay) else self._answer(one)[1] for _, one in found]
        label, names = self.source.label, self.source.names
        opponents = [[who for who, _ in one.called] if isinstance(one, TrackedPlay) else [one.of] for _, one in found]
        columns = [
            Column("where", "where", "text", [where for _, _, where in described], links),
            Column("which", "kind of moment", "text", [which for which, _ in found]),
            Column("what", "what", "text", [what for _, what, _ in described]),
            Column("pile", "cards at stake", "count", [one.pile for _, one in found]),
            Column("whom", "against", "text", [", ".join(label(names[one]) for one in each) for each in opponents]),
            Column("stated", "stated probability", "decimal", stated),
        ]
        title = f"Its best {lies}, costliest caught {lies} and worst mistakes"
        notes = [_MOMENTS_NOTE.format(lies=lies, call=call)]
        return ResultTable(f"{key}-lies-moments", title, columns, notes)


def _compare(one: Rate, other: Rate, more: str, less: str, neither: str = "") -> str:
    if one.value is None or other.value is None:
        return neither
    return more if one.low > other.high else less if one.high < other.low else neither


def _describe_calibration(one: Calibration) -> str:
    """Describe whether the player's stated probabilities are better than always stating the base rate."""
    base = one.base_brier or 0.0
    better, worse = one.brier.high < base, one.brier.low > base
    than = "significantly better than" if better else "significantly worse than" if worse else "about as good as"
    score = cell_text(one.brier, "decimal")
    return f"Its stated probabilities (Brier score {score}) are {than} always stating the base rate ({base:.3f})."

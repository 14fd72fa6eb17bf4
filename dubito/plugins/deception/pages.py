"""The page of the deception sheet: pictures, and tables behind *More*."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from dubito.commands import build_command
from dubito.experiment.lies import LieCounts
from dubito.experiment.stored import Run
from dubito.plugins.deception.read import count_sheet, find_beliefs, sheet_of_counted
from dubito.plugins.deception.sheet import (
    BELIEF_BANDS,
    GAPS,
    MIN_CASES,
    PARTS,
    RATES,
    BeliefQuality,
    Part,
    PlayerSheet,
    Sheet,
    band_names,
)
from dubito.report.bots import calibration_blocks, rank_order
from dubito.report.run_tables import calibration_bins
from dubito.report.tables import (
    Block,
    Chart,
    Column,
    Page,
    Paragraph,
    ResultTable,
    Section,
    describe_rate,
    has_few_cases,
    points,
)
from dubito.stats.detection import Belief, curve_of
from dubito.stats.rates import Rate

PATH: Final = "deception.html"
_MAX_COSTLY: Final = 10  # decisions in the table of the costliest
_MAX_DRAWN: Final = 6  # maximum number of players in a picture
_CURVES: Final = (0, 1, 2, 3)  # values of d' with a curve
_LIES: Final = ("chosen", "forced", "willing", "uncalled", "believed")
_CALLS: Final = ("precision", "recall", "alarms")
_ABOUT: Final = "Who lies when, whose lies succeed, and who tells lies from honest plays"


class SheetPage:
    """The blocks of a run's deception sheet, with the players in the order of the ranking."""

    def __init__(self, run: Run, sheet: Sheet, in_report: bool = False) -> None:
        results = run.game.results
        self._run, self._games, self._in_report = run, sheet.games, in_report
        self._reference = sheet.reference
        chosen = run.contenders or run.models
        self.costliest = [one for one in sheet.costly if not chosen or one.player in chosen][:_MAX_COSTLY]
        self._players = [sheet.players[player] for player in rank_order(run)]
        self._words = {"lies": results.habit(results.lies).name, "calls": f"{results.lie_words[1]}s"}

    def page(self) -> Page:
        pictures = [*self._sentences(), *self._pictures()]
        tables = Section("More: all figures, by cards at stake, hand and part of the game", self._more(), folded=True)
        path = PATH if self._in_report else "index.html"
        return Page(path, "Deception sheet", [Section("", pictures), tables], about=_ABOUT)

    def tables(self) -> list[ResultTable]:
        """Return the figures over all moves."""
        return [self._lies_table(), self._calls_table(), *self._reference_tables(), *self._beliefs_tables()]

    def costliest_table(self, run: str) -> ResultTable:
        """Return the decisions that cost the most cards, each with the moment at which `dubito fork` plays on.

        `run` is the run as the user named it.
        """
        lie, call = self._run.game.results.lie_words
        found, kinds = self.costliest, (f"caught {lie}", f"false {call}")
        columns = [
            Column("moment", "moment", "text", [f"{run}:{one.game}:{one.turn}" for one in found]),
            Column("player", "player", "player", [one.player for one in found]),
            Column("decision", "decision", "text", [kinds[one.is_call] for one in found]),
            Column("cards", "cards at stake", "count", [one.cards for one in found]),
        ]
        return ResultTable("deception-costliest", "Costliest decisions (voluntary only), for `dubito fork`", columns)

    @property
    def _shown_players(self) -> list[PlayerSheet]:
        """The players in the pictures: contenders or models, if there are any."""
        chosen = self._run.contenders or self._run.models
        return [one for one in self._players if not chosen or one.name in chosen][:_MAX_DRAWN]

    def _sentences(self) -> Iterator[Paragraph]:
        lies = self._words["lies"]
        for one in self._shown_players:
            willing, recall, alarms = (one.whole.rate(key) for key in ("willing", "recall", "alarms"))
            if willing.value is None or recall.value is None or alarms.value is None:
                continue
            yield Paragraph(
                f"{one.name}: voluntary {lies} in {describe_rate(willing)} of the plays that could be honest. It "
                f"called {describe_rate(recall)} of the {lies} and {describe_rate(alarms)} of the honest plays it was "
                f"asked about{_describe_sensitivity(one.whole.detection.sensitivity)}."
            )

    def _pictures(self) -> Iterator[Block]:
        yield from self._stakes_chart()
        yield from self._signals_chart()
        stated = [one.calibration for one in self._shown_players if one.calibration and one.calibration.bins]
        for chart in calibration_blocks(stated, "deception-bins", self._run.label)[:1]:
            yield replace(chart, title=f"{stated[0].name}: {chart.title}") if len(stated) == 1 else chart
        yield from self._reference_chart()

    def _stakes_chart(self) -> Iterator[Chart]:
        """Yield a chart of voluntary lies by the cards at stake."""
        split = {one.name: dict(one.split("stake")) for one in self._shown_players}
        rates = {name: {band: part.rate("willing") for band, part in own.items()} for name, own in split.items()}
        title, bands = f"Voluntary {self._words['lies']} by {PARTS['stake']}", band_names("stake")
        yield from self._bands_chart(title, self._title("willing"), {band: f"{band} at stake" for band in bands}, rates)

    def _reference_chart(self) -> Iterator[Chart]:
        """Yield a chart of the plays that players called lies, by the reference's belief."""
        lies, calls = self._words.values()
        rates = {one.name: {band: one.gap.rate(band) for band in BELIEF_BANDS} for one in self._shown_players}
        title = f"{calls.capitalize()} by the probability of {lies} according to {self._reference}"
        bands = {band: f"{band} %" for band in BELIEF_BANDS}
        yield from self._bands_chart(title, f"{calls}, % of the plays it was asked about", bands, rates)

    def _bands_chart(
        self, title: str, axis: str, bands: Mapping[str, str], rates: Mapping[str, Mapping[str, Rate]]
    ) -> Iterator[Chart]:
        """Yield a chart of shares by bands, given with their titles. Shares of few cases are not drawn."""
        drawn = {
            name: {band: rate for band, rate in own.items() if rate.cases and not has_few_cases(rate)}
            for name, own in rates.items()
        }
        shown = [band for band in bands if any(band in own for own in drawn.values())]
        if shown:
            series = [points(self._run.label(name), [*map(own.get, shown)]) for name, own in drawn.items()]
            yield Chart("intervals", title, axis, [bands[band] for band in shown], series)

    def _signals_chart(self) -> Iterator[Chart]:
        """Yield a chart of hits by false alarms, with the curves on which d' is equal."""
        lies, calls = self._words.values()
        drawn = [one for one in self._shown_players if one.whole.detection.sensitivity.value is not None]
        if drawn:
            rates = [(one.whole.rate("alarms"), one.whole.rate("recall")) for one in drawn]
            places = [[round(100 * end, 9) for end in (alarms.value or 0.0, hits.value or 0.0, hits.low, hits.high)]
                      for alarms, hits in rates]  # fmt: skip
            series = [{"name": calls, "points": places}]
            title = f"{calls.capitalize()} against the truth. On a curve, d' is equal; 0 is chance."
            curves = [
                (f"d' {d}" if d else "chance", [(round(100 * x, 3), round(100 * y, 3)) for x, y in curve_of(d)])
                for d in _CURVES
            ]
            names = [self._run.label(one.name) for one in drawn]
            vertical = f"{lies} it called, %"
            yield Chart("scatter", title, f"false {calls}, %", names, series, vertical=vertical, curves=curves)

    def _more(self) -> list[Block]:
        games = f"Counted in all {self._games:,} games by replaying them; intervals are clustered by deal. Figures "
        games += f"of fewer than {MIN_CASES} cases are counts or left out. The guide deception.md defines them."
        return [Paragraph(games), *self.tables(), *(self._parts_table(kind) for kind in PARTS)]

    def _title(self, key: str) -> str:
        return RATES[key].title.format(**self._words)

    def _rates(self, keys: Iterable[str], parts: Sequence[Part]) -> list[Column]:
        return [Column(key, self._title(key), "rate", [part.rate(key) for part in parts]) for key in keys]

    def _players_column(self) -> Column:
        links = [f"bots/{self._run.names.index(one.name)}.html" for one in self._players if self._in_report]
        return Column("player", "player", "player", [one.name for one in self._players], links)

    def _lies_table(self) -> ResultTable:
        lies, parts = self._words["lies"], [one.whole for one in self._players]
        counts = [_count("plays", "plays", parts), _count("lies", lies, parts)]
        columns = [self._players_column(), *counts, *self._rates(_LIES, parts)]
        return ResultTable("deception-lies", f"Whose {lies} succeed", columns)

    def _calls_table(self) -> ResultTable:
        lies, parts = self._words["lies"], [one.whole for one in self._players]
        columns = [
            self._players_column(),
            _count("met", f"{lies} it was asked about", parts),
            _count("honest", "honest plays", parts),
            *self._rates(_CALLS, parts),
            *_detection_columns(parts),
        ]
        return ResultTable("deception-calls", f"Who tells {lies} from honest plays", columns)

    def _reference_tables(self) -> Iterator[ResultTable]:
        asked = [one for one in self._players if one.gap.count("reference_loss")]
        if asked:
            own = ["loss", "divergence"] if any(one.gap.count("loss") for one in asked) else []
            columns = [
                Column("player", "player", "player", [one.name for one in asked]),
                Column("answers", "answers", "count", [one.gap.count("reference_loss") for one in asked]),
                *self._gap_columns(["reference_loss", "against_reference", "reference_cards", *own], asked),
            ]
            yield ResultTable("deception-reference", f"Compared with {self._reference}", columns)

    def _gap_columns(self, keys: Iterable[str], players: Sequence[PlayerSheet]) -> list[Column]:
        words = {**self._words, "reference": self._reference}
        return [
            Column(
                key,
                GAPS[key].title.format(**words),
                "decimal" if GAPS[key].unit else "rate",
                [one.gap.rate(key) for one in players],
            )
            for key in keys
        ]

    def _beliefs_tables(self) -> Iterator[ResultTable]:
        if any(one.calibration for one in self._players):
            yield from self._stated_tables()
        if winning := [one for one in self._players if one.wins]:
            columns = [
                Column("player", "player", "player", [one.name for one in winning]),
                Column("statements", "stated", "count", [len(one.wins) for one in winning]),
                *_quality_columns([one.wins for one in winning]),
            ]
            yield ResultTable("deception-wins", "How well probabilities to win match the result", columns)

    def _stated_tables(self) -> Iterator[ResultTable]:
        stating = [(one, one.calibration) for one in self._players if one.calibration]
        columns = [
            Column("player", "player", "player", [one.name for one, _ in stating]),
            Column("statements", "stated", "count", [stated.statements for _, stated in stating]),
            Column("nulls", "null", "count", [stated.nulls for _, stated in stating]),
            Column("impossible", "impossible", "count", [stated.impossible for _, stated in stating]),
            *self._rates(["against"], [one.whole for one, _ in stating]),
            *self._gap_columns(["calls_against", "passes_against", "own_cards"], [one for one, _ in stating]),
            *_quality_columns([one.beliefs for one, _ in stating]),
        ]
        yield ResultTable("deception-beliefs", "How well stated probabilities match the truth", columns)
        if bins := calibration_bins([stated for _, stated in stating], "deception-bins"):
            yield bins

    def _parts_table(self, kind: str) -> ResultTable:
        rows = [(one, name, part) for one in self._players for name, part in one.split(kind)]
        parts, lies = [part for *_, part in rows], self._words["lies"]
        asked = [] if kind == "cards" else [
            _count("met", f"{lies} it was asked about", parts),
            *self._rates(_CALLS, parts),
            *_detection_columns(parts),
        ]  # fmt: skip
        columns = [
            Column("player", "player", "player", [one.name for one, *_ in rows]),
            Column("part", PARTS[kind], "text", [name for _, name, _ in rows]),
            _count("plays", "plays", parts),
            *self._rates(_LIES, parts),
            *asked,
        ]
        return ResultTable(f"deception-{kind}", f"By {PARTS[kind]}", columns)


def _count(key: str, title: str, parts: Sequence[Part]) -> Column:
    return Column(key, title, "count", [part.count(key) for part in parts])


def _quality_columns(beliefs: Sequence[Sequence[Belief]]) -> list[Column]:
    found = [*map(BeliefQuality, beliefs)]
    return [
        Column("auroc", "AUROC", "decimal", [one.area for one in found]),
        Column("brier", "Brier score", "decimal", [one.brier for one in found]),
        Column("base_brier", "Brier score of the base rate", "decimal", [one.base_brier for one in found]),
        Column("ece", "calibration error (ECE)", "decimal", [one.calibration_error for one in found]),
    ]


def _detection_columns(parts: Sequence[Part]) -> list[Column]:
    found = [part.detection for part in parts]
    return [
        Column("d_prime", "d'", "decimal", [one.sensitivity for one in found]),
        Column("criterion", "criterion", "decimal", [one.criterion for one in found]),
    ]


def _describe_sensitivity(rate: Rate) -> str:
    if rate.value is None:
        return ""
    means = "so it can tell them apart" if rate.low > 0 else "so nothing shows that it can tell them apart"
    means = "so it calls the wrong ones" if rate.high < 0 else means
    return f", {means} (d' {rate.value:.2f} [{rate.low:.2f}, {rate.high:.2f}])"


def page_of_report(run: Run, lies: LieCounts) -> Page:
    """Return the page in a run's report. Large runs of bots are not replayed for it."""
    if run.resolved.has_records:
        return SheetPage(run, count_sheet(run, find_beliefs(run)), in_report=True).page()
    if lies.games == run.game_count:
        return SheetPage(run, sheet_of_counted(run, lies), in_report=True).page()
    command = build_command("deception", run.folder, "--output", "sheet")
    text = f"This run has {run.game_count:,} games, which take a while to replay. To write its sheet: {command}"
    return Page(PATH, "Deception sheet", [Section("", [Paragraph(text)])], about=_ABOUT)

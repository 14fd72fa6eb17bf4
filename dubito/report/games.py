"""The games of a report: selection, pages and list."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dubito.errors import RunStopped, UsageError, one_line
from dubito.experiment.stored import Run
from dubito.game import FALLBACK_OUTCOME
from dubito.report.highlights import Highlights, opening
from dubito.report.introductions import ModelWords
from dubito.report.search import GameFields
from dubito.report.tables import (
    Column,
    DrawnCards,
    GamePage,
    Page,
    Paragraph,
    ResultTable,
    Section,
    kind_title,
)
from dubito.show.moment import play_on
from dubito.show.odds import odds_or_reason
from dubito.show.opponents import as_sentence
from dubito.show.run import CannotShowGame, ReplayedGames
from dubito.show.story import ModelDecisions, Texts, own_moves, page_title, played_cards, winners
from dubito.stats.tally import Outcome
from dubito.store.model_log import describe_answer

DEFAULT_GAMES: Final = 500  # default number of games shown
DEFAULT_REPLAYS: Final = 60  # the default without models, since each game must be replayed (about 400 per second)
SHOW_ALL_UP_TO: Final = 100  # up to this number, all games are shown
_LONGEST_GAMES: Final = 10  # number of the longest games shown, out of the first `_SEARCHED_GAMES`
_SEARCHED_GAMES: Final = 2_000
MAX_GAMES: Final = 10_000  # maximum number of games in a report


@dataclass(frozen=True, slots=True)
class GameChoice:
    """The games to show, with a sentence that explains the choice."""

    games: list[int]
    why: str
    # whether games can be left out of a report that gets too large, since the user did not choose them
    bounded: bool = False


def choose_games(source: Run, requested: str | None) -> GameChoice:
    """Select the games named by `--games` (`0,5,17` or `all`). Raises UsageError.

    By default, the first games and the longest ones are selected.
    """
    count = source.tally.games
    every = range(source.planned.first_game, source.planned.first_game + count)
    if requested == "all":
        if count > MAX_GAMES:
            raise UsageError(
                f"--games all: the run has {count:,} games, but a report can show at most {MAX_GAMES:,}",
                hint="select fewer games, such as --games 0,5,17",
            )
        return GameChoice([*every], f"All {count:,} games.")
    if requested is not None:
        parts = [part.strip() for part in requested.split(",")]
        if not all(part.isascii() and part.isdecimal() and len(part) < 16 for part in parts):
            raise UsageError(
                f"--games: '{one_line(requested, 60)}' is not valid", hint="write `all`, or numbers such as 0,5,17"
            )
        games = sorted(set(map(int, parts)))
        if missing := [game for game in games if game not in every]:
            raise UsageError(f"--games: {source.describe_missing_game(missing[-1], every)}")
        if len(games) > MAX_GAMES:
            raise UsageError(f"--games: {len(games):,} games are too many; a report can show at most {MAX_GAMES:,}")
        return GameChoice(games, f"{len(games):,} of {count:,} games, as selected with --games.")
    first = DEFAULT_GAMES if source.models else DEFAULT_REPLAYS
    if count <= max(first, SHOW_ALL_UP_TO):
        return GameChoice([*every], f"All {count:,} games.", bounded=True)
    among, others = min(count, _SEARCHED_GAMES), every[first:_SEARCHED_GAMES]
    rows = source.db.read("SELECT game, outcome FROM games WHERE game >= ? AND game < ?", (others.start, others.stop))
    by_length = sorted((-sum(source.outcome(row).game_counts), game) for game, row in rows)
    longest = sorted(game for _, game in by_length[:_LONGEST_GAMES])
    why = (
        f"{first + len(longest):,} of {count:,} games: the first {first:,}, and the {len(longest)} longest of the "
        f"others among the first {among:,}. To show other games: dubito report RUN --games 0,5,17"
    )
    return GameChoice([*every[:first], *longest], why, bounded=True)


# Total size of all game pages. This keeps a report with models below 30 MB.
_MAX_PAGES_BYTES: Final = 24_000_000

_COUNTS: Final = ("fallbacks", "caught")  # columns of runs with models that the list can be filtered by


@dataclass(frozen=True, slots=True)
class _Example:
    """A decision of a model player that its page shows. Lower ranks come first."""

    rank: int
    where: str
    decision: Mapping[str, Any]
    reply: str | None
    link: str


@dataclass
class ShownGames:
    """The games of a report: yields their pages one by one, then builds the list of games."""

    source: Run
    choice: GameChoice
    games: ReplayedGames
    asked: ModelDecisions
    examples: dict[str, list[_Example]] = field(default_factory=dict)
    words: ModelWords = field(default_factory=ModelWords)
    with_pages: list[int] = field(default_factory=list)  # games with a page
    why_not: dict[int, str] = field(default_factory=dict)  # reasons why the other games have no page
    written: int = 0  # characters of the pages so far
    turns: dict[int, dict[tuple[int, int], int]] = field(default_factory=dict)  # turns of the seats' moves, by game
    # who played which cards at each turn, by game
    plays: dict[int, list[tuple[int, DrawnCards]]] = field(default_factory=dict)
    odds: bool = False  # whether to show the winning chances after each turn
    given: str = ""  # the run as the user named it, for commands; empty to show none

    def __post_init__(self) -> None:
        results = self.source.game.results
        rows, first = self.source.rows, results.measures[0].key
        lies = results.habit(results.lies).name if results.lies else ""
        self.highlights = Highlights(lies, {self.source.label(row.name): row.rates[first].value or 0.0 for row in rows})

    def pages(self) -> Iterator[GamePage]:
        for game in self.choice.games:
            if self.choice.bounded and self.written > _MAX_PAGES_BYTES:
                self.why_not[game] = "the report would be too large; select games with --games"
                continue
            try:
                story = self.games.play(game)
            except CannotShowGame as error:
                self.why_not[game] = str(error)
                continue
            texts = Texts()
            try:
                decisions = self.asked.decisions(game, story, texts) if self.source.models else []
            except RunStopped as error:
                self.why_not[game] = self.source.strip_folder(str(error))
                continue
            del story["truths"]
            names = self._names(self.source.outcome_of(game))
            self.highlights.scan_game(game, story, [self.source.label(name) for name in names], decisions)
            for decision in decisions:
                self._example(game, names[decision["seat"]], decision, texts)
                self.words.add(names[decision["seat"]], game, decision, texts, self.asked.shared)
            self.with_pages.append(game)
            self.plays[game] = [(turn["seat"], played_cards(story, turn)) for turn in story["turns"]]
            self.turns[game] = {move: turn for move, (turn, _) in own_moves(story["turns"]).items()}
            about = f"Deal {self.source.planned.deal_of(game)}; seed: {self.source.seed_in_words}."
            model_data = {"decisions": decisions, "pieces": texts.pieces}
            data = story | model_data | {"game": game, "opens": opening(story)[0]}
            if self.given:
                data |= play_on(self.given, game, story["kinds"])
            if self.odds:
                data["odds"] = odds_or_reason(self.source, game)
            seated = zip(story["names"], map(self.source.label, names), names, strict=True)
            labels = [
                own + label.removeprefix(one_line(name)) for own, label, name in seated
            ]  # the seat comes before the kind
            title = page_title(f"Game {game}", labels, story["winners"])
            yield GamePage(f"games/{game}.html", title, about, data)

    def _names(self, outcome: Outcome) -> list[str]:
        return [self.source.names[player] for player in outcome.seats]

    def _example(self, game: int, name: str, decision: dict[str, Any], texts: Texts) -> None:
        """Collect a player's example decisions: failures first, then re-asks, then others."""
        outcome = decision["outcome"]
        rank = 0 if outcome.startswith(FALLBACK_OUTCOME) else 2 if outcome.partition(":")[0] == "model" else 1
        attempts = decision["attempts"]
        reply = texts.read(attempts[-1]["reply"]) if attempts and attempts[-1]["reply"] is not None else None
        reply = None if reply is None else one_line(reply, 300)
        where, link = f"game {game}, turn {decision['turn']}", f"games/{game}.html#{decision['link']}"
        examples = self.examples.setdefault(name, [])
        if sum(other.rank == rank for other in examples) < 5:
            examples.append(_Example(rank, where, decision, reply, link))

    def example_tables(self) -> dict[str, ResultTable]:
        title = "Sample decisions from the games shown here: failures first, then re-asks"
        tables = {}
        for name, examples in self.examples.items():
            shown = sorted(examples, key=lambda one: one.rank)
            decisions = [one.decision for one in shown]
            answers = [describe_answer(decision["answer"]) for decision in decisions]
            columns = [
                Column("where", "where", "text", [one.where for one in shown], [one.link for one in shown]),
                Column("question", "question", "text", [decision["question"] for decision in decisions]),
                Column("node", "node", "text", [decision["node"] for decision in decisions]),
                Column("outcome", "outcome", "text", [decision["outcome"] for decision in decisions]),
                Column("answer", "answer", "text", answers),
                Column("p_bluff", "stated probability", "decimal", [decision["p_bluff"] for decision in decisions]),
                Column("attempts", "attempts", "count", [len(decision["attempts"]) for decision in decisions]),
                Column("reply", "last reply", "text", [one.reply for one in shown]),
            ]
            tables[name] = ResultTable(f"bot-{self.source.names.index(name)}-examples", title, columns)
        return tables

    def list_page(self) -> Page:
        results = self.source.game.results
        fields, outcomes = GameFields(self.source), {game: self.source.outcome_of(game) for game in self.choice.games}
        columns = self._columns(outcomes)
        filtered = [column for column in columns if column.key in (*results.game_counts, *_COUNTS)]
        for place, (game, outcome) in enumerate(outcomes.items()):
            fields.add(game, outcome, {column.key: column.values[place] for column in filtered})
        notes = [self.choice.why]
        left_out: dict[str, list[int]] = {}
        for game, reason in self.why_not.items():
            left_out.setdefault(reason, []).append(game)
        for reason, games in left_out.items():
            count = "1 game is" if len(games) == 1 else f"{len(games):,} games are"
            some = ", ".join(map(str, games[:5])) + (", ..." if len(games) > 5 else "")
            notes.append(as_sentence(f"{count} not shown ({some}): {reason}"))
        words = Paragraph(f"Click a game's number to step through it. {fields.hint()}")
        table = ResultTable("games", "Games", columns, notes, max_rows=MAX_GAMES)
        more = {"filter": "games", "filters": fields.filters(), "fields": fields.data()}
        highlights = self.highlights.table()
        sections = [Section("Highlights", [highlights])] if highlights else []
        return Page("games.html", "Games", [*sections, Section("All games", [words, table])], more)

    def _columns(self, outcomes: Mapping[int, Outcome]) -> list[Column]:
        source, results = self.source, self.source.game.results
        kind, planned, shown = kind_title(source.kinds.values()), source.planned, set(self.with_pages)
        links = [f"games/{game}.html" if game in shown else None for game in outcomes]
        won, seats = [], []
        for outcome in outcomes.values():
            players = self._names(outcome)
            buckets = outcome.buckets(results)
            won.append([players[seat] for seat in winners(results, buckets, outcome.counts)])
            ended = [results.describe_ending(mark, outcome.capped) for mark in outcome.marks]
            with_results = zip(players, ended, strict=True)
            seats.append(", ".join(f"{source.label(name)} ({how})" for name, how in with_results))
        kinds = [" and ".join(dict.fromkeys(source.kinds[name] for name in names)) or None for names in won]
        columns = [
            Column("game", "game", "text", [f"{game}" for game in outcomes], links),
            Column("winner", "winner", "text", [" and ".join(names) or None for names in won]),
            Column("winner_kind", kind, "kind", kinds),
            Column("deal", "deal", "count", [planned.deal_of(game) for game in outcomes]),
            Column("size", "size", "count", [len(outcome.seats) for outcome in outcomes.values()]),
            Column("seats", "players by seat, with results", "text", seats),
            *(
                Column(count, count.replace("_", " "), "count", [one.game_counts[at] for one in outcomes.values()])
                for at, count in enumerate(results.game_counts)
            ),
        ]
        if source.contenders:
            places = [game % planned.games_per_deal // planned.contender_seats for game in outcomes]
            contenders = [source.contenders[place] for place in places]
            columns.append(Column("contender", "contender", "text", contenders))
            columns.append(Column("contender_kind", kind, "kind", [source.kinds[name] for name in contenders]))
        if source.models:
            rows = source.db.read(
                "SELECT game, count(*), sum(outcome LIKE ?) FROM decisions GROUP BY game", (f"{FALLBACK_OUTCOME}%",)
            )
            asked = {game: (decisions, fallbacks) for game, decisions, fallbacks in rows}
            columns.append(
                Column("decisions", "model decisions", "count", [asked.get(one, (0, 0))[0] for one in outcomes])
            )
            columns.append(Column("fallbacks", "fallbacks", "count", [asked.get(one, (0, 0))[1] for one in outcomes]))
            if caught := next((habit for habit in results.habits if habit.key == "caught"), None):
                title, at = f"caught {caught.of.replace('_', ' ')} by models", results.counts.index(caught.count)
                seated = [zip(self._names(one), one.counts, strict=True) for one in outcomes.values()]
                values = [sum(own[at] for name, own in each if name in source.models) for each in seated]
                columns.append(Column("caught", title, "count", values))
        return columns

"""Report on players' strategies for a small game: tables for the terminal and pages, and the pages."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from dubito.errors import pluralize
from dubito.experiment.experiment import describe_fake_models, player_labels
from dubito.game import PlayerKind
from dubito.plugins.openspiel.policy.small import SmallGame
from dubito.plugins.openspiel.policy.solver import Solution
from dubito.plugins.openspiel.policy.stated_policy import StatedPolicy
from dubito.plugins.openspiel.policy.tree import InfoState, PolicyTable, Row, Tree, uniform
from dubito.plugins.openspiel.policy.values import (
    Loss,
    expected_values,
    losses,
    nash_conv,
    nash_conv_bounds,
    value_bounds,
)
from dubito.report.render import Site
from dubito.report.tables import (
    Block,
    Column,
    NamedValues,
    Page,
    Paragraph,
    ResultTable,
    Section,
    Verbatim,
)

SOLVED, UNIFORM = "(solved)", "(uniform)"
_MAX_STATE_PAGES: Final = 300  # states per player with a separate page: those with the largest losses

Prompted = Callable[[StatedPolicy, InfoState], str | None]  # the prompt for a state; None if there was none


@dataclass(frozen=True)
class Findings:
    """Players' tables for a game, with a solved and a uniform table for comparison."""

    game: SmallGame
    tree: Tree
    statements: Sequence[StatedPolicy]
    solution: Solution
    kinds: Mapping[str, PlayerKind]  # by player
    _names: dict[str, Mapping[int, str]] = field(default_factory=dict)

    @cached_property
    def reference_tables(self) -> dict[str, PolicyTable]:
        return {SOLVED: self.solution.table, UNIFORM: uniform(self.tree)}

    @property
    def tables(self) -> dict[str, PolicyTable]:
        return {one.name: one.rows for one in self.statements} | self.reference_tables

    def label(self, name: str) -> str:
        return player_labels(self.kinds)(name)

    def names(self, state: InfoState) -> Mapping[int, str]:
        if state.string not in self._names:
            self._names[state.string] = self.game.names(state)
        return self._names[state.string]

    def row(self, state: InfoState, row: Row) -> str:
        return ", ".join(f"{name} {row[action]:.2f}" for action, name in self.names(state).items())

    def losses(self, statement: StatedPolicy) -> list[Loss]:
        return losses(self.tree, statement.rows)


def value_table(findings: Findings) -> ResultTable:
    """Tabulate how exploitable each strategy is, and its value against the solved and the uniform strategy."""
    by_name, tree, tables = {one.name: one for one in findings.statements}, findings.tree, findings.tables
    shares = [len(by_name[name].failures) / len(tree.states) if name in by_name else None for name in tables]
    columns = [
        Column("player", "player", "player", [*tables]),
        Column("states", "states", "count", [len(tree.states) for _ in tables]),
        Column("asked", "asked", "text", [_describe_method(by_name.get(name)) for name in tables]),
        Column("fallback", "fallback %", "rate", shares),
        Column("nash_conv", "nash_conv", "decimal", [nash_conv(tree, table) for table in tables.values()]),
    ]
    for name, other in findings.reference_tables.items():
        for seat in range(tree.players):
            values = [_value_in_seat(tree, table, other, seat) for table in tables.values()]
            columns.append(Column(f"{name.strip('()')}_{seat}", f"against {name}, seat {seat}", "decimal", values))
    notes = [
        "nash_conv is how much more best responses win than this strategy, summed over all seats; 0 means unbeatable. "
        "With two seats, half of it is the exploitability. All values are exact, in units of the game's return. With "
        "--draws, a player's strategy is the observed frequency of its actions.",
        f"{SOLVED}: {findings.solution.algorithm}, {findings.solution.iterations:,} iterations.",
    ]
    return ResultTable("worth", f"Ways to play {findings.game.name}", columns, notes)


def _value_in_seat(tree: Tree, table: PolicyTable, other: PolicyTable, seat: int) -> float:
    return expected_values(tree, [table if player == seat else other for player in range(tree.players)])[seat]


def _describe_method(statement: StatedPolicy | None) -> str:
    if statement is None:
        return "-"
    return "for its probabilities" if statement.draws is None else pluralize(statement.draws, "time") + " to act"


def fallbacks(findings: Findings) -> list[ResultTable | Paragraph]:
    """Tabulate what rows filled by the fallback could have changed. Empty if there are none."""
    tree, failing = findings.tree, [one for one in findings.statements if one.failures]
    if not failing:
        return []
    convs = [nash_conv_bounds(tree, one.rows, [*one.failures]) for one in failing]
    columns = [
        Column("player", "player", "player", [one.name for one in failing]),
        Column("states", "states by the fallback", "count", [len(one.failures) for one in failing]),
    ]
    for cause in sorted({cause for one in failing for cause in one.failures.values()}):
        failed = [sum(cause == other for other in one.failures.values()) for one in failing]
        columns.append(Column(cause, cause, "count", failed))
    columns.append(Column("nash_conv_least", "nash_conv, least", "decimal", [conv.low for conv in convs]))
    columns.append(Column("nash_conv_most", "nash_conv, most", "decimal", [conv.high for conv in convs]))
    for seat in range(tree.players):
        key, title = f"seat_{seat}", f"against {SOLVED}, seat {seat}"
        bounds = [value_bounds(tree, seat, one.rows, findings.solution.table, [*one.failures]) for one in failing]
        columns.append(Column(f"{key}_worst", f"{title}, worst", "decimal", [one.low for one in bounds]))
        columns.append(Column(f"{key}_best", f"{title}, best", "decimal", [one.high for one in bounds]))
    title = "Missing answers count as all legal actions being equally likely; other answers could have"
    exact = all(conv.exact for conv in convs)
    notes = [] if exact else ["The maximum is an upper bound on nash_conv that may not be reachable."]
    return [ResultTable("fallbacks", title, columns, notes)]


def head_to_head_table(findings: Findings) -> ResultTable | None:
    """Tabulate two players against each other in both seats. Return None for other numbers of players."""
    if len(findings.statements) < 2 or findings.tree.players != 2:
        return None
    players = findings.statements
    columns = [Column("first", "first ↓ second →", "player", [one.name for one in players])]
    for other in players:
        values = [expected_values(findings.tree, [one.rows, other.rows])[0] for one in players]
        columns.append(Column(f"against_{other.name}", findings.label(other.name), "decimal", values))
    return ResultTable("against", "The first player's exact mean return", columns)


def largest_losses(findings: Findings, statement: StatedPolicy, most: int | None = None) -> ResultTable:
    """Tabulate the states where a player loses most, with its actions and the solution's."""
    lost = findings.losses(statement)[:most]
    states = [one.state for one in lost]
    solved = [findings.row(state, findings.solution.table[state.string]) for state in states]
    seen = [findings.game.seat_view(state).hand or None for state in states]
    columns = [
        Column("state", "state", "text", [state.string for state in states]),
        Column("seen", "what the seat sees", "text", seen, detail=True),
        Column("seat", "seat", "count", [state.seat for state in states]),
        Column("loss", "loss a game", "decimal", [one.loss for one in lost]),
        Column("met", "met in % of games", "rate", [one.reach for one in lost]),
        Column("said", "its way", "text", [findings.row(state, statement.rows[state.string]) for state in states]),
        Column("solved", "solved", "text", solved),
        Column("best", "best against it", "text", [findings.names(one.state)[one.best] for one in lost]),
    ]
    if statement.failures:
        causes = [statement.failures.get(state.string, "") for state in states]
        columns.append(Column("fallback", "fallback", "text", causes))
    title = f"Where {findings.label(statement.name)} loses the most to best responses"
    notes = ["The losses of all states sum to the nash_conv."] if most is None else []
    return ResultTable(f"lost-{findings.statements.index(statement)}", title, columns, notes)


def build_policy_site(findings: Findings, name: str) -> Site:
    listed = [("index.html", "How good it is")]
    listed += [(f"player-{n}.html", findings.label(one.name)) for n, one in enumerate(findings.statements)]
    return Site(name, pages=listed)


def pages(findings: Findings, prompted: Prompted) -> Iterator[Page]:
    """Return the index page, a page per player with all states, and pages for the important states."""
    fake_models = describe_fake_models(findings.kinds)
    blocks: list[Block] = [Paragraph(fake_models, warning=True)] if fake_models else []
    blocks += [value_table(findings), *fallbacks(findings)]
    between = head_to_head_table(findings)
    sections = [Section("How good it is", blocks), *([Section("Against each other", [between])] if between else [])]
    yield Page("index.html", f"Ways to play {findings.game.name}", sections).with_kinds(findings.kinds)
    for number, one in enumerate(findings.statements):
        places = findings.losses(one)[:_MAX_STATE_PAGES]
        table = largest_losses(findings, one)
        links = [
            f"states/{number}-{place}.html" if place < _MAX_STATE_PAGES else None for place in range(len(table.rows))
        ]
        yield Page(
            f"player-{number}.html", findings.label(one.name), [Section("Every state", [table.with_links(links)])]
        )
        for place, loss in enumerate(places):
            yield _page_of_state(findings, one, loss.state, f"states/{number}-{place}.html", prompted(one, loss.state))


def _page_of_state(findings: Findings, one: StatedPolicy, state: InfoState, path: str, prompt: str | None) -> Page:
    view = findings.game.seat_view(state)
    facts = [
        ("player", f"{one.name} ({findings.kinds[one.name]})"),
        ("seat", f"{state.seat}"),
        ("state in OpenSpiel", state.string),
    ]
    facts += [("what the seat sees", view.hand)] if view.hand else []
    facts += [("its way", findings.row(state, one.rows[state.string]))]
    facts += [("solved", findings.row(state, findings.solution.table[state.string]))]
    if cause := one.failures.get(state.string):
        facts.append(("no answer came", cause))
    history = "\n".join(view.history) or "Nothing yet."
    blocks: list[Block] = [NamedValues(facts), Verbatim("What the seat saw", history)]
    if prompt is not None:
        blocks.append(Verbatim("What it was asked", prompt))
    return Page(path, f"{findings.label(one.name)} at {state.string}", [Section("One state", blocks)])

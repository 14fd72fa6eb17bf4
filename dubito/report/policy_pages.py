"""What is found of players' ways to play a small game, as pages."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from dubito.policy.tree import InfoState
from dubito.report.parts import Block, NamedValues, Page, Section, Verbatim
from dubito.report.policies import Findings, against, fallbacks, largest_losses, worth
from dubito.report.render import Site
from dubito.workshop.statements import StatedPolicy

_MOST: Final = 300  # states of a player that get a page of their own: those in which it loses the most

Prompted = Callable[[StatedPolicy, InfoState], str | None]  # what a player was asked in a state; None: nothing


def site_of(found: Findings, name: str) -> Site:
    """The pages' menu."""
    listed = [("index.html", "How good it is")]
    listed += [(f"player-{n}.html", one.name) for n, one in enumerate(found.statements)]
    return Site(name, pages=listed)


def pages(found: Findings, prompted: Prompted) -> Iterator[Page]:
    """The first page, one a player with all its states, and one for each of the states that matter."""
    blocks: list[Block] = [worth(found), *fallbacks(found)]
    between = against(found)
    sections = [Section("How good it is", blocks), *([Section("Against each other", [between])] if between else [])]
    yield Page("index.html", f"Ways to play {found.spec.name}", sections)
    for number, one in enumerate(found.statements):
        places = found.losses(one)[:_MOST]
        table = largest_losses(found, one)
        links = [f"states/{number}-{place}.html" if place < _MOST else None for place in range(len(table.rows))]
        yield Page(f"player-{number}.html", one.name, [Section("Every state", [replace(table, links=links)])])
        for place, loss in enumerate(places):
            yield _state(found, one, loss.state, f"states/{number}-{place}.html", prompted(one, loss.state))


def _state(found: Findings, one: StatedPolicy, state: InfoState, path: str, prompt: str | None) -> Page:
    position = found.spec.module("workshop").position_at(state.history, "act")
    facts = [("player", one.name), ("seat", f"{state.seat}"), ("state, as OpenSpiel has it", state.string)]
    facts += [("what the seat sees", position.hand)] if position.hand else []
    facts += [("its way", found.row(state, one.rows[state.string]))]
    facts += [("solved", found.row(state, found.solution.table[state.string]))]
    if cause := one.failures.get(state.string):
        facts.append(("no answer came", cause))
    history = "\n".join(entry.text for entry in position.history) or "Nothing yet."
    blocks: list[Block] = [NamedValues(facts), Verbatim("What the seat saw happen", history)]
    if prompt is not None:
        blocks.append(Verbatim("What it was asked", prompt))
    return Page(path, f"{one.name} at {state.string}", [Section("One state", blocks)])

"""Replay the matches in a log and compare their draws and returns."""

from collections.abc import Iterator
from typing import Any

from dubito.errors import UsageError, one_line
from dubito.plugins.tournament.log import Log, MatchLine
from dubito.plugins.tournament.match import draw_outcome
from dubito.plugins.tournament.plan import SeedSource
from dubito.plugins.tournament.rules import load


def list_differences(log: Log, source: SeedSource) -> Iterator[tuple[MatchLine, str | None]]:
    """Yield each match with its first difference or None."""
    roots = {name: load(name).new_initial_state() for name in log.games}
    for pairing, lines in log.read_lines():
        one, other = (log.bots[bot] for bot in pairing.bots)
        for line in lines:
            scheduled = source.seeds(line.game, (one, other), line.match)
            if line.seeds != scheduled:
                yield line, "its seeds do not belong to the tournament"
            else:
                yield line, find_match_difference(roots[line.game], line)


def find_match_difference(root: Any, line: MatchLine) -> str | None:
    """Return the first difference between a match and its replay, or None. `root` is the initial state."""
    state, draws = root.clone(), line.seeds.streams()
    replaced = {tuple(pair) for pair in line.replaced}
    for node, entry in enumerate(line.history):
        if state.is_terminal():
            return f"the game is over after {node} actions, but the log has {len(line.history)}"
        if isinstance(entry, list) != state.is_simultaneous_node():
            return f"node {node}: {entry} is not the action of {'one seat' if isinstance(entry, list) else 'both'}"
        if state.is_chance_node():
            expected = draw_outcome(state.chance_outcomes(), draws.chance)
            if expected != entry:
                return f"node {node}: the seed draws {expected}, but the log has {entry}"
        for seat, action in movers(state, entry):
            legal = state.legal_actions(seat)
            if action not in (legal or [0]):
                return f"node {node}: {action} is not legal for seat {seat}"
            if legal and (node, seat) in replaced and action != (expected := draws.replacement(seat).choice(legal)):
                return f"node {node}: the seed draws {expected} for seat {seat}, but the log has {action}"
        apply(state, entry)
    if not state.is_terminal():
        return f"the game is not over after all {len(line.history)} actions in the log"
    if tuple(state.returns()) != line.returns:
        return f"the returns are {tuple(state.returns())}, but the log has {line.returns}"
    return None


def movers(state: Any, entry: int | list[int]) -> list[tuple[int, int]]:
    if isinstance(entry, list):
        return list(enumerate(entry))
    return [] if state.is_chance_node() else [(state.current_player(), entry)]


def apply(state: Any, entry: int | list[int]) -> None:
    if isinstance(entry, list):
        state.apply_actions(entry)
    else:
        state.apply_action(entry)


def describe_match(root: Any, line: MatchLine) -> Iterator[tuple[str, str]]:
    """Describe a match as (subject, text), with one pair per node, strike and result."""
    state = root.clone()
    replaced = {tuple(pair) for pair in line.replaced}
    for node, entry in enumerate(line.history):
        actor = "chance" if state.is_chance_node() else ""
        acts: list[tuple[int, Any]] = movers(state, entry) or [(state.current_player(), entry)]
        for seat, action in acts:
            name = actor or line.seats[seat]
            words = one_line(state.action_to_string(seat, action), 200)
            yield f"{node}. {name}", words + " (drawn by the referee)" * ((node, seat) in replaced)
        yield from _describe_strikes(line, node)
        apply(state, entry)
    yield from _describe_strikes(line, len(line.history))
    for seat, name in enumerate(line.seats):
        yield f"{name}, seat {seat}", f"{line.returns[seat]:g}; its process exited with {line.exit[seat]}"


def _describe_strikes(line: MatchLine, node: int) -> Iterator[tuple[str, str]]:
    for strike in line.strikes:
        if strike.node == node:
            quoted = f", {one_line(strike.line, 80)!r}" if strike.line else ""
            yield f"   {line.seats[strike.seat]}", f"strike ({strike.kind}){quoted}"


def find_match(log: Log, number: int) -> MatchLine:
    """Return the match with this number, counted over all scheduled pairings; raises UsageError."""
    pairings = log.pairings()
    place, match = divmod(number, 2 * log.matches)
    if not 0 <= place < len(pairings):
        last = 2 * log.matches * len(pairings) - 1
        raise UsageError(f"--match: unknown match {number:,}: the tournament has matches 0 to {last:,}")
    for line in log.lines(pairings[place]):
        if line.match == match:
            return line
    raise UsageError(f"--match: match {number:,} is not in the log")

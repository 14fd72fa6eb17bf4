"""Find a game that a seat cannot distinguish from the actual game, by OpenSpiel's resampling or by trial."""

from collections.abc import Sequence
from contextlib import suppress
from random import Random
from typing import Final

from dubito.plugins.openspiel.engine import silence_stderr
from dubito.plugins.openspiel.engine_types import Engine
from dubito.plugins.openspiel.state import Step, apply_step, names_at, observation_text

_MAX_TRIES: Final = 12  # trials, if the game has no resampling


def sample_steps(engine: Engine, steps: Sequence[Step], seat: int, rng: Random) -> Sequence[Step] | None:
    """Return other steps that lead this seat to the same observations, or None if none were found."""
    state = engine.new_initial_state()
    for step in steps:
        apply_step(state, step)
    with silence_stderr(), suppress(RuntimeError):  # SpielError: the game has no resampling, or none here
        history = list(state.resample_from_infostate(seat, rng.random).history())
        if history != list(steps):
            return history
    wanted = _observations(engine, steps, seat)
    for _ in range(_MAX_TRIES):
        other = rng.choice((_vary_steps, _swap_outcomes))(engine, steps, seat, rng)
        if other != list(steps) and _observations(engine, other, seat) == wanted:
            return other
    return None


def _vary_steps(engine: Engine, steps: Sequence[Step], seat: int, rng: Random) -> list[Step]:
    """Vary some steps of the other seats and of chance, as far as is legal."""
    state, varied = engine.new_initial_state(), list[Step]()
    for step in steps:
        if state.is_terminal() or state.is_simultaneous_node() is isinstance(step, int):
            return varied
        if isinstance(step, int):
            legal = state.legal_actions()
            free = state.current_player() != seat and rng.random() < 0.3
            new: Step = rng.choice(legal) if free or step not in legal else step
        else:
            legal_of = [state.legal_actions(other) for other in range(len(step))]
            new = [
                rng.choice(legal) if other != seat and legal and rng.random() < 0.3 else action
                for other, (action, legal) in enumerate(zip(step, legal_of, strict=True))
            ]
            if any(legal and action not in legal for action, legal in zip(new, legal_of, strict=True)):
                return varied
        apply_step(state, new)
        varied.append(new)
    return varied


def _swap_outcomes(engine: Engine, steps: Sequence[Step], seat: int, rng: Random) -> list[Step]:
    """Swap two chance outcomes, like cards in a deck, as far as is legal."""
    state, drawn = engine.new_initial_state(), list[int]()
    for step in steps:
        if state.is_chance_node() and isinstance(step, int):
            drawn.append(step)
            possible = state.legal_actions()
        apply_step(state, step)
    if not drawn:
        return []
    one, two = rng.choice(drawn), rng.choice(possible)
    state, swapped = engine.new_initial_state(), list[Step]()
    for step in steps:
        new: Step = {one: two, two: one}.get(step, step) if isinstance(step, int) and state.is_chance_node() else step
        if isinstance(new, int) and new not in state.legal_actions():
            return swapped
        apply_step(state, new)
        swapped.append(new)
    return swapped


def _observations(engine: Engine, steps: Sequence[Step], seat: int) -> list[str | bool | int | None]:
    """Return what a seat sees after each step and what it does."""
    state, seen = engine.new_initial_state(), list[str | bool | int | None]()
    for step in steps:
        if state.current_player() == seat or state.is_simultaneous_node():
            own = step if isinstance(step, int) else step[seat]
            seen.append(names_at(state, seat).get(own))
        apply_step(state, step)
        if not state.is_terminal() and not state.is_chance_node():
            seen.append(observation_text(state, seat))
    return [*seen, state.is_player_node() and state.current_player()]

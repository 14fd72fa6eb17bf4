"""Load OpenSpiel on demand and check which of its games can be played."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib.metadata import version
from threading import RLock
from typing import Any, Final

from dubito.errors import NotInstalled, UsageError, one_line, suggestion
from dubito.game import Member
from dubito.plugins.openspiel.engine_types import Engine, EngineType

_STDERR_LOCK: Final = RLock()  # held while standard error is redirected
_TRIAL_SECONDS: Final = 20.0  # seconds for some moves of a game
_TRIAL: Final = """
import os, random, sys, tempfile
import pyspiel
if sys.argv[1].partition("(")[0] not in pyspiel.registered_names():
    sys.exit()  # a game in Python, which fails without a crash
game, draw = pyspiel.load_game(sys.argv[1]), random.Random(0)
with tempfile.TemporaryFile() as errors:  # some games only print an error, and continue with an invalid state
    own = os.dup(2)
    os.dup2(errors.fileno(), 2)
    game.new_initial_state()
    os.dup2(own, 2)
    errors.seek(0)
    if complaint := errors.read().decode(errors="replace").strip():
        sys.exit(complaint)
game.num_distinct_actions(), game.min_utility(), game.max_utility()
has_info_states = game.get_type().provides_information_state_string
for _ in range(3):
    state = game.new_initial_state()
    for _ in range(40):
        if state.is_terminal():
            break
        if state.is_chance_node():
            state.apply_action(draw.choice(state.chance_outcomes())[0])
        elif state.is_simultaneous_node():
            moves = [state.legal_actions(seat) for seat in range(game.num_players())]
            state.apply_actions([draw.choice(legal) if legal else 0 for legal in moves])
        else:
            seat, legal = state.current_player(), state.legal_actions()
            (state.information_state_string if has_info_states else state.observation_string)(seat)
            [state.action_to_string(seat, action) for action in legal]
            state.apply_action(draw.choice(legal))
"""
INSTALL: Final = "OpenSpiel is not installed: pip install 'dubito[openspiel]'"


@cache
def pyspiel() -> Any:
    """Return the pyspiel module. Raises NotInstalled without it."""
    try:
        import pyspiel as engine
    except ImportError:
        raise NotInstalled(INSTALL) from None
    return engine


def engine_version() -> str:
    return version("open_spiel")


@lru_cache(maxsize=256)
def load(name: str) -> Engine:
    """Load a game by name, with optional parameters in parentheses. Raises UsageError if it cannot be played."""
    short, bracket, rest = name.partition("(")
    types = {one.short_name: one for one in pyspiel().registered_games()}
    if short not in types:
        hint = suggestion(short, types)
        hint = hint if hint.startswith("did you mean") else "`dubito games --openspiel` lists its games"
        raise UsageError(f"OpenSpiel has no game {one_line(repr(short), 60)}: {hint}")
    kind = types[short]
    if bracket:
        _check_names(short, rest, kind)
    if why := explain_unplayable(kind):
        raise UsageError(f"openspiel:{short} cannot be played here: {why}")
    if rest not in ("", ")"):
        _try_parameters(name)
    game = _try_loading(name)
    if game.num_players() < 2:
        raise UsageError(f"openspiel:{one_line(name, 80)} cannot be played here: it has only one player")
    if game.num_distinct_actions() == 0:
        raise UsageError(f"openspiel:{short} cannot be played here: its actions are not numbered")
    least, most = return_range(game)
    if not -1e9 < least < most < 1e9:
        raise UsageError(f"openspiel:{short} cannot be played here: its returns are unbounded")
    return game


def _try_parameters(name: str) -> None:
    """Refuse parameters for which the engine fails within a few moves, because it may crash or hang."""
    try:
        command = [sys.executable, "-c", _TRIAL, name]
        done = subprocess.run(command, capture_output=True, timeout=_TRIAL_SECONDS, check=False)  # noqa: S603, our own code
    except subprocess.TimeoutExpired:
        raise UsageError(f"openspiel:{one_line(name, 80)}: OpenSpiel takes too long with these parameters") from None
    if done.returncode:
        last = (done.stderr.decode(errors="replace").strip().splitlines() or ["it crashed"])[-1].rsplit("/", 1)[-1]
        raise UsageError(f"openspiel:{one_line(name, 80)}: OpenSpiel refuses it ({one_line(last, 160)})")


def parameters(game: Engine) -> dict[str, Any]:
    """Return the values of all parameters, most of which are the defaults."""
    return {**game.get_type().parameter_specification, **game.get_parameters()}


def return_range(game: Engine) -> tuple[float, float]:
    """Return the lowest and the highest possible return, as reported by the game except for gin rummy.

    In gin rummy, a loser who lays no melds can lose more than OpenSpiel reports: ten points per card plus the bonus.
    """
    if game.get_type().short_name != "gin_rummy":
        return game.min_utility(), game.max_utility()
    given = parameters(game)
    most = float(10 * given["hand_size"] + max(given["gin_bonus"], given["undercut_bonus"]))
    return -most, most


def explain_unplayable(kind: EngineType) -> str | None:
    """Return why games of this kind cannot be played, or None if they can."""
    types = pyspiel().GameType
    if kind.dynamics == types.Dynamics.MEAN_FIELD:
        return "it is a mean-field game, which has no seats"
    if kind.max_num_players < 2:
        return "it has only one player"
    if not kind.default_loadable and kind.chance_mode == types.ChanceMode.SAMPLED_STOCHASTIC:
        return "it wraps another game"
    if kind.chance_mode == types.ChanceMode.SAMPLED_STOCHASTIC:
        return "it has its own random generator, so deals cannot be repeated"
    if not (kind.provides_information_state_string or kind.provides_observation_string):
        return "it does not report what a seat sees"
    if kind.short_name == "normal_form_extensive_game":
        return "it wraps another game"
    if kind.short_name == "crossword":
        return "its actions are not numbered"
    return None


def members() -> Iterator[Member]:
    """Return the names of all of OpenSpiel's games."""
    perfect = pyspiel().GameType.Information.PERFECT_INFORMATION
    for kind in sorted(pyspiel().registered_games(), key=lambda kind: str(kind.short_name)):
        seats = kind.min_num_players, kind.max_num_players
        is_open = kind.information == perfect
        about = "nothing is hidden" if is_open else "hidden information"
        yield Member(kind.short_name, seats, about, explain_unplayable(kind), is_open)


def canonical_name(game: Engine) -> str:
    return str(game).removesuffix("()")


def _check_names(short: str, rest: str, kind: EngineType) -> None:
    """Refuse unknown parameters. The engine checks nested parentheses."""
    if not rest.endswith(")"):
        raise UsageError(f"openspiel:{one_line(short + '(' + rest, 80)}: close the parenthesis")
    known, depth = list(kind.parameter_specification), 0
    names, word = [], ""
    for letter in rest[:-1] + ",":
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            names.append(word.partition("=")[0].strip())
            word = ""
        else:
            word += letter
    for name in filter(None, names):
        if name not in known:
            hint = suggestion(name, known) if known else "it has none"
            raise UsageError(f"openspiel:{short} has no parameter {one_line(repr(name), 60)}: {hint}")


def _try_loading(name: str) -> Engine:
    try:
        with silence_stderr():
            game: Engine = pyspiel().load_game(name)
            return game
    except (RuntimeError, LookupError, ValueError) as error:  # SpielError, or an unwrapped C++ exception
        text = str(error).rsplit("/", 1)[-1].replace("\n", ": ")
        raise UsageError(f"openspiel:{one_line(name, 80)}: OpenSpiel refuses it ({one_line(text, 160)})") from None


@contextmanager
def silence_stderr() -> Iterator[None]:
    """Silence standard error, to which the engine also writes the errors that it raises."""
    with _STDERR_LOCK:
        try:
            saved_stderr = os.dup(2)
        except OSError:  # standard error is closed, so nothing is written
            yield
            return
        try:
            with open(os.devnull, "w", encoding="ascii") as nowhere:
                os.dup2(nowhere.fileno(), 2)
                yield
        finally:
            os.dup2(saved_stderr, 2)
            os.close(saved_stderr)

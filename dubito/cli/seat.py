"""`dubito seat`: let an agent play over HTTP or MCP. `dubito/web/agent.py` has the API."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from dubito.cli.options import (
    PORT_DEFAULT,
    GameCommand,
    allow_host_option,
    config_options,
    find_started_run,
    games_path_option,
    program_options,
    refuse_other_settings,
)
from dubito.cli.output import note, say
from dubito.cli.run import plan_run, play_with_progress, print_result
from dubito.errors import UsageError, describe_signal, one_line
from dubito.experiment.call_options import check_cache
from dubito.experiment.config import Config, parse_config, read_config
from dubito.experiment.experiment import Experiment, kind_of_player
from dubito.experiment.run import find_finished_run
from dubito.experiment.saved_config import config_to_store, load_stored_config
from dubito.game import Game
from dubito.hooks import agent_apps, import_place

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from dubito.seats.remote import AgentSeat

_GAMES: Final = 20
_AGENT: Final = "agent"
_LINGER_SECONDS: Final = 60.0  # gives agents time to see that the run is over
_STOPPED_LINGER_SECONDS: Final = 3.0  # shorter after Ctrl-C or an error
_POLL_SECONDS: Final = 0.1


@click.command(cls=GameCommand)
@click.argument("config", required=False, type=click.Path(path_type=Path))
@click.option("--listen", metavar="[HOST:]PORT", help=f"Address of the server. [default: 127.0.0.1:{PORT_DEFAULT}]")
@allow_host_option
@click.option("--opponents", metavar="A,B,...", help="Opposing bots and models. [default: all hand-written bots]")
@click.option("--name", default=_AGENT, show_default=True, help="The agent's name in results, if CONFIG has no agent.")
@click.option("--deadline", type=float, metavar="SECONDS", help="Time limit per decision. [default: 300]")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    help="File with the agents' tokens, so that they survive a restart. Created if missing.",
)
@click.option("--games", metavar="N", help=f"Games, a multiple of the number of contenders. [default: {_GAMES}]")
@games_path_option
@config_options("game", "table_sizes", "contenders", "seed", "on_bot_error", "in_flight", "budget", "cache", "output")
@program_options
@click.option("--tables", is_flag=True, help="Print all tables instead of a summary.")
@click.option("--quiet", is_flag=True, help="Hide the progress line.")
def seat(
    config: Path | None,
    listen: str | None,
    allow_host: Sequence[str],
    opponents: str | None,
    name: str,
    deadline: float | None,
    token_file: Path | None,
    tables: bool,
    quiet: bool,
    rules: Mapping[str, Any],
    **flags: str | bool | None,
) -> int:
    """Let an agent play over HTTP or MCP, against bots and models.

    The agent has a seat in every game of a run, and logs in with the printed token. The API is described at
    /openapi.json; docs/seat.md has an example. CONFIG is the same as for `dubito run`. Its contenders can include
    agents, written as `{name: mine, remote: true}`. RUN is the folder of such a run, which is continued.
    """
    host, colon, port = (listen or "").rpartition(":")
    if listen is not None and not (port.isascii() and port.isdecimal() and (host or not colon)):
        raise UsageError(
            f"--listen: not an address: {one_line(listen, 80)}", hint="use one like 127.0.0.1:8765, or a port"
        )
    address = (host.strip("[]") or "127.0.0.1", int(port) if listen is not None else None)
    given = {**flags, **rules}
    if (started := find_started_run(config)) is not None:
        refuse_other_settings(started, "games", "listen", "allow_host", "token_file", "tables", "quiet")
        checked = load_stored_config(started, given)
    else:
        checked = _read_agent_config(config, opponents, name, deadline, given)
    planned, folder, calls = plan_run(checked, config, started=started)
    if (finished := find_finished_run(planned, folder)) is not None:
        note(f"this run is already finished in {folder}; start a new one with the config or the flags")
        return print_result(finished, new=False, tables=tables)
    if warning := check_cache(planned, calls):
        note(warning)
    stored = config_to_store(checked, planned.experiment)
    with _serve_seats(planned.experiment, planned.game, address, allow_host, token_file) as seats:
        result = play_with_progress(planned, folder, calls, stored, workers=checked.workers, quiet=quiet, seats=seats)
        reason = describe_signal(result.stop_signal) if result.interrupted else str(result.failure or "finished")
        for one in seats.values():
            one.end_run(reason)
        code = print_result(result, new=True, tables=tables)
        # Give all agents time to see that the run is over, or stop at Ctrl-C.
        until = time.monotonic() + (_STOPPED_LINGER_SECONDS if code else _LINGER_SECONDS)
        with suppress(KeyboardInterrupt):
            while (now := time.monotonic()) < until and not all(one.has_left(now) for one in seats.values()):
                time.sleep(_POLL_SECONDS)
    return code


@contextmanager
def _serve_seats(
    experiment: Experiment, game: Game, address: tuple[str, int | None], allowed: Sequence[str], token_file: Path | None
) -> "Iterator[dict[str, AgentSeat]]":
    """Serve the seats of an experiment's agents, by player, and print how to reach them."""
    # Imported late: no other command needs a web server.
    from dubito import serve
    from dubito.llm.answers import union_schema
    from dubito.seats.remote import AgentSeat
    from dubito.seats.tokens import load_tokens
    from dubito.web.agent import make_agent_app
    from dubito.web.guard import is_loopback

    games, host = experiment.games // len(experiment.contenders), address[0]
    agents = [spec for spec in experiment.contenders if kind_of_player(spec) == "agent"]
    tokens = [None] * len(agents) if token_file is None else load_tokens(token_file, len(agents))
    seats = {
        spec.name: AgentSeat(spec.name, games, spec.settings["deadline"], token, game.facts.BRIEF)
        for spec, token in zip(agents, tokens, strict=True)
    }
    with serve.listen(*address) as listener:
        answer = union_schema([node.answer for node in game.nodes])
        apps: dict[str, ASGIApp] = {}
        for path, place in agent_apps().items():
            try:
                apps[path] = import_place(place)()
            except UsageError as error:
                note(f"note: {error}")
        app = make_agent_app([*seats.values()], host, allowed, apps, answer)
        with serve.serve_in_thread(app, listener):
            if not is_loopback(bound_to := listener.getsockname()[0]):
                note(f"Warning: {one_line(bound_to)} is not encrypted. Anyone on the network can read the tokens.")
            url = serve.address(host, listener)
            say(f"HTTP: {url} (see {url}openapi.json)")
            for path in apps:
                say(f"{path[1:].upper()}: {url}{path[1:]}")
            for one in seats.values():
                say(f"Token of {one_line(one.name)}: {one.token}")
            say("Waiting for the first request. Press Ctrl-C to stop.")
            try:
                yield seats
            finally:
                for one in seats.values():
                    one.end_run("stopped")


def _read_agent_config(
    path: Path | None, opponents: str | None, name: str, deadline: float | None, flags: Mapping[str, Any]
) -> Config:
    """Build a config with an agent from a file and flags. Raises UsageError."""
    content = {"games": _GAMES} | (read_config(path) if path else {})
    if opponents is not None:
        content["bots"] = [word.strip() for word in opponents.split(",") if word.strip()]
    config = parse_config(content, str(path or "the command"), flags)
    if not any(isinstance(entry, dict) and entry.get("remote") for entry in config.contenders):
        limit = {} if deadline is None else {"deadline": deadline}
        agent = {"name": name, "remote": True, **limit}
        config = config.model_copy(update={"contenders": [*config.contenders, agent]})
    elif deadline is not None or name != _AGENT:
        raise UsageError("--name and --deadline are for a config without an agent", hint="set them in the config")
    return config

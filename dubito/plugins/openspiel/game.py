"""OpenSpiel's games for the harness, with one `Game` per name and parameters."""

from functools import lru_cache
from random import Random
from types import SimpleNamespace
from typing import Any, Final

from dubito.errors import UsageError, one_line
from dubito.game import Choice, Family, Game, Measure, Node, Results, house_contenders, make_missing_check, no_rules
from dubito.plugins.openspiel.bot import OpenSpielBot
from dubito.plugins.openspiel.engine import canonical_name, engine_version, load, members, return_range
from dubito.plugins.openspiel.state import GAME_COUNTS, NODE, SEAT_COUNTS, State, all_names, return_units
from dubito.plugins.openspiel.texts import engine_title

NAME: Final = "openspiel"


def load_engine(game: Game) -> Any:
    return load(game.name.partition(":")[2])


@lru_cache(maxsize=256)
def member(name: str) -> Game:
    """Return the game of this name, without its prefix. Raises UsageError if it cannot be played."""
    engine = load(name)
    if (full := canonical_name(engine)) != name:
        return member(full)
    seats = engine.num_players()
    nodes = (Node(NODE, "act", Choice(all_names(engine))),)
    return Game(
        name=f"{NAME}:{name}",
        family=NAME,
        version=engine_version(),
        summary=f"{engine_title(engine)}, by OpenSpiel",
        rules=no_rules,
        seats=(seats, seats),
        lineup="ordered_pairs" if seats == 2 else "uniform",
        base=OpenSpielBot,
        base_path="dubito.plugins.openspiel.bot.OpenSpielBot",
        fallback="UniformRandom",
        nodes=nodes,
        results=_results(engine),
        deal=lambda rules, players, rng: _deal(engine, players, rng),
        deal_to_json=lambda state: {"game": str(state.engine), "drawn": list(state.steps)},
        output_to_json=lambda output: output,
        output_from_json=_output_from_json,
        legal=lambda view: [*view.names.values()],  # a view's own `legal` are numbers, for bots
        package="dubito.plugins.openspiel",
        rules_version=1,
        missing=make_missing_check(OpenSpielBot, nodes),
        kept_rules=SimpleNamespace,
        cannot_play=lambda cls: cls.cannot_play(engine) if issubclass(cls, OpenSpielBot) else None,
        said_of=lambda cls, _, settings: cls.describe(engine, settings) if issubclass(cls, OpenSpielBot) else None,
        demo={
            "games": 60,
            "bots": ["UniformRandom", "FirstLegal"],
            "contenders": house_contenders("random", "random"),
        },
    )


def _deal(engine: Any, players: int, rng: Random) -> State:
    if players != engine.num_players():
        raise UsageError(
            f"{canonical_name(engine)} has {engine.num_players()} seats, not {players}; change the number of players"
        )
    return State(engine, rng)


def _output_from_json(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise UsageError(f"the record is damaged: an action is stored as its name, not as {one_line(repr(value), 60)}")


def _results(engine: Any) -> Results:
    """Return results with the game's range of returns (O4), and counts of wins, ties and losses."""
    (least, most), unit = return_range(engine), return_units(engine)
    nothing = round(-least * unit)
    total = engine.utility_sum()
    buckets = ("wins", "draws", "losses") if total == 0 else ("gains", "zeros", "losses")
    return Results(
        buckets=buckets,
        endings=tuple(bucket.removesuffix("es") if bucket == "losses" else bucket[:-1] for bucket in buckets),
        bucket=lambda mark, capped: 1 + (mark < nothing) - (mark > nothing),
        measures=(
            Measure(
                "return",
                "return",
                "Return",
                scale=round((most - least) * unit),
                count="units",
                span=(least, most),
            ),
        ),
        headline=("return",),
        equal_share=lambda seats: {} if total is None else {"return": total / seats},
        game_counts=GAME_COUNTS,
        seat_counts=SEAT_COUNTS,
        scoreboard=buckets,
        averaged=("moves",),
        ended=lambda mark, capped: f"return {mark / unit + least:g}",
        rate="return",
        meaning=f"A bot is ranked by its mean return per game, between {least:g} and {most:g}.",
    )


GAME: Final = Family(
    NAME,
    "Any OpenSpiel game, such as openspiel:kuhn_poker; `dubito games --openspiel` lists them",
    member,
    members,
    ("kuhn_poker", "leduc_poker", "liars_dice", "gin_rummy"),
)

"""OpenSpiel's games for the harness, with one `Game` per name and parameters."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Final

from dubito.errors import UsageError, one_line
from dubito.game import Choice, Family, Game, GameEvent, Measure, Node, Player, Results, Shares, house_contenders
from dubito.plugins.openspiel.bot import OpenSpielBot
from dubito.plugins.openspiel.engine import canonical_name, engine_version, load, members, return_range
from dubito.plugins.openspiel.engine_types import Engine
from dubito.plugins.openspiel.state import EVENTS, GAME_COUNTS, NODE, SEAT_COUNTS, State, View, all_names, return_units
from dubito.plugins.openspiel.texts import engine_title

if TYPE_CHECKING:
    from dubito.files import NoRules
    from dubito.plugins.openspiel.facts import OpenSpielFacts
    from dubito.plugins.openspiel.words import OpenSpielWords
    from dubito.plugins.openspiel.workshop import OpenSpielWorkshop

NAME: Final = "openspiel"


class OpenSpielGame(Game["NoRules", State, GameEvent]):
    family = NAME
    base = OpenSpielBot
    fallback = "UniformRandom"
    chance_bot = "UniformRandom"
    events = EVENTS
    demo = {"games": 60, "bots": ["UniformRandom", "FirstLegal"], "contenders": house_contenders("random", "random")}

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.name = f"{NAME}:{canonical_name(engine)}"
        self.version = engine_version()
        self.summary = f"{engine_title(engine)}, by OpenSpiel"
        seats = engine.num_players()
        self.seats = (seats, seats)
        self.lineup = "ordered_pairs" if seats == 2 else "uniform"
        self.nodes = (Node(NODE, "act", Choice(all_names(engine))),)
        self.results = _results(engine)

    def rules_of_run(self, stored: Mapping[str, object]) -> SimpleNamespace:
        return SimpleNamespace(**stored)

    def deal(self, rules: "NoRules", seats: int, chance: Random) -> State:
        if seats != self.seats[0]:
            name = canonical_name(self.engine)
            raise UsageError(f"{name} has {self.seats[0]} seats, not {seats}; change the number of players")
        return State(self.engine, chance)

    def deal_to_json(self, state: State) -> dict[str, object]:
        return {"game": str(state.engine), "drawn": list(state.steps)}

    def output_from_json(self, value: object) -> str:
        if isinstance(value, str):
            return value
        raise UsageError(f"the record is damaged: an action is stored as its name, not as {one_line(repr(value), 60)}")

    def legal(self, view: View) -> Sequence[str]:
        return [*view.names.values()]  # a view's own `legal` are numbers, for bots

    def cannot_play(self, bot: type[Player]) -> str | None:
        return bot.cannot_play(self.engine) if issubclass(bot, OpenSpielBot) else None

    def note_on(self, bot: type[Player], rules: Mapping[str, object], settings: Mapping[str, object]) -> str | None:
        return bot.describe(self.engine, settings) if issubclass(bot, OpenSpielBot) else None

    @property
    def words(self) -> "OpenSpielWords":
        from dubito.plugins.openspiel.words import OpenSpielWords

        return OpenSpielWords(self, self.engine)

    @property
    def facts(self) -> "OpenSpielFacts":
        from dubito.plugins.openspiel.facts import OpenSpielFacts

        return OpenSpielFacts(self.engine)

    @property
    def workshop(self) -> "OpenSpielWorkshop":
        from dubito.plugins.openspiel.workshop import OpenSpielWorkshop

        return OpenSpielWorkshop(self, self.engine)


def ask_policies(asked: OpenSpielGame, situations: Iterable[Sequence[int]] = ()) -> OpenSpielGame:
    """Return the game in which players are asked for the probabilities of all their actions."""
    names = all_names(asked.engine)
    if names is None:
        legal_names = (State.after_steps(asked.engine, steps).view().names.values() for steps in situations)
        names = tuple(dict.fromkeys(name for legal in legal_names for name in legal))
    game = OpenSpielGame(asked.engine)
    game.nodes = (Node("policy", "act", Shares(names)),)
    return game


@lru_cache(maxsize=256)
def member(name: str) -> OpenSpielGame:
    """Return the game of this name, without its prefix. Raises UsageError if it cannot be played."""
    engine = load(name)
    return OpenSpielGame(engine) if (full := canonical_name(engine)) == name else member(full)


def _results(engine: Engine) -> Results:
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

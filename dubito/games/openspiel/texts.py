"""The rules of OpenSpiel's games for people and prompts: in our own words if there are some, else the engine's."""

from typing import Any

from dubito.games.openspiel.engine import range_of
from dubito.games.openspiel.state import own_words


def title_of(engine: Any) -> str:
    words = own_words(engine)
    return words.title if words else str(engine.get_type().long_name)


def rule_sentences(engine: Any) -> list[str]:
    """The rules in force, a sentence or two each."""
    if words := own_words(engine):
        return list(words.rules)
    kind, seats = engine.get_type(), engine.num_players()
    said = [
        f"This is {kind.long_name}, as OpenSpiel plays it under the name of {kind.short_name}, for {seats} players."
    ]
    if given := engine.get_parameters():
        said.append(f"Its parameters: {', '.join(f'{key} is {value}' for key, value in sorted(given.items()))}.")
    if kind.dynamics == type(kind.dynamics).SIMULTANEOUS:
        said.append("All players choose at once: nobody sees a choice before all are made.")
    return said


def objective(engine: Any) -> str:
    """What a player is after."""
    least, most = range_of(engine)
    said = f"the highest return at the end of the game; returns lie between {least:g} and {most:g}."
    total = engine.utility_sum()
    if total == 0:
        return f"{said} What one player wins, the others lose."
    return said if total is None else f"{said} All returns together are {total:g}."

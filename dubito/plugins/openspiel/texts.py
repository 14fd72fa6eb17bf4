"""The rules of OpenSpiel's games for people and prompts, in our own words or the engine's.

For people, this module also formats the engine's text about a state.
"""

import re
from typing import Final

from dubito.plugins.openspiel.engine import return_range
from dubito.plugins.openspiel.engine_types import Engine
from dubito.plugins.openspiel.state import own_words


def engine_title(engine: Engine) -> str:
    words = own_words(engine)
    return words.title if words else str(engine.get_type().long_name)


def rule_paragraphs(engine: Engine) -> list[str]:
    """Return the rules in force, one or two sentences each."""
    if words := own_words(engine):
        return list(words.rules)
    kind, seats = engine.get_type(), engine.num_players()
    sentences = [
        f"This is {kind.long_name} for {seats} players, as OpenSpiel implements it under the name {kind.short_name}."
    ]
    if given := engine.get_parameters():
        sentences.append(f"Its parameters: {', '.join(f'{key} is {value}' for key, value in sorted(given.items()))}.")
    if kind.dynamics.name == "SIMULTANEOUS":
        sentences.append("All players choose at the same time: nobody sees a choice before all have chosen.")
    return sentences


def objective(engine: Engine) -> str:
    least, most = return_range(engine)
    goal = f"The highest return at the end of the game. Returns are between {least:g} and {most:g}."
    total = engine.utility_sum()
    if total == 0:
        return f"{goal} What one player wins, the others lose."
    return goal if total is None else f"{goal} All returns add up to {total:g}."


_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
_FIELD: Final = re.compile(r"[A-Za-z][^:\n]*:")
# A board in chess notation, where digits are empty squares.
_ROWS: Final = re.compile(r"([\w?+~]+(?:/[\w?+~]+){7,})( .*)?")


def is_open(engine: Engine) -> bool:
    kind = engine.get_type()
    return kind.information.name == "PERFECT_INFORMATION" and kind.dynamics.name == "SEQUENTIAL"


def format_state_text(written: str) -> str:
    """Format the engine's text about a state, by field or as a board, or return an empty string if it is neither."""
    text = _COLOUR.sub("", written).strip("\n")
    if "][" in text:
        text = text.replace("][", "\n").removeprefix("[").removesuffix("]")
    elif all(map(_FIELD.match, parts := text.split("|"))):
        text = "\n".join(parts)
    if board := _ROWS.fullmatch(text):
        rows = re.sub(r"\d+", lambda empty: "." * int(empty[0]), board[1]).split("/")
        return "\n".join([*rows, "", text])
    return text if "\n" in text or _FIELD.match(text) else ""

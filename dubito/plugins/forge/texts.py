"""The texts for the model: how to write a bot, the game, and the feedback after each round."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dubito.errors import one_line
from dubito.files import read_text
from dubito.game import Game
from dubito.plugins.forge.play import DEADLINE, Mistake
from dubito.plugins.forge.reply import MAX_BYTES
from dubito.report.tables import cell_text, column_kind
from dubito.stats.ranking import RankingRow

_MAX_FACT: Final = 400  # characters of a fact in an example
_MAX_FACT_OF_MISTAKE: Final = 160

GUIDE: Final = read_text(Path(__file__).with_name("guide.txt")).format(deadline=DEADLINE, max_bytes=MAX_BYTES)


def describe_game(game: Game, opponents: Sequence[str]) -> str:
    """Return the rules, and each question with its facts at an example position. Equal facts are not repeated."""
    steady, first = game.facts.steady_facts(), dict[str, Any]()
    parts = [f"The game is {game.name}, against {len(opponents)} kinds of opponents whose code you do not see."]
    for node in game.nodes:
        facts = game.facts.facts(game.facts.example_position(node.name))
        if not first:
            same = {key: fact for key, fact in facts.items() if key in steady}
            parts.append(f"Facts that stay the same in a game:\n{_write_facts(same, None)}")
        own = {key: fact for key, fact in facts.items() if key not in steady and fact != first.get(key, steady)}
        first = first or facts
        parts.append(f"Example of the other facts at node {node.name}:\n{_write_facts(own, _MAX_FACT)}")
    return "\n\n".join(parts)


def _write_facts(facts: Mapping[str, Any], most: int | None) -> str:
    """Return a line for each fact, with at most this number of characters of its value."""
    texts = {key: json.dumps(fact, ensure_ascii=False) for key, fact in facts.items()}
    return "\n".join(
        f"{key}: {text if len(text) <= (most or len(text)) else text[:most]}" for key, text in texts.items()
    )


def ask_for_round(number: int, rounds_told: str = "") -> str:
    return f"{rounds_told}Write round {number} of the bot now."


def tell_round(
    number: int, problems: Sequence[str], rows: Sequence[RankingRow], name: str, game: Game, deals: int,
    mistakes: Sequence[Mistake],
) -> str:  # fmt: skip
    """Return the feedback to the model after a round."""
    parts = [f"Round {number} is over."]
    parts += ["Problems:\n" + "\n".join(f"- {one_line(problem, 500)}" for problem in problems)] if problems else []
    if rows:
        measure = game.results.measures[0]
        lines = [
            f"- {'your bot' if row.name == name else one_line(row.name)}: "
            f"{cell_text(row.rates[measure.key], column_kind(measure))}"
            for row in rows
        ]
        parts.append(f"{measure.column_title} in {deals} training deals, at tables with your bot, best first:")
        parts[-1] += "\n" + "\n".join(lines)
    if mistakes:
        parts.append("The costliest decisions:\n" + "\n".join(map(_describe_mistake, mistakes)))
    return "\n\n".join(parts) + "\n\n"


def _describe_mistake(mistake: Mistake) -> str:
    facts = _write_facts(mistake.facts, _MAX_FACT_OF_MISTAKE).replace("\n", "; ")
    return f"- game {mistake.game}, your turn {mistake.turn}: {mistake.what} ({mistake.pile} on the pile). {facts}"

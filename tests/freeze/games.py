"""Freeze digests of every game's requests and of what OpenSpiel's learners see.

`python -m tests.freeze.games` writes `games.json`.
"""

import json
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any, Final

from dubito.game.find import find_game
from dubito.llm.prompts import load_prompt, prompt_names
from dubito.llm.protocols import build_request
from dubito.llm.protocols.wire import Exchange
from tests.cli.kit import REPO
from tests.llm.kit import PROTOCOLS, settings
from tests.prompts.kit import ARMS

HERE: Final = Path(__file__).parent
DIGESTS: Final = HERE / "games.json"
GAMES: Final = (
    *("dubito", "bs", "defuse"),
    *(f"openspiel:{name}" for name in ("kuhn_poker", "leduc_poker", "liars_dice", "gin_rummy")),
)
COURSES: Final = (
    "dubito(max_turns=20)",
    "dubito(players=5,win_rule=contested,max_turns=20)",
    "dubito(players=4,moves=cards,jokers=0,max_turns=20)",
    "dubito_bs(max_rounds=3)",
    "dubito_defuse",
)


def playable() -> list[str]:
    return [game for game in GAMES if find_spec("pyspiel") or ":" not in game]


def compute_digest(value: Any) -> str:
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def requests(name: str) -> dict[str, str]:
    """Return a digest of all requests of a game's prompts, in each protocol, with one example per node."""
    game = find_game(name, REPO)
    found = {}
    for title in [title for title in prompt_names(REPO, game) if title not in ARMS]:  # golden files freeze the others
        prompt = load_prompt(title, REPO, game)
        for protocol in PROTOCOLS:
            bodies = []
            for node in game.nodes:
                rendered = prompt.render(game.facts.example_position(node.name))
                schema = prompt.form(node.name).schema
                exchange = Exchange(rendered.system, rendered.user, schema, history=rendered.history)
                bodies.append(build_request(settings(protocol), exchange, "frozen").digest)
            found[f"{name} {title} {protocol}"] = compute_digest(bodies)
    return found


def course(name: str, seed: int) -> str:
    """Return a digest of a random OpenSpiel game: its actions, outcomes, their names, and what each seat sees."""
    import pyspiel

    import dubito.plugins.openspiel.spiel  # noqa: F401, registers our games

    state, chance, seen = pyspiel.load_game(name).new_initial_state(), Random(seed), []
    while not state.is_terminal():
        if state.is_chance_node():
            outcomes, odds = zip(*state.chance_outcomes(), strict=True)
            action = chance.choices(outcomes, odds)[0]
            seen.append([outcomes, [round(share, 12) for share in odds]])
        else:
            action = chance.choice(state.legal_actions())
            seen.append([state.current_player(), state.legal_actions(), sights(state), str(state)])
        seen.append(state.action_to_string(action))
        state.apply_action(action)
    return compute_digest([seen, state.returns(), sights(state)])


def sights(state: Any) -> list[Any]:
    return [
        [
            state.information_state_string(seat),
            [round(value, 6) for value in state.information_state_tensor(seat)],
            [round(value, 6) for value in state.observation_tensor(seat)],
        ]
        for seat in range(state.num_players())
    ]


def digests() -> dict[str, str]:
    """Return the contents of `games.json`."""
    found: dict[str, str] = {}
    for game in playable():
        found |= requests(game)
    if find_spec("pyspiel"):
        found |= {f"{name} {seed}": course(name, seed) for name in COURSES for seed in range(2)}
    return found


if __name__ == "__main__":
    DIGESTS.write_text(json.dumps(digests(), indent=1) + "\n", encoding="utf-8")

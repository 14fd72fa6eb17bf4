"""What is frozen of every game beside its scenes: `python -m tests.freeze.games` made it, before rooms moved.

`games.json` holds digests of what models are asked, and of what OpenSpiel's learners see of our games. `tables.json`
are tables of the browser: each as the file of a game that is not over, the answers to come, and what it comes to.
"""

import json
from contextlib import ExitStack
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final

from dubito.game.find import find_bots, find_game
from dubito.llm.prompts import load_prompt, prompt_names
from dubito.llm.protocols import Exchange, build_request
from tests.cli.kit import REPO
from tests.llm.kit import PROTOCOLS, settings
from tests.prompts.kit import ARMS
from tests.web.kit import Browser, Served, a_move, guests_of, served

HERE: Final = Path(__file__).parent
DIGESTS: Final = HERE / "games.json"
TABLES: Final = HERE / "tables.json"
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
OPPONENTS: Final = {
    "dubito": ["ClaudeBot", "StefaBot", "MrDoubt"],
    "bs": ["Player1", "Player4", "CalculatingLiar"],
    "defuse": ["Sapper"],
}
LONG: Final = ("dubito", "bs", "defuse", "openspiel:gin_rummy")  # the person has made moves; elsewhere it is the first


def playable() -> list[str]:
    return [game for game in GAMES if find_spec("pyspiel") or ":" not in game]


def compute_digest(value: Any) -> str:
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def requests(name: str) -> dict[str, str]:
    """A digest of all that a model is asked under each prompt of a game, in each protocol, an example for each node."""
    game = find_game(name, REPO)
    found = {}
    for title in [title for title in prompt_names(REPO, game) if title not in ARMS]:  # whose golden files freeze them
        prompt = load_prompt(title, REPO, game)
        for protocol in PROTOCOLS:
            bodies = []
            for node in game.nodes:
                told = prompt.render(game.facts.example_position(node.name))
                schema = prompt.form(node.name).schema
                exchange = Exchange(told.system, told.user, schema, history=told.history)
                bodies.append(build_request(settings(protocol), exchange, "frozen").digest)
            found[f"{name} {title} {protocol}"] = compute_digest(bodies)
    return found


def course(name: str, seed: int) -> str:
    """A digest of a game at random in OpenSpiel: what may be done and drawn, what it is called, what each seat sees."""
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
    """What each seat sees."""
    return [
        [
            state.information_state_string(seat),
            [round(value, 6) for value in state.information_state_tensor(seat)],
            [round(value, 6) for value in state.observation_tensor(seat)],
        ]
        for seat in range(state.num_players())
    ]


def digests() -> dict[str, str]:
    """All of `games.json`."""
    found: dict[str, str] = {}
    for game in playable():
        found |= requests(game)
    if find_spec("pyspiel"):
        found |= {f"{name} {seed}": course(name, seed) for name in COURSES for seed in range(2)}
    return found


def hall(stack: ExitStack, folder: Path) -> Served:
    first, *others = [guests_of(find_bots(REPO, game)) for game in playable()]
    return stack.enter_context(served(folder, opponents=first, others=others))


def an_answer(view: Any) -> Any:
    """Whatever the person may answer; another thing each time."""
    frame = view["frames"][-1]
    if "question" not in frame:
        return a_move(frame)
    question, move = frame["question"], frame["move"]
    if question["kind"] == "bool":
        return move % 5 == 0
    if question["kind"] == "whole":
        return 0
    options = question["options"]
    return options[:1] if question["kind"] == "cards" else options[move % len(options)]


def come_to(server: Served, browser: Browser, view: Any) -> dict[str, Any]:
    """What a table has come to: all that its person has seen, the record that was saved, and its page."""
    page = browser("GET", f"/games/{view['record']}").text
    for name in (view["record"], str(server.folder), server.folder.name):
        page = page.replace(name, "")
    return {
        "seen": compute_digest({key: told for key, told in browser.view().items() if key != "lies"}),  # told later
        "result": view["result"],
        "ended": view["ended"],
        "page": compute_digest(page),
        "record": (server.folder / f"{view['record']}.json").read_text(encoding="utf-8"),
    }


def _table(server: Served, game: str) -> dict[str, Any]:
    browser, running = server.browser(), server.folder / "running"
    answers: list[Any] = []
    others = {*running.glob("*.json")}
    bots = OPPONENTS.get(game, ["UniformRandom"])
    view = browser.sit(bots, seed=11, seat=1, **({"game": game} if game != "dubito" else {}))
    for _ in range(3 if game in LONG else 0):
        view = browser.play(an_answer(view))
    assert not view["over"], game
    (file,) = {*running.glob("*.json")} - others
    kept = {"file": file.name, "table": file.read_text(), "cookie": str(browser.cookie), "turn": browser.turn}
    while not view["over"]:
        answers.append(an_answer(view))
        view = browser.play(answers[-1])
    return kept | {"answers": answers} | come_to(server, browser, view)


def _write() -> None:
    DIGESTS.write_text(json.dumps(digests(), indent=1) + "\n", encoding="utf-8")
    with TemporaryDirectory() as folder, ExitStack() as stack:
        server = hall(stack, Path(folder))
        tables = {game: _table(server, game) for game in GAMES}
    TABLES.write_text(json.dumps(tables, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    _write()

"""Golden renderings at example positions: `python -m tests.plugins.openspiel.games.golden`."""

from pathlib import Path

from dubito.game.find import find_game
from dubito.llm.prompts import load_prompt
from dubito.plugins.openspiel.game import OpenSpielGame, ask_policies
from tests.cli.kit import REPO

FOLDER = Path(__file__).parent / "golden"
PROMPTS = ("plain", "reasoned", "policy")
GOLDEN = ("kuhn_poker", "leduc_poker", "phantom_ttt")


def golden(name: str, prompt: str) -> Path:
    return FOLDER / f"{name}-{prompt}.txt"


def rendered(name: str, prompt: str) -> str:
    """Render a prompt at the example position in its preferred form."""
    game = find_game(f"openspiel:{name}", REPO)
    if prompt == "policy":
        assert isinstance(game, OpenSpielGame)
        game = ask_policies(game)
    loaded = load_prompt(prompt, REPO, game)
    texts = loaded.render(game.facts.example_position(game.nodes[0].name))
    return "\n\n".join(("--- system ---", texts.system, "--- history ---", *texts.history, "--- user ---", texts.user))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for each in GOLDEN:
        for one in PROMPTS:
            golden(each, one).write_text(rendered(each, one))

"""Rewrite the playthroughs: `python -m tests.plugins.openspiel.training.golden`."""

from open_spiel.python.algorithms.generate_playthrough import playthrough

from tests.plugins.openspiel.training.test_games import GOLDEN

NAMES = {
    "dubito": "dubito(max_turns=5)",
    "dubito_cards": "dubito(players=4,moves=cards,max_turns=5)",
    "dubito_bs": "dubito_bs(max_rounds=1)",
    "dubito_defuse": "dubito_defuse",
}

if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for stem, name in NAMES.items():
        (GOLDEN / f"{stem}.txt").write_text(playthrough(name, [], seed=0))

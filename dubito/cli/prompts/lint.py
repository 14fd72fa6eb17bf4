"""`dubito prompts lint`: advice on a prompt. No model is asked."""

from pathlib import Path

import click

from dubito.cli.options import game_option
from dubito.cli.output import note, say, table
from dubito.errors import one_line
from dubito.game.find import find_game
from dubito.llm.prompts import load_prompt
from dubito.report.tables import cell_text
from dubito.workshop.lint import FIRST
from dubito.workshop.lint import lint as advice_on
from dubito.workshop.recordings import part, sample_games


@click.command()
@click.argument("name")
@game_option
def lint(name: str, game: str) -> None:
    """Say how long the requests of prompt NAME are, how much of them a provider can cache, and what they leave out."""
    prompt = load_prompt(name, Path.cwd(), find_game(game, Path.cwd()))
    games = sample_games(prompt.game)
    advice = advice_on(prompt, games)
    cells = [
        [size.node, f"{size.requests}", f"{size.bytes:.0f}", f"{size.tokens:.0f}", cell_text(size.shared, "rate")]
        for size in advice.sizes
    ]
    headers = ["node", "requests", "bytes", "tokens, about", "as the request before %"]
    title = f"{prompt.name}: {prompt.title}. On average over {len(games)} games; the last column from a player's "
    table(f"{title}decision {FIRST} on", headers, cells)
    for finding in advice.findings:
        say(f"- {one_line(finding, 1000)}")
    if not advice.findings:
        say("no findings")
    if part(prompt.game, "world_pairs", None) is None:
        note(f"whether it tells what is hidden is not checked: {prompt.game.name} brings no second worlds")

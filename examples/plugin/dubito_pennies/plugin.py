"""Register the command `dubito payoffs`."""

import click

from dubito.hooks import Command, hookimpl


@hookimpl
def commands() -> dict[str, Command]:
    return {"payoffs": Command("Plugins", "dubito_pennies.plugin:payoffs")}


@click.command()
def payoffs() -> None:
    """Show who wins at matching pennies."""
    click.echo("The same side twice: seat 0 wins. Two sides: seat 1 wins.")

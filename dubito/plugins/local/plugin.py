"""The plugin's parts: `dubito models` and the `local` model server."""

from collections.abc import Mapping

from dubito.hooks import Command, ModelServer, hookimpl


@hookimpl
def commands() -> Mapping[str, Command]:
    functions = {"list": "list_models", "get": "get", "remove": "remove"}
    places = {name: f"dubito.plugins.local.command:{function}" for name, function in functions.items()}
    return {f"models {name}": Command("Models", place) for name, place in places.items()}


@hookimpl
def model_servers() -> Mapping[str, ModelServer]:
    # A small model that starts to ramble only stops at the limit, and a CPU needs minutes for a long prompt. This makes
    # llama.cpp's server stream how much of the prompt it has read.
    settings = {"api": "chat", "max_output": 256, "deadline": 1800, "parameters": {"return_progress": True}}
    return {"local": ModelServer("dubito.plugins.local.server:SERVERS", settings)}

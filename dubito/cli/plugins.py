"""`dubito plugins`: list the plugins."""

from types import ModuleType

import click

from dubito.cli.output import note, table
from dubito.hooks import load_installed
from dubito.hooks import plugins as manager
from dubito.packages import plugin_folders


@click.command()
def plugins() -> None:
    """List the plugins and what each adds."""
    faults = load_installed()
    shipped = {folder.name for folder in plugin_folders()}
    rows = []
    for name, plugin in sorted(manager().list_name_plugin()):
        module = plugin.__name__ if isinstance(plugin, ModuleType | type) else plugin
        added = []  # such as `command audit`
        for hook in manager().get_hookcallers(plugin) or ():
            if hook.name in ("commands", "executors"):
                kind = hook.name.removesuffix("s")
                added += [f"{kind} {place}" for place in getattr(plugin, hook.name)()]
            else:
                added.append(hook.name.replace("_", " "))
        origin = "Dubito" if name in shipped else f"an installed package ({module})"
        rows.append([name, ", ".join(added), origin])
    table(f"{len(rows)} plugins", ["plugin", "adds", "origin"], rows)
    for fault in faults:
        note(fault)

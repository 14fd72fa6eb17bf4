"""`dubito completion`: complete commands and options in a shell."""

import click
from click.shell_completion import get_completion_class

from dubito.cli.output import say


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a shell's completion script.

    \b
    bash: add  eval "$(dubito completion bash)"  to ~/.bashrc
    zsh:  add  eval "$(dubito completion zsh)"   to ~/.zshrc
    fish: dubito completion fish > ~/.config/fish/completions/dubito.fish
    """
    root = context.find_root()
    complete = get_completion_class(shell)
    assert complete is not None
    say(complete(root.command, {}, str(root.info_name), "_DUBITO_COMPLETE").source())

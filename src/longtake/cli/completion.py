"""``longtake completion``."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from longtake.cli.options import debug

SHELLS = {
    "bash": 'eval "$(longtake completion bash)"    in ~/.bashrc',
    "zsh": 'eval "$(longtake completion zsh)"    in ~/.zshrc',
    "fish": "longtake completion fish > ~/.config/fish/completions/longtake.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(tuple(SHELLS)))
@debug
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script that completes commands in your shell.

    \b
    Example:
      eval "$(longtake completion bash)"    # put this line into ~/.bashrc
      longtake completion fish > ~/.config/fish/completions/longtake.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None, shell
    root = ctx.find_root().command
    click.echo(kind(root, {}, "longtake", "_LONGTAKE_COMPLETE").source())

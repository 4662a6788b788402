"""The command `setpoint`: its group, the options of all commands, and the list of the commands."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from setpoint.cli.definitions import controllers, fleet, resources, tools
from setpoint.cli.definitions.options import COOKIE_LOCATION, command_named
from setpoint.cli.entry import STORE_HELP, SUMMARY
from setpoint.core.values.messages import printable


class _Commands(click.Group):
    """All commands. An error of click repeats words of the command line: they are made printable."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with _printable_errors():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        with _printable_errors():
            return super().invoke(ctx)


@contextmanager
def _printable_errors() -> Iterator[None]:
    try:
        yield
    except click.UsageError as error:
        # Click itself writes a tab before each choice.
        if (text := error.format_message()) == (shown := printable(text.expandtabs(2))):
            raise
        raise click.UsageError(shown, error.ctx) from error


@click.group(cls=_Commands, help=SUMMARY, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--store", envvar="SETPOINT_STORE", metavar="URL", help=STORE_HELP)
@COOKIE_LOCATION
@click.pass_context
def main(context: click.Context, store: str | None, cookie_location: str) -> None:
    context.obj = (store, cookie_location)


@command_named("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    from click.shell_completion import get_completion_class

    from setpoint.cli.shell_scripts import use_own_scripts

    use_own_scripts()
    if (found := get_completion_class(shell)) is not None:
        click.echo(found(main, {}, "setpoint", "_SETPOINT_COMPLETE").source())


for _one in (*resources.COMMANDS, *fleet.COMMANDS, *controllers.COMMANDS, *tools.COMMANDS, completion):
    main.add_command(_one)

"""Commands for authors of manifests: whether they are valid, and what may be in them."""

from typing import Final

import click

from setpoint.cli.definitions.options import (
    FILES,
    NAMESPACE,
    PATHS,
    QUIET,
    command_named,
    exit_with,
    options_of,
    run_request,
)


@command_named("validate")
@options_of(FILES, PATHS, NAMESPACE)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "sarif", "github"]),
    default="text",
    help="The form; github is annotations of a workflow.",
)
@QUIET
@click.pass_context
def validate(context: click.Context, /, **options: object) -> None:
    from setpoint.cli.commands.authoring.validate import validate

    run_request(context, validate, options)


@command_named("schema")
@click.argument("targets", nargs=-1, metavar="[KIND]...")
@click.option(
    "-f",
    "--file",
    "manifests",
    multiple=True,
    metavar="PATH",
    help="The kinds of the manifests in a file or folder; - is standard input.",
)
@click.pass_context
def schema(context: click.Context, /, **options: object) -> None:
    from setpoint.cli.commands.authoring.schema import schema

    exit_with(context, schema, options)


COMMANDS: Final = (validate, schema)

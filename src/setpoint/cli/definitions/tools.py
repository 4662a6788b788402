"""Commands beside reconciliation: checks of manifests, the demo, the local cloud, Terraform's provider, the version."""

from typing import Final

import click

from setpoint import __version__
from setpoint.cli.definitions.options import (
    FILES,
    NAMESPACE,
    PATHS,
    PLUGINS,
    QUIET,
    TEXT_OR_JSON,
    begin_work,
    command_named,
    completed_by,
    exit_with,
    options_of,
    run_request,
)
from setpoint.cli.entry import COMMAND_HELP
from setpoint.core.values.messages import printable


@command_named("version")
def version() -> None:
    click.echo(f"setpoint {__version__}")


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
@click.argument("targets", nargs=-1, metavar="[KIND]...", shell_complete=completed_by("kinds"))
@click.option(
    "-f",
    "--file",
    "manifests",
    multiple=True,
    metavar="PATH",
    shell_complete=completed_by("files"),
    help="The kinds of the manifests in a file or folder; - is standard input.",
)
@click.pass_context
def schema(context: click.Context, /, **options: object) -> None:
    from setpoint.cli.commands.authoring.schema import schema

    exit_with(context, schema, options)


@command_named("demo")
@click.option("--svg", type=click.Path(dir_okay=False, writable=True), help="Also draw the session as an SVG file.")
def demo(svg: str | None) -> None:
    from setpoint.cli.commands.demo import run_demo

    begin_work()
    run_demo(svg)


@command_named("local-cloud")
@click.option("--port", default=0, show_default=True, help="0 takes any that is free.")
@click.option("--state", type=click.Path(dir_okay=False), help="Keep everything in this file across restarts.")
def local_cloud(port: int, state: str | None) -> None:
    from pathlib import Path

    from setpoint.errors import SetpointError
    from setpoint.localcloud.server import serve

    begin_work()
    try:
        serve(port=port, state=None if state is None else Path(state))
    except SetpointError as error:
        raise click.ClickException(printable(str(error))) from error


@click.group("terraform", help=COMMAND_HELP["terraform"])
def terraform() -> None:
    pass


@terraform.command("install")
@options_of(PLUGINS, TEXT_OR_JSON)
@click.pass_context
def terraform_install(context: click.Context, /, **options: object) -> None:
    """Put the provider where terraform init and tofu init find it. Touches no other version."""
    from setpoint.cli.commands.terraform import install

    exit_with(context, install, options)


@terraform.command("uninstall")
@options_of(PLUGINS, TEXT_OR_JSON)
@click.option("--version", metavar="VERSION", help="This one, as Terraform writes it: that of setpoint otherwise.")
@click.pass_context
def terraform_uninstall(context: click.Context, /, **options: object) -> None:
    """Remove what terraform install made. Touches no other version."""
    from setpoint.cli.commands.terraform import uninstall

    exit_with(context, uninstall, options)


@click.group("new", help=COMMAND_HELP["new"])
def new() -> None:
    pass


@new.command("kind")
@click.argument("name", metavar="NAME")
@click.option("--group", default="example.com", show_default=True, help="The API group: a domain of your own.")
@click.option("--to", type=click.Path(), metavar="DIR", help="The folder to make.  [default: ./setpoint-NAME]")
@TEXT_OR_JSON
@click.pass_context
def new_kind(context: click.Context, /, **options: object) -> None:
    """Write a package with the kind NAME. It has types and verbs, tests that pass as they are, and a page."""
    from setpoint.cli.commands.authoring.new import new_kind as write_package

    exit_with(context, write_package, options)


COMMANDS: Final = (version, validate, schema, demo, local_cloud, terraform, new)

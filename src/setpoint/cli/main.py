"""The click definitions of all commands. Each command imports its module when it runs, so that `--help` stays fast."""

from collections.abc import Callable
from typing import TypeVar

import click

from setpoint import __version__

F = TypeVar("F", bound=Callable[..., None])

_FILES = click.option(
    "-f", "--file", "files", multiple=True, metavar="PATH", help="A file, a folder, or - for standard input."
)
_TARGETS = click.argument("targets", nargs=-1, metavar="[KIND/NAME]...")
_WAIT = click.option("--wait/--no-wait", default=True, help="Wait until everything is settled, blocked or failed.")
_TIMEOUT = click.option(
    "--timeout", default="5m", metavar="TIME", show_default=True, help="How long to wait: 90s, 5m, 1h30m."
)
_NAMESPACE = click.option("-n", "--namespace", default="default", show_default=True, help="The namespace of KIND/NAME.")
_OUTPUT = click.option(
    "-o", "--output", type=click.Choice(["table", "wide", "yaml", "json"]), default="table", help="The form."
)
_WATCH = click.option("-w", "--watch", is_flag=True, help="Go on, and print every change.")
_PLUGINS = click.option(
    "--plugins", type=click.Path(), metavar="DIR", help="Where plugins are.  [default: ~/.terraform.d/plugins]"
)
_TEXT_OR_JSON = click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="The form.")


def _options(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator, in the order given."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--store", envvar="SETPOINT_STORE", metavar="URL", help="Where resources are kept: sqlite:///path.")
@click.option("--cookie-location", type=click.Choice(["status", "annotation"]), default="status", hidden=True)
@click.pass_context
def main(context: click.Context, store: str | None, cookie_location: str) -> None:
    """Keeps cloud and Kubernetes resources as they were declared."""
    context.obj = (store, cookie_location)


@main.command()
def version() -> None:
    """Print the version."""
    click.echo(f"setpoint {__version__}")


@main.command()
@click.option("--svg", type=click.Path(dir_okay=False, writable=True), help="Also draw the story as a picture.")
def demo(svg: str | None) -> None:
    """Tell in one minute what setpoint tells apart. Touches nothing outside this process."""
    from setpoint.cli.commands.demo import run_demo

    run_demo(svg)


@main.command()
@_options(_FILES, _WAIT, _TIMEOUT)
@click.pass_context
def apply(context: click.Context, /, **options: object) -> None:
    """Declare what is in PATH, and make it so. Exit 0 settled, 1 failed, 3 still waiting or blocked."""
    _run("apply", context, options)


@main.command()
@_options(_FILES, _TARGETS, _NAMESPACE, _OUTPUT)
@click.option("--all", "everything", is_flag=True, help="Everything in the store, with and without cookies.")
@click.option("--world", metavar="FILE", help="The same of a world that setpoint record made; nobody is asked.")
@click.option(
    "--as",
    "variants",
    multiple=True,
    metavar="KIND=WAY",
    help="With these, handle KIND stateless, stateful, or as once.",
)
@click.pass_context
def plan(context: click.Context, /, **options: object) -> None:
    """Show what a step would write, and why; writes nothing. Exit 0 nothing to do, 2 changes, 1 error."""
    if not (options["everything"] or options["world"] or options["variants"]):
        _run("plan", context, options)
    from setpoint.cli.commands.plan_all import plan_all

    store, cookies = context.obj
    context.exit(plan_all({**options, "store": store, "cookies": cookies}))


@main.command()
@click.option("--to", required=True, metavar="FILE", help="Write it there, for its owner alone.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", help="The form.")
@click.pass_context
def record(context: click.Context, /, **options: object) -> None:
    """Keep everything that setpoint plan --all reads in one file, without Secrets, to look at again elsewhere."""
    from setpoint.cli.commands.plan_all import record_world

    store, cookies = context.obj
    context.exit(record_world({**options, "store": store, "cookies": cookies}))


@main.command()
@click.option(
    "--from", "origin", required=True, type=click.Choice(["config-connector"]), help="Who looks after them now."
)
@click.option("--context", metavar="CONTEXT", help="The cluster that they are in; the current context otherwise.")
@click.option("-n", "--namespace", default=None, help="This namespace only; --hand-over and --finish need one.")
@click.option("--hand-over", is_flag=True, help="Pause Config Connector in the namespace, then declare all of it here.")
@click.option("--accept-changes", is_flag=True, help="Hand over also what will be written to.")
@click.option("--finish", is_flag=True, help="Once theirs is uninstalled: have nothing of it hold a resource any more.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", help="The form.")
@click.pass_context
def migrate(context: click.Context, /, **options: object) -> None:
    """Show what taking over from another controller would write; hand over. Exit 0 nothing, 2 changes, 1 error."""
    from setpoint.cli.commands.migrate import migrate

    store, cookies = context.obj
    # Its namespace is that of the other side.
    context.exit(migrate({**options, "store": store, "cookies": cookies}))


@main.command("verify-upgrade")
@click.option("--baseline", required=True, metavar="SIDE", help="What runs now: a version, or a virtual environment.")
@click.option(
    "--candidate", default="this", show_default=True, metavar="SIDE", help="What is to run; this is this very version."
)
@click.option("--world", metavar="FILE", help="A world that setpoint record made; otherwise one is recorded now.")
@click.option(
    "--environments",
    default=".setpoint/environments",
    show_default=True,
    metavar="DIR",
    help="Where the virtual environment of each version is, by its name.",
)
@click.option("--install", is_flag=True, help="Have pip install the versions that are not there yet.")
@click.option("--junit", metavar="FILE", help="Also write a report for CI systems there.")
@click.option("--markdown", metavar="FILE", help="Also write a report for people there.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", help="The form.")
@click.pass_context
def verify_upgrade(context: click.Context, /, **options: object) -> None:
    """Plan one world with two versions, and compare. Exit 0 nothing new is written, 2 something is, 1 broken.

    SIDE may go on with ,KIND=stateless or ,KIND=stateful or ,KIND=REVISION, to handle a kind otherwise.
    """
    from setpoint.cli.commands.verify_upgrade import verify

    store, cookies = context.obj
    context.exit(verify({**options, "store": store, "cookies": cookies}))


@main.command()
@_options(_FILES, _TARGETS, _NAMESPACE, _WAIT, _TIMEOUT)
@click.pass_context
def reconcile(context: click.Context, /, **options: object) -> None:
    """Look now, and try again where a service would not follow."""
    _run("reconcile", context, options)


@main.command()
@_options(_FILES, _TARGETS, _NAMESPACE, _WAIT, _TIMEOUT)
@click.pass_context
def delete(context: click.Context, /, **options: object) -> None:
    """Delete resources and what they stand for."""
    _run("delete", context, options)


@main.command()
@_options(_TARGETS, _NAMESPACE, _OUTPUT, _WATCH)
@click.option("-A", "--all-namespaces", is_flag=True, help="Not only one namespace.")
@click.pass_context
def get(context: click.Context, /, **options: object) -> None:
    """List resources, or print some of them."""
    _run("get", context, options)


@main.command()
@_options(_TARGETS, _NAMESPACE, _OUTPUT, _WATCH)
@click.pass_context
def describe(context: click.Context, /, **options: object) -> None:
    """Everything about a resource."""
    _run("describe", context, options)


@main.command()
@_options(_TARGETS, _NAMESPACE, _OUTPUT, _WATCH)
@click.pass_context
def explain(context: click.Context, /, **options: object) -> None:
    """Why the last step did what it did: what moved, which fields, which rule."""
    _run("explain", context, options)


@main.command()
@_options(_TARGETS, _NAMESPACE, _OUTPUT, _WATCH)
@click.pass_context
def events(context: click.Context, /, **options: object) -> None:
    """What happened to resources, oldest first."""
    _run("events", context, options)


@main.command()
@click.option("--kinds", default="", metavar="KIND,...", help="Handle these kinds only.")
@click.option(
    "--concurrency",
    type=click.IntRange(1, 1000),
    default=20,
    show_default=True,
    help="How many resources of one kind are worked on at once.",
)
@click.option(
    "--shards",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="Parts in which processes share the resources of a cluster.",
)
@click.option("--identity", metavar="NAME", help="What this process is called among them: its host's name otherwise.")
@click.option("--metrics", metavar="[HOST]:PORT", help="Serve /healthz, /readyz and /metrics there.")
@click.option("--log-format", type=click.Choice(["auto", "human", "json"]), default="auto", help="The form of the log.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="The least that is logged.",
)
@click.option(
    "--grace", default="25s", metavar="TIME", show_default=True, help="How long steps may take to finish at the end."
)
@click.option("--live", is_flag=True, help="Draw what it does on the terminal; q ends it.")
@click.pass_context
def run(context: click.Context, /, **options: object) -> None:
    """Keep everything as declared, until SIGTERM or Ctrl-C."""
    from setpoint.cli.commands.run import run_until_stopped

    store, cookies = context.obj
    context.exit(run_until_stopped({**options, "store": store, "cookies": cookies}))


@main.command()
@click.argument("targets", nargs=-1, metavar="[KIND]...")
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", help="The form.")
@click.pass_context
def crds(context: click.Context, /, **options: object) -> None:
    """Print the CustomResourceDefinitions of kinds, for kubectl apply --server-side -f -."""
    _run("crds", context, options)


@main.command()
@click.option("--dry-run", is_flag=True, help="Only print what would be applied, for kubectl or a repository.")
@click.option("-n", "--namespace", default="setpoint-system", show_default=True, help="Where the pods are.")
@click.option("--image", default=f"setpoint:{__version__}", show_default=True, help="What they run.")
@click.option("--replicas", type=click.IntRange(1, 100), default=2, show_default=True, help="How many there are.")
@click.option("--shards", type=click.IntRange(1, 1000), default=8, show_default=True, help="Parts of the work.")
@click.option("--watch-namespace", metavar="NAMESPACE", help="Look after this one only, with no rights beyond it.")
@click.option("--kinds", default="", metavar="KIND,...", help="Handle these kinds only, with no rights for others.")
@click.option("--env", metavar="NAME=VALUE", multiple=True, help="A variable for the pods; again for another.")
@click.option("--crds/--no-crds", default=True, help="The kinds, too, and what people may do with them.")
@click.option("--force", is_flag=True, help="Take over fields that somebody else has set.")
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", help="The form of --dry-run.")
@click.pass_context
def install(context: click.Context, /, **options: object) -> None:
    """Install setpoint into the cluster of the current kubeconfig context, or upgrade it."""
    from setpoint.cli.commands.install import install

    store, cookies = context.obj
    context.exit(install({**options, "store": store, "cookies": cookies}))


@main.command()
@_options(_TARGETS, _NAMESPACE)
@click.option("-A", "--all-namespaces", is_flag=True, help="Not only one namespace.")
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", help="The form.")
@click.option("--with-secrets", is_flag=True, help="Their Secrets, too, in clear text; needs --to.")
@click.option("--pause", is_flag=True, help="From here on, do nothing for them from this store.")
@click.option("--to", metavar="FILE", help="Write it there, for its owner alone; - is standard output.")
@click.pass_context
def export(context: click.Context, /, **options: object) -> None:
    """Print resources, and what is remembered of them, for setpoint import."""
    from setpoint.cli.commands.transfer import export_resources

    store, cookies = context.obj
    context.exit(export_resources({**options, "store": store, "cookies": cookies}))


@main.command()
@_options(_FILES, _TARGETS, _NAMESPACE)
@click.option("-A", "--all-namespaces", is_flag=True, help="Not only one namespace.")
@click.option("-o", "--output", type=click.Choice(["text", "dot", "mermaid", "json"]), default="text", help="The form.")
@click.pass_context
def graph(context: click.Context, /, **options: object) -> None:
    """Draw who needs whom, and how it stands with each. Exit 1 when they wait for each other."""
    from setpoint.cli.commands.graph import draw_graph

    store, cookies = context.obj
    context.exit(draw_graph({**options, "store": store, "cookies": cookies}))


@main.command("import")
@_FILES
@click.option("--overwrite", is_flag=True, help="Give up what is here already and says something else.")
@click.pass_context
def import_(context: click.Context, /, **options: object) -> None:
    """Go on with resources where another store left off. Touches nothing that they stand for."""
    from setpoint.cli.commands.transfer import import_resources

    store, cookies = context.obj
    context.exit(import_resources({**options, "store": store, "cookies": cookies}))


@main.command("local-cloud")
@click.option("--port", default=0, show_default=True, help="0 takes any that is free.")
@click.option("--state", type=click.Path(dir_okay=False), help="Keep everything in this file across restarts.")
def local_cloud(port: int, state: str | None) -> None:
    """Serve a strict local Cloud SQL and Cloud Storage, for demos and tests."""
    from pathlib import Path

    from setpoint.errors import SetpointError
    from setpoint.localcloud.server import serve

    try:
        serve(port=port, state=None if state is None else Path(state))
    except SetpointError as error:
        raise click.ClickException(str(error)) from error


@main.group()
def terraform() -> None:
    """Use setpoint as a provider of Terraform and OpenTofu."""


@terraform.command("install")
@_options(_PLUGINS, _TEXT_OR_JSON)
@click.pass_context
def terraform_install(context: click.Context, /, **options: object) -> None:
    """Put the provider where terraform init and tofu init find it. Touches no other version."""
    from setpoint.cli.commands.terraform import install

    store, cookies = context.obj
    context.exit(install({**options, "store": store, "cookies": cookies}))


@terraform.command("uninstall")
@_options(_PLUGINS, _TEXT_OR_JSON)
@click.option("--version", metavar="VERSION", help="This one, as Terraform writes it: that of setpoint otherwise.")
@click.pass_context
def terraform_uninstall(context: click.Context, /, **options: object) -> None:
    """Remove what terraform install made. Touches no other version."""
    from setpoint.cli.commands.terraform import uninstall

    store, cookies = context.obj
    context.exit(uninstall({**options, "store": store, "cookies": cookies}))


@main.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script: eval "$(setpoint completion bash)"."""
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(main, {}, "setpoint", "_SETPOINT_COMPLETE").source())


def _run(name: str, context: click.Context, options: dict[str, object]) -> None:
    from setpoint.cli.commands.resources import run_named

    store, cookies = context.obj
    context.exit(run_named(name, {**options, "store": store, "cookies": cookies}))

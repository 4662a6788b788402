"""The click definitions of all commands. Each command imports its module when it runs, so that `--help` stays fast.

The help texts are in `entry`, where `setpoint --help` is answered without click.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import click

from setpoint import __version__
from setpoint.cli.entry import COMMAND_HELP, STORE_HELP, SUMMARY, TENANCY_HELP
from setpoint.core.values.messages import printable

if TYPE_CHECKING:
    from setpoint.cli.request import CommandRequest

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
_ALL_NAMESPACES = click.option("-A", "--all-namespaces", is_flag=True, help="Not only one namespace.")
_WATCH = click.option("-w", "--watch", is_flag=True, help="Go on, and print every change.")
_SHOW_SECRETS = click.option("--show-secrets", is_flag=True, help="Print secret values, too.")
_PLUGINS = click.option(
    "--plugins", type=click.Path(), metavar="DIR", help="Where plugins are.  [default: ~/.terraform.d/plugins]"
)
_TENANCY = click.option("--tenancy", type=click.Choice(["strict", "single"]), help=TENANCY_HELP)
_TABLE_OR_JSON = click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", help="The form.")
_TEXT_OR_JSON = click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="The form.")


def _options(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator, in the order given."""
    return lambda command: reduce(lambda made, option: option(made), reversed(options), command)


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
        if (text := error.format_message()) == printable(text):
            raise
        raise click.UsageError(printable(text), error.ctx) from error


@click.group(cls=_Commands, help=SUMMARY, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--store", envvar="SETPOINT_STORE", metavar="URL", help=STORE_HELP)
@click.option("--cookie-location", type=click.Choice(["status", "annotation"]), default="status", hidden=True)
@click.pass_context
def main(context: click.Context, store: str | None, cookie_location: str) -> None:
    context.obj = (store, cookie_location)


def _command(name: str) -> Callable[[Callable[..., None]], click.Command]:
    """Declares the command `name`, with its help text."""
    return main.command(name, help=COMMAND_HELP[name])


def _exit(context: click.Context, command: Callable[[dict[str, Any]], int], options: dict[str, object]) -> None:
    """Ends the process with the exit code of `command`."""
    store, cookies = context.obj
    context.exit(command({**options, "store": store, "cookies": cookies}))


def _run(
    context: click.Context, command: Callable[["CommandRequest"], Awaitable[int]], options: dict[str, object]
) -> None:
    """Ends the process with the exit code of a command that takes a request."""
    from setpoint.cli.request import run_command

    _exit(context, lambda all_options: run_command(command, all_options), options)


@_command("version")
def version() -> None:
    click.echo(f"setpoint {__version__}")


@_command("demo")
@click.option("--svg", type=click.Path(dir_okay=False, writable=True), help="Also draw the session as an SVG file.")
def demo(svg: str | None) -> None:
    from setpoint.cli.commands.demo import run_demo

    run_demo(svg)


def _declare(name: str, module: str, *options: Callable[[Callable[..., None]], Callable[..., None]]) -> click.Command:
    """Declares the command `name` with these options: the function of that name in a module of `commands`."""

    @_command(name)
    @_options(*options)
    @click.pass_context
    def command(context: click.Context, /, **chosen: object) -> None:
        _run(context, getattr(import_module(f"setpoint.cli.commands.{module}"), name), chosen)

    return command


apply = _declare("apply", "apply", _FILES, _WAIT, _TIMEOUT)
reconcile, delete = (
    _declare(name, "apply", _FILES, _TARGETS, _NAMESPACE, _WAIT, _TIMEOUT) for name in ("reconcile", "delete")
)


@_command("plan")
@_options(_FILES, _TARGETS, _NAMESPACE, _OUTPUT)
@click.option("--all", "everything", is_flag=True, help="Everything in the store, with and without cookies.")
@click.option("--world", metavar="FILE", help="The same of a world that setpoint record made; no service is called.")
@click.option(
    "--as",
    "variants",
    multiple=True,
    metavar="KIND=WAY",
    help="With these, handle KIND stateless, stateful, or as an earlier REVISION did.",
)
@_TENANCY
@click.pass_context
def plan(context: click.Context, /, **options: object) -> None:
    if options["everything"] or options["world"] or options["variants"]:
        from setpoint.cli.commands.plan_all import plan_all

        _exit(context, plan_all, options)
    else:
        from setpoint.cli.commands.apply import plan

        _run(context, plan, options)


@_command("record")
@click.option("--to", required=True, metavar="FILE", help="Write it there, for its owner alone.")
@_options(_TABLE_OR_JSON, _TENANCY)
@click.pass_context
def record(context: click.Context, /, **options: object) -> None:
    from setpoint.cli.commands.plan_all import record_world

    _exit(context, record_world, options)


@_command("migrate")
@click.option(
    "--from",
    "origin",
    required=True,
    type=click.Choice(["config-connector"]),
    help="The controller that reconciles them now.",
)
@click.option("--context", metavar="CONTEXT", help="The cluster that they are in; the current context otherwise.")
@click.option("-n", "--namespace", default=None, help="This namespace only; --hand-over and --finish need one.")
@click.option("--hand-over", is_flag=True, help="Pause Config Connector in the namespace, then declare all of it here.")
@click.option("--accept-changes", is_flag=True, help="Hand over also resources that will be written to.")
@click.option("--finish", is_flag=True, help="Once Config Connector is uninstalled: remove its finalizers.")
@_options(_TABLE_OR_JSON, _TENANCY)
@click.pass_context
def migrate(context: click.Context, /, **options: object) -> None:
    from setpoint.cli.commands.migrate import migrate

    _exit(context, migrate, options)


@_command("verify-upgrade")
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
@_TABLE_OR_JSON
@click.pass_context
def verify_upgrade(context: click.Context, /, **options: object) -> None:
    from setpoint.cli.commands.verify_upgrade import verify

    _exit(context, verify, options)


get = _declare("get", "inspect", _TARGETS, _NAMESPACE, _OUTPUT, _WATCH, _SHOW_SECRETS, _ALL_NAMESPACES)
describe = _declare("describe", "inspect", _TARGETS, _NAMESPACE, _OUTPUT, _WATCH, _SHOW_SECRETS)
explain, events = (_declare(name, "inspect", _TARGETS, _NAMESPACE, _OUTPUT, _WATCH) for name in ("explain", "events"))


@_command("run")
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
@click.option(
    "--allow-cluster-address",
    "allowed_addresses",
    multiple=True,
    metavar="CIDR|HOST",
    help="Kubeconfigs in Secrets of a cluster may name it, though it is denied; again for another.",
)
@click.option(
    "--deny-cluster-address",
    "denied_addresses",
    multiple=True,
    metavar="CIDR|HOST",
    help="They may not, besides this machine, its network and the services around it; again for another.",
)
@_TENANCY
@click.pass_context
def run(context: click.Context, /, **options: object) -> None:
    from setpoint.cli.commands.run import run_until_stopped

    _exit(context, run_until_stopped, options)


@_command("crds")
@click.argument("targets", nargs=-1, metavar="[KIND]...")
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", help="The form.")
@click.pass_context
def crds(context: click.Context, /, **options: object) -> None:
    from setpoint.cli.commands.inspect import crds

    _run(context, crds, options)


@_command("install")
@click.option("--dry-run", is_flag=True, help="Only print what would be applied, for kubectl or a repository.")
@click.option("-n", "--namespace", default="setpoint-system", show_default=True, help="Where the pods are.")
@click.option("--image", default=f"setpoint:{__version__}", show_default=True, help="What they run.")
@click.option("--replicas", type=click.IntRange(1, 100), default=2, show_default=True, help="How many there are.")
@click.option("--shards", type=click.IntRange(1, 1000), default=8, show_default=True, help="Parts of the work.")
@click.option("--watch-namespace", metavar="NAMESPACE", help="Reconcile this one only, with no rights beyond it.")
@click.option("--kinds", default="", metavar="KIND,...", help="These kinds only; otherwise all but Trustee's.")
@_TENANCY
@click.option("--env", metavar="NAME=VALUE", multiple=True, help="A variable for the pods; again for another.")
@click.option("--crds/--no-crds", default=True, help="The CRDs, too, and the roles of their users.")
@click.option("--aggregate-kubernetes-objects", is_flag=True, help="The role edit may write KubernetesObjects, too.")
@click.option("--force", is_flag=True, help="Take over fields of another field manager.")
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", help="The form of --dry-run.")
@click.pass_context
def install(context: click.Context, /, **options: object) -> None:
    from setpoint.cli.commands.install import install

    _exit(context, install, options)


@_command("tenant")
@click.argument("tenant", metavar="NAMESPACE")
@click.option("--dry-run", is_flag=True, help="Only print what would be applied, for kubectl or a repository.")
@click.option("--kinds", default="", metavar="KIND,...", help="Rights for these kinds; otherwise all but Trustee's.")
@click.option("--service-account", default="setpoint", show_default=True, metavar="NAME", help="The account.")
@click.option("--role", metavar="CLUSTERROLE", help="That of KubernetesObjects; '' is none.  [default: edit]")
@click.option("--project", default="", metavar="ID", help="The Google project of the namespace.")
@click.option("--google-service-account", default="", metavar="EMAIL", help="The Google account of the namespace.")
@click.option("--operator-namespace", default="setpoint-system", show_default=True, help="Where setpoint runs.")
@click.option("--operator-service-account", default="setpoint", show_default=True, help="The account it runs as.")
@click.option("--force", is_flag=True, help="Take over fields of another field manager.")
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", help="The form of --dry-run.")
@click.pass_context
def tenant(context: click.Context, /, **options: object) -> None:
    from setpoint.cli.commands.install import set_up_tenant

    _exit(context, set_up_tenant, options)


@_command("export")
@_options(_TARGETS, _NAMESPACE)
@_ALL_NAMESPACES
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", help="The form.")
@click.option("--with-secrets", is_flag=True, help="Their Secrets and passwords, too, in clear text; needs --to.")
@click.option("--pause", is_flag=True, help="From here on, pause them in this store.")
@click.option("--to", metavar="FILE", help="Write it there, for its owner alone; - is standard output.")
@click.pass_context
def export(context: click.Context, /, **options: object) -> None:
    from setpoint.cli.commands.transfer import export_resources

    _exit(context, export_resources, options)


@_command("graph")
@_options(_FILES, _TARGETS, _NAMESPACE)
@_ALL_NAMESPACES
@click.option("-o", "--output", type=click.Choice(["text", "dot", "mermaid", "json"]), default="text", help="The form.")
@click.pass_context
def graph(context: click.Context, /, **options: object) -> None:
    from setpoint.cli.commands.graph import draw_graph

    _exit(context, draw_graph, options)


@_command("import")
@_FILES
@click.option("--overwrite", is_flag=True, help="Replace what is here already and differs.")
@click.pass_context
def import_(context: click.Context, /, **options: object) -> None:
    from setpoint.cli.commands.transfer import import_resources

    _exit(context, import_resources, options)


@_command("local-cloud")
@click.option("--port", default=0, show_default=True, help="0 takes any that is free.")
@click.option("--state", type=click.Path(dir_okay=False), help="Keep everything in this file across restarts.")
def local_cloud(port: int, state: str | None) -> None:
    from pathlib import Path

    from setpoint.errors import SetpointError
    from setpoint.localcloud.server import serve

    try:
        serve(port=port, state=None if state is None else Path(state))
    except SetpointError as error:
        raise click.ClickException(printable(str(error))) from error


@main.group(help=COMMAND_HELP["terraform"])
def terraform() -> None:
    pass


@terraform.command("install")
@_options(_PLUGINS, _TEXT_OR_JSON)
@click.pass_context
def terraform_install(context: click.Context, /, **options: object) -> None:
    """Put the provider where terraform init and tofu init find it. Touches no other version."""
    from setpoint.cli.commands.terraform import install

    _exit(context, install, options)


@terraform.command("uninstall")
@_options(_PLUGINS, _TEXT_OR_JSON)
@click.option("--version", metavar="VERSION", help="This one, as Terraform writes it: that of setpoint otherwise.")
@click.pass_context
def terraform_uninstall(context: click.Context, /, **options: object) -> None:
    """Remove what terraform install made. Touches no other version."""
    from setpoint.cli.commands.terraform import uninstall

    _exit(context, uninstall, options)


@_command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    from click.shell_completion import get_completion_class

    if (found := get_completion_class(shell)) is not None:
        click.echo(found(main, {}, "setpoint", "_SETPOINT_COMPLETE").source())

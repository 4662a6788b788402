"""Commands that run the controllers, and set up a cluster for them."""

from typing import Final

import click

from setpoint import __version__
from setpoint.cli.definitions.options import (
    ADOPT,
    ALLOW_EMPTY,
    COOKIE_PLACES,
    NAMESPACE,
    TENANCY,
    command_named,
    completed_by,
    exit_with,
    options_of,
    run_request,
)


@command_named("run")
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
@click.option(
    "--audit", metavar="FILE", help="Append who asked, what was sent and what came back; - is standard output."
)
@click.option(
    "--notify",
    "notify",
    multiple=True,
    metavar="[FORMAT+]URL|@FILE",
    help="Send problems there, once: as webhook, slack, cloudevents or cloudevents-binary; again for another.",
)
@click.option("--notify-secret-file", metavar="FILE", help="Sign these messages with the secret in it (HMAC-SHA256).")
@click.option("--dashboard", metavar="[HOST]:PORT", help="Serve the dashboard there.")
@click.option("--allow-actions", is_flag=True, help="Resources may be reconciled, paused and resumed on the dashboard.")
@click.option("--plan/--no-plan", default=True, help="Plans of all resources may be asked for on the dashboard.")
@click.option(
    "--dashboard-peers",
    multiple=True,
    metavar="HOST:PORT",
    help="Processes of the same cluster that serve the dashboard: what they know is shown, too; again for another.",
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
@click.option(
    "-f",
    "--file",
    "folders",
    multiple=True,
    metavar="FOLDER",
    shell_complete=completed_by("files"),
    help="Keep what this folder declares: a set.",
)
@click.option(
    "--git",
    "repositories",
    multiple=True,
    metavar="PATH[@REF[:FOLDER]]",
    shell_complete=completed_by("files"),
    help="The same of the commits of a local repository; again for another set.",
)
@click.option(
    "--set",
    "set_name",
    metavar="NAME",
    shell_complete=completed_by("sets"),
    help="The name of the set: that of the folder otherwise.",
)
@click.option(
    "--poll", default="2s", metavar="TIME", show_default=True, help="How often folders and repositories are looked at."
)
@options_of(ADOPT, ALLOW_EMPTY, NAMESPACE)
@TENANCY
@click.pass_context
def run(context: click.Context, /, **options: object) -> None:
    from setpoint.cli.commands.run import run_until_stopped

    exit_with(context, run_until_stopped, options)


@command_named("dashboard")
@click.option(
    "--listen", default="127.0.0.1:0", metavar="HOST:PORT", show_default=True, help="Of this machine; 0 is any port."
)
@click.option("--recording", metavar="FILE", help="Show a world that setpoint record made, in the place of a store.")
@click.option("--upgrade-report", metavar="FILE", help="Show this report of setpoint verify-upgrade -o json, too.")
@click.option("--plan/--no-plan", default=True, help="Plans of all resources may be asked for there.")
@click.option("--allow-actions", is_flag=True, help="Resources may be reconciled, paused and resumed there.")
@click.option("--open/--no-open", default=True, help="Open it in a browser, on a terminal.")
@click.pass_context
def dashboard(context: click.Context, /, **options: object) -> None:
    from setpoint.cli.dashboard import serve_dashboard

    exit_with(context, serve_dashboard, options)


@command_named("crds")
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
@click.option("--service", "services", multiple=True, metavar="NAME", help="The kinds of a service of Google's.")
@click.option("--all", "is_all", is_flag=True, help="All, with those of the catalogue of Google's kinds.")
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", help="The form.")
@click.pass_context
def crds(context: click.Context, /, **options: object) -> None:
    from setpoint.cli.commands.authoring.crds import crds

    exit_with(context, crds, options)


@command_named("kinds")
@click.argument("targets", nargs=-1, metavar="[KIND[.FIELD]]...", shell_complete=completed_by("kind_fields"))
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "wide", "name", "yaml", "json", "markdown"]),
    default="table",
    help="The form; markdown is a page for each.",
)
@click.pass_context
def kinds(context: click.Context, /, **options: object) -> None:
    from setpoint.cli.commands.authoring.kinds import kinds

    run_request(context, kinds, options)


@command_named("install")
@click.option("--dry-run", is_flag=True, help="Only print what would be applied, for kubectl or a repository.")
@click.option("-n", "--namespace", default="setpoint-system", show_default=True, help="Where the pods are.")
@click.option("--image", default=f"setpoint:{__version__}", show_default=True, help="What they run.")
@click.option("--replicas", type=click.IntRange(1, 100), default=2, show_default=True, help="How many there are.")
@click.option("--shards", type=click.IntRange(1, 1000), default=8, show_default=True, help="Parts of the work.")
@click.option("--watch-namespace", metavar="NAMESPACE", help="Reconcile this one only, with no rights beyond it.")
@click.option(
    "--kinds",
    default="",
    metavar="KIND,...",
    help="These kinds only; otherwise all but Trustee's, IAMServiceAccountKey and the catalogue's.",
)
@TENANCY
@click.option(
    "--cookie-location", type=COOKIE_PLACES, default="status", show_default=True, help="Where cookies are kept."
)
@click.option("--env", metavar="NAME=VALUE", multiple=True, help="A variable for the pods; again for another.")
@click.option(
    "--notify-secret", metavar="NAME", help="The Secret whose key addresses says who is told of problems, as --notify."
)
@click.option("--dashboard", is_flag=True, help="Serve the dashboard in the cluster, for its users.")
@click.option("--crds/--no-crds", default=True, help="The CRDs, too, and the roles of their users.")
@click.option("--aggregate-kubernetes-objects", is_flag=True, help="The role edit may write KubernetesObjects, too.")
@click.option("--force", is_flag=True, help="Take over fields of another field manager.")
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", help="The form of --dry-run.")
@click.pass_context
def install(context: click.Context, /, **options: object) -> None:
    from setpoint.cli.commands.install import install

    exit_with(context, install, options)


@command_named("tenant")
@click.argument("tenant", metavar="NAMESPACE")
@click.option("--dry-run", is_flag=True, help="Only print what would be applied, for kubectl or a repository.")
@click.option("--kinds", default="", metavar="KIND,...", help="Rights for these kinds; otherwise as install has it.")
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

    exit_with(context, set_up_tenant, options)


COMMANDS: Final = (run, dashboard, crds, kinds, install, tenant)

"""Commands about everything in a store: recordings, upgrades, migrations, moves to another store, backups."""

from typing import Final

import click

from setpoint.cli.definitions.options import (
    ALL_NAMESPACES,
    FIELD_SELECTOR,
    FILES,
    IMPORT_FORM,
    NAMESPACE,
    QUIET,
    SELECTOR,
    TABLE_OR_JSON,
    TARGETS,
    TENANCY,
    TEXT_OR_JSON,
    command_named,
    completed_by,
    exit_with,
    options_of,
)


@command_named("record")
@click.option("--to", required=True, metavar="FILE", help="Write it there, for its owner alone.")
@options_of(TABLE_OR_JSON, TENANCY)
@click.pass_context
def record(context: click.Context, /, **options: object) -> None:
    from setpoint.cli.commands.plan_all import record_world

    exit_with(context, record_world, options)


@command_named("migrate")
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
@options_of(TABLE_OR_JSON, TENANCY)
@click.pass_context
def migrate(context: click.Context, /, **options: object) -> None:
    from setpoint.cli.commands.migrate import migrate

    exit_with(context, migrate, options)


@command_named("verify-upgrade")
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
@TABLE_OR_JSON
@click.pass_context
def verify_upgrade(context: click.Context, /, **options: object) -> None:
    from setpoint.cli.commands.verify_upgrade import verify

    exit_with(context, verify, options)


@command_named("export")
@options_of(TARGETS, NAMESPACE)
@ALL_NAMESPACES
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", help="The form.")
@click.option("--with-secrets", is_flag=True, help="Their Secrets and passwords, too, in clear text; needs --to.")
@click.option("--pause", is_flag=True, help="From here on, pause them in this store.")
@click.option("--to", metavar="FILE", help="Write it there, for its owner alone; - is standard output.")
@click.pass_context
def export(context: click.Context, /, **options: object) -> None:
    from setpoint.cli.commands.transfer import export_resources

    exit_with(context, export_resources, options)


@command_named("import")
@options_of(FILES)
@click.argument("paths", nargs=-1, metavar="[KIND | PATH]...", shell_complete=completed_by("kinds"))
@click.option("--overwrite", is_flag=True, help="Of an export: replace what is here already and differs.")
@click.option("--project", envvar="GOOGLE_CLOUD_PROJECT", metavar="PROJECT", help="Write manifests of its objects.")
@click.option("--all", "everything", is_flag=True, help="Those of every kind that can be listed.")
@click.option(
    "--location", "locations", multiple=True, metavar="PLACE,...", help="Regions and zones to look in, too; - is all."
)
@click.option("--parent", metavar="PARENT", help="What is in no project: organizations/1, folders/2.")
@options_of(SELECTOR, FIELD_SELECTOR, NAMESPACE)
@click.option(
    "--to",
    metavar="FOLDER",
    shell_complete=completed_by("files"),
    help="Write files there; to standard output otherwise.",
)
@click.option("--by", type=click.Choice(["object", "kind"]), default="object", help="A file for each.")
@click.option("--force", is_flag=True, help="Replace files that are there and differ.")
@options_of(IMPORT_FORM, QUIET)
@click.pass_context
def import_(context: click.Context, /, **options: object) -> None:
    from setpoint.cli.commands.authoring.import_live import chosen_import

    exit_with(context, chosen_import(options), options)


_FILE: Final = click.argument("file", metavar="FILE", shell_complete=completed_by("files"))


@command_named("backup")
@_FILE
@click.option("--force", is_flag=True, help="Replace FILE if there is one.")
@TEXT_OR_JSON
@click.pass_context
def backup(context: click.Context, /, **options: object) -> None:
    from setpoint.cli.commands.operating.store_backup import backup_store

    exit_with(context, backup_store, options)


@command_named("restore")
@_FILE
@TEXT_OR_JSON
@click.pass_context
def restore(context: click.Context, /, **options: object) -> None:
    from setpoint.cli.commands.operating.store_backup import restore_store

    exit_with(context, restore_store, options)


@command_named("doctor")
@click.option(
    "--only",
    multiple=True,
    metavar="CHECK,...",
    help="Only store, disk, clock, credentials, endpoints, rights, crds, versions or process.",
)
@click.option("--as", "acting_as", metavar="USER", help="In a cluster: the rights of this user, by impersonation.")
@click.option("--timeout", default="10s", metavar="TIME", show_default=True, help="How long each check may take.")
@TEXT_OR_JSON
@click.pass_context
def doctor(context: click.Context, /, **options: object) -> None:
    from setpoint.cli.commands.operating.doctor import doctor

    exit_with(context, doctor, options)


COMMANDS: Final = (record, migrate, verify_upgrade, export, import_, backup, restore, doctor)

"""`setpoint export` and `setpoint import`: transfer of resources and their state from one store to another."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from rich.text import Text

from setpoint import __version__
from setpoint.app import StoreAccess, dry_run_apply, is_shared_store, open_engine, store_file
from setpoint.cli.atomic_files import write_private_file
from setpoint.cli.request import CommandRequest, run_command
from setpoint.cli.views.terminal import error_console
from setpoint.core.values.canonical import canonical
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_limits import excess_of
from setpoint.core.values.json_types import JsonObject
from setpoint.core.values.paths import Path as FieldPath
from setpoint.core.values.yaml_documents import YamlDocument, read_documents, write_document
from setpoint.engine.context import EngineContext
from setpoint.engine.ports import ResourceQuery
from setpoint.engine.resource import SECRET, Resource, ResourceRef
from setpoint.engine.transfer.export_format import (
    ExportedResource,
    ExportHeader,
    StoreExport,
    export_documents,
    read_export,
)
from setpoint.engine.transfer.exporter import gather_export, is_paused_by_export, pause_for_export
from setpoint.engine.transfer.importer import ImportedResource, check_import
from setpoint.errors import ManifestInvalid, StoreError, UserError
from setpoint.library.executors import has_controller
from setpoint.library.manifests.reading import read_texts
from setpoint.library.outcome import ExitCode
from setpoint.library.targets import matches_targets, parse_target, require_targets_found

_STDOUT: Final = "-"
_CONTROLLER_RUNS: Final = (
    "a controller is running for this store: this is a copy of one moment. To move, stop it, and use --pause"
)
_NOT_PAUSED: Final = (
    "In the store they came from they are not paused: two stores would reconcile the same objects. Run no controller "
    "for that store any more, and put it away; `setpoint delete` there would delete the objects"
)
_OWNERS_SECRETS: Final = (
    "the Secrets of owners are not exported, and keys that were generated for one are generated anew elsewhere: "
    "--with-secrets exports them"
)
_HIDDEN: Final = "its secret values are left out, and an import refuses it without them: --with-secrets exports them"
_PAUSED: Final = "In the store they came from they are paused: nothing is done for them from there"


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """The options of `setpoint export`, checked."""

    with_secrets: bool
    pause: bool
    to: str

    @staticmethod
    def of(options: dict[str, Any]) -> "ExportOptions":
        """The options of a command line; UserError for a combination that makes no sense."""
        if options["with_secrets"] and options["to"] is None:
            raise UserError(
                "--with-secrets writes passwords in clear text: name a file with --to, which only you can read then, "
                "or write --to - to pipe it on"
            )
        return ExportOptions(options["with_secrets"], options["pause"], options["to"] or _STDOUT)


def export_resources(options: dict[str, Any]) -> int:
    """The exit code of `setpoint export`."""
    return run_command(lambda request: _export(request, ExportOptions.of(options)), options)


def import_resources(options: dict[str, Any]) -> int:
    """The exit code of `setpoint import`."""
    return run_command(lambda request: _import(request, overwrite=options["overwrite"]), options)


# --- Export -----------------------------------------------------------------------------------------------------------


async def _export(request: CommandRequest, export_options: ExportOptions) -> ExitCode:
    async with open_engine(request.settings, _access(request, export_options)) as engine:
        resources = await _selected(request, engine)
        await _check_no_controller(request, engine, export_options)
        if export_options.pause:
            for resource in resources:
                await pause_for_export(resource, engine.store)
        export = await _build_export(resources, engine, request, export_options)
    text = _within_limit(export_lines(export, request.output))
    if export_options.to == _STDOUT:
        for line in text:
            request.console.write(line)
    else:
        write_private_file(Path(export_options.to), (line.encode() for line in text))
        _warn(f"{_count_text(export)} in {export_options.to}, which only you can read")
    return ExitCode.DONE


def _access(request: CommandRequest, export_options: ExportOptions) -> StoreAccess:
    file = store_file(request.settings)
    # An export creates no store.
    return StoreAccess.WRITE if export_options.pause and (file is None or file.exists()) else StoreAccess.READ


async def _selected(request: CommandRequest, engine: EngineContext) -> list[Resource]:
    wanted = [parse_target(target, engine) for target in request.targets]
    if any(kind == SECRET for kind, _ in wanted):
        raise UserError("a Secret is exported with the resources that refer to it: name those, and --with-secrets")
    others = [kind for kind, _ in wanted if kind not in engine.resource_types]
    if others:
        raise UserError(f"{others[0][1]}: it is exported with the resource that makes or reads it: name that one")
    listing = await engine.store.list(ResourceQuery(namespace=request.namespace))
    known = [one for one in listing.resources if (one.ref.group, one.ref.kind) in engine.resource_types]
    found = _with_children([one for one in known if matches_targets(one, wanted)], known)
    require_targets_found(wanted, found)
    if not found:
        where = "anywhere" if request.namespace is None else f"in {request.namespace}"
        raise UserError(f"there is nothing to export {where}: -n names another, and -A means all")
    return found


def _with_children(found: Sequence[Resource], known: Sequence[Resource]) -> list[Resource]:
    """The resources that were found, and all of their children, direct and indirect."""
    refs = {one.ref for one in found}
    while more := {one.ref for one in known if one.controller in refs} - refs:
        refs |= more
    return [one for one in known if one.ref in refs]


async def _check_no_controller(request: CommandRequest, engine: EngineContext, export_options: ExportOptions) -> None:
    """Warns when a controller is running for the store; UserError with `--pause`, where it has to stop first."""
    try:
        has_running_controller = await has_controller(request.settings, engine)
    except StoreError as error:
        if export_options.pause:
            raise
        _warn(f"whether a controller is running for this store is unknown: {error}")
        return
    if has_running_controller and export_options.pause:
        raise UserError(
            "a controller is running for this store, and would go on: stop it first, then export with --pause"
        )
    if has_running_controller:
        _warn(_CONTROLLER_RUNS)


async def _build_export(
    resources: Sequence[Resource], engine: EngineContext, request: CommandRequest, export_options: ExportOptions
) -> StoreExport:
    objects, taken = await gather_export(resources, engine)
    store_type = "kubernetes" if is_shared_store(request.settings) else request.settings.store.partition(":")[0]
    paused = export_options.pause or all(map(is_paused_by_export, resources))
    header = ExportHeader(__version__, engine.clock.now(), store_type, export_options.with_secrets, paused)
    for one in resources:
        if _tree(one.document.get("metadata")).get("ownerReferences") and not _is_exported(one.controller, resources):
            _warn(f"{one.ref}: its owner is not exported, so that it has none elsewhere")
    if not export_options.with_secrets and any(one.is_secret for one in objects) and _has_owners(resources, engine):
        _warn(_OWNERS_SECRETS)
    if export_options.with_secrets:
        return StoreExport((header,), tuple(objects), taken)
    return StoreExport((header,), tuple(one for one in objects if not one.is_secret), _redacted(taken, engine))


def _redacted(taken: Sequence[ExportedResource], engine: EngineContext) -> tuple[ExportedResource, ...]:
    """The resources without the secret values of their specs; a warning for each that had some."""
    secrets, found = engine.secret_fields, list[ExportedResource]()
    for one in taken:
        document = secrets.redacted(one.resource.document)
        if document is not one.resource.document:
            _warn(f"{one.ref}: {_HIDDEN}")
        found.append(replace(one, resource=Resource(document)))
    return tuple(found)


def _is_exported(owner: ResourceRef | None, resources: Sequence[Resource]) -> bool:
    return any(one.ref == owner for one in resources)


def _has_owners(resources: Sequence[Resource], engine: EngineContext) -> bool:
    return any((one.ref.group, one.ref.kind) in engine.owners for one in resources)


def _tree(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _count_text(export: StoreExport) -> str:
    resources, secrets = len(export.resources), sum(one.is_secret for one in export.objects)
    plain = len(export.objects) - secrets
    beside = f", {plain} object{'s' * (plain != 1)} beside them" if plain else ""
    more = f", and {secrets} Secret{'s' * (secrets != 1)}" if export.headers[0].secrets else ", without their Secrets"
    return f"{resources} resource{'s' * (resources != 1)}{beside}{more}"


def _warn(text: str) -> None:
    """Prints on standard error: the export itself may be on standard output."""
    error_console().print(Text(text, style="yellow"), soft_wrap=True)


# --- Import -----------------------------------------------------------------------------------------------------------


async def _import(request: CommandRequest, *, overwrite: bool) -> ExitCode:
    if not request.files:
        raise UserError("nothing to import: name kinds, such as StorageBucket, or an export with -f")
    export = load_export(request.files)
    async with open_engine(request.settings, StoreAccess.WRITE) as engine:
        if await has_controller(request.settings, engine):
            raise UserError(
                "a controller is running for this store, and would take steps before all is here: stop it first, "
                "a Deployment with `kubectl scale --replicas=0`, then import"
            )
        work = await check_import(export, engine, lambda tree: dry_run_apply(tree, engine), overwrite=overwrite)
        for arrival in await work.run_import():
            request.console.print(Text(_import_line(arrival)), soft_wrap=True)
    request.console.print(
        Text(f"{_PAUSED if export.is_paused else _NOT_PAUSED}. `setpoint plan` shows what is left to do here"),
        soft_wrap=True,
    )
    return ExitCode.DONE


def _import_line(arrival: ImportedResource) -> str:
    word = "moved" if arrival.is_new else "unchanged"
    return "; ".join([f"{arrival.ref} {word}", *arrival.remarks])


_SEPARATOR: Final = "---\n"
# How large an export may be: its text, and how many values that has.
_MAX_EXPORT_BYTES: Final = 256 * 2**20
_MAX_EXPORT_VALUES: Final = 5_000_000
_NON_SPACE: Final = re.compile(r"\S")


def export_lines(export: StoreExport, form: str) -> Iterator[str]:
    """The text of an export: documents of YAML, or of JSON with one on each line."""
    for number, document in enumerate(export_documents(export)):
        if form == "json":
            yield f"{canonical(document).decode()}\n"
        else:
            yield f"{_SEPARATOR if number else ''}{write_document(document)}"


def _within_limit(lines: Iterable[str]) -> Iterator[str]:
    """The same lines; UserError when they are more than an import takes."""
    size = 0
    for line in lines:
        size += len(line.encode())
        if size > _MAX_EXPORT_BYTES:
            largest = f"{_MAX_EXPORT_BYTES // 2**20} MiB"
            raise UserError(f"the export is larger than {largest}: export in parts, by namespace or by KIND/NAME")
        yield line


def load_export(paths: Sequence[str]) -> StoreExport:
    """The exports in `paths`, as one; ManifestInvalid names file, line and what to do."""
    documents = [
        one
        for path in paths
        for source, text in read_texts(path, _MAX_EXPORT_BYTES)
        for one in _documents(text, source)
    ]
    if not documents:
        raise ManifestInvalid(f"no export in {', '.join(paths)}: `setpoint export` makes one")
    return read_export(documents)


def _documents(text: str, source: str) -> Sequence[YamlDocument]:
    if not text.lstrip().startswith("{"):
        return read_documents(text, source, _MAX_EXPORT_VALUES)
    if excess := excess_of(text.encode(), _MAX_EXPORT_VALUES):
        raise ManifestInvalid(f"{source}: this {excess}: export in parts")
    return list(_json_documents(text, source))


def _json_documents(text: str, source: str) -> Iterator[YamlDocument]:
    """JSON documents one after the other, with any white space between them."""
    decoder, end, line = json.JSONDecoder(), 0, 1
    while found := _NON_SPACE.search(text, end):
        line += text.count("\n", end, found.start())
        try:
            value, end = decoder.raw_decode(text, found.start())
        except (ValueError, RecursionError) as error:
            wrong = error.lineno if isinstance(error, json.JSONDecodeError) else line
            raise ManifestInvalid(f"{source}:{wrong}: this is not JSON, or breaks off here: export again") from error
        yield YamlDocument(value, source, {FieldPath(): line})
        line += text.count("\n", found.start(), end)

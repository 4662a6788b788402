"""`setpoint get`, `describe`, `explain`, `events` and `crds`: what is on record, as text and as data."""

import datetime
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from rich.console import RenderableType
from rich.text import Text

from setpoint.app import StoreAccess, all_plugins, annotation_policies, definitions, open_engine
from setpoint.app.kinds import find_kind
from setpoint.cli.request import (
    CommandRequest,
    declared_refs,
    get_declared,
    matches_targets,
    names_one,
    parse_target,
    print_document,
    print_documents,
    ref_of_target,
    require_served,
    require_targets_found,
)
from setpoint.cli.views import resources as view
from setpoint.cli.views.outcome import ExitCode
from setpoint.cli.views.resources import has_output
from setpoint.core.secret_fields import SecretFields
from setpoint.core.values.json_types import Json
from setpoint.engine.context import EngineContext
from setpoint.engine.owners.children import is_unreconciled
from setpoint.engine.ports import (
    EventRecord,
    ResourceChange,
    ResourceChangeType,
    ResourceQuery,
    not_served,
    unserved_kinds,
)
from setpoint.engine.resource import Resource, ResourceRef

# A resource as data, and as text.
_Rendered: TypeAlias = tuple[Json, RenderableType]


async def get(request: CommandRequest) -> ExitCode:
    """Shows resources as they are on record."""
    async with open_engine(request.settings, StoreAccess.READ) as engine:
        wanted = [parse_target(target, engine) for target in request.targets]
        query = ResourceQuery(namespace=request.namespace)
        listing = await engine.store.list(query)
        resources = [one for one in listing.resources if matches_targets(one, wanted)]
        resources += await _unlisted_objects(request, resources, engine)
        require_served((kind for kind, _ in wanted), engine)
        if not wanted and (missing := unserved_kinds(engine.store)):
            request.settings.warn(str(not_served(missing)))
        wide, outputs = request.output == "wide", any(map(has_output, resources))
        table = view.ResourceTable(engine.resource_types, wide=wide, outputs=outputs)
        if not request.watch:
            require_targets_found(wanted, resources)
        secrets = engine.secret_fields
        _show_resources(resources, table, request, secrets)
        if request.watch:
            async for event in engine.store.watch(listing.revision, query):
                if matches_targets(event.resource, wanted):
                    _show_resources([_resource_after(event)], table, request, secrets)
    return ExitCode.DONE


async def _unlisted_objects(
    request: CommandRequest, listed: Sequence[Resource], engine: EngineContext
) -> list[Resource]:
    """Objects without a kind of ours that are named on the command line: a cluster has too many of them to list."""
    refs = [ref_of_target(target, request.namespace, engine) for target in request.targets if target.partition("/")[2]]
    there = {one.ref for one in listed}
    found = [await engine.store.get(ref) for ref in refs if ref not in there and is_unreconciled(ref, engine)]
    return [one for one in found if one is not None]


def _show_resources(
    resources: Sequence[Resource], table: view.ResourceTable, request: CommandRequest, secrets: SecretFields
) -> None:
    if request.output not in ("json", "yaml"):
        request.console.print(table.lines(resources, _now()), soft_wrap=True)
        return
    documents: list[Json] = [dict(_shown(resource, secrets, request).document) for resource in resources]
    if request.watch or names_one(request):
        print_documents(documents, request)
    else:
        print_document({"apiVersion": "v1", "kind": "List", "items": documents}, request)


def _shown(resource: Resource, secrets: SecretFields, request: CommandRequest) -> Resource:
    """The resource as it is printed: without secret values, unless they are asked for."""
    return resource if request.show_secrets else Resource(secrets.redacted(resource.document))


async def describe(request: CommandRequest) -> ExitCode:
    """Shows everything on record about the named resources."""

    async def show(resource: Resource, engine: EngineContext) -> _Rendered:
        resource = _shown(resource, engine.secret_fields, request)
        notes = await engine.store.events(resource.ref)
        data = {**resource.document, "notes": [view.event_data(note) for note in notes]}
        return data, view.description_of(resource, notes, _now())

    return await _show_each(request, show)


async def explain(request: CommandRequest) -> ExitCode:
    """Shows the record of the last step of the named resources."""
    from setpoint.cli.executors import is_resynced

    resyncs = await is_resynced(request)

    async def show(resource: Resource, engine: EngineContext) -> _Rendered:
        is_owner = resource.ref.group_kind in engine.owners
        text = view.explanation_of(resource, resyncs=resyncs, is_owner=is_owner)
        return view.explanation_data(resource), text

    return await _show_each(request, show)


async def _show_each(
    request: CommandRequest, show: Callable[[Resource, EngineContext], Awaitable[_Rendered]]
) -> ExitCode:
    """Shows each resource, and with `--watch` again whenever it changes."""
    async with open_engine(request.settings, StoreAccess.READ) as engine:
        query = ResourceQuery(namespace=request.namespace)
        listing = await engine.store.list(query)
        listed = {one.ref: one for one in listing.resources}
        refs = await declared_refs(request, engine)
        _print_rendered(
            [await show(listed.get(ref) or await get_declared(ref, engine), engine) for ref in refs], request
        )
        if request.watch:
            async for event in engine.store.watch(listing.revision, query):
                if event.resource.ref in refs:
                    data, text = await show(_resource_after(event), engine)
                    if event.change is ResourceChangeType.DELETED:
                        text = Text(f"{event.resource.ref} deleted", style="dim")
                    _print_rendered([(data, text)], request)
    return ExitCode.DONE


def _print_rendered(rendered: Sequence[_Rendered], request: CommandRequest) -> None:
    if request.output in ("json", "yaml"):
        print_documents([data for data, _ in rendered], request)
        return
    for _, text in rendered:
        request.console.print(text)
        if request.watch or len(rendered) > 1:
            request.console.print()


def _resource_after(event: ResourceChange) -> Resource:
    """The resource after a change; a deleted one is marked as such."""
    return view.as_deleted(event.resource, _now()) if event.change is ResourceChangeType.DELETED else event.resource


async def events(request: CommandRequest) -> ExitCode:
    """Shows the events on record; with `--watch` also those that follow."""
    async with open_engine(request.settings, StoreAccess.READ) as engine:
        wanted = {ref_of_target(target, request.namespace, engine) for target in request.targets}
        table, shown = view.EventTable(), set[EventRecord]()
        listing = await engine.store.list(ResourceQuery(namespace=request.namespace))

        def is_asked_for(ref: ResourceRef) -> bool:
            return request.namespace in (None, ref.namespace) and (not wanted or ref in wanted)

        async def show() -> None:
            notes = [one for one in await engine.store.events() if one not in shown and is_asked_for(one.ref)]
            shown.update(notes)
            data: list[Json] = [view.event_data(note) for note in notes]
            if request.output in ("json", "yaml"):
                print_documents(data, request) if request.watch else print_document(data, request)
            elif notes or not request.watch:
                request.console.print(table.lines(notes), soft_wrap=True)

        await show()
        if request.watch:
            async for _ in engine.store.watch(listing.revision):
                await show()
    return ExitCode.DONE


async def crds(request: CommandRequest) -> ExitCode:
    """Prints the CustomResourceDefinitions of the named kinds; or of all, with the policies that go with them."""
    from setpoint.core.values.yaml_documents import write_document

    plugins = all_plugins()
    known = definitions(plugins)
    named = [known[find_kind(word, known)] for word in request.targets]
    documents = named or [*known.values(), *annotation_policies(plugins)]
    if request.output == "yaml":
        request.console.out("---\n".join(write_document(document) for document in documents), end="")
    elif len(request.targets) == 1:
        print_document(documents[0], request)
    else:
        print_document({"apiVersion": "v1", "kind": "List", "items": documents}, request)
    return ExitCode.DONE


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)

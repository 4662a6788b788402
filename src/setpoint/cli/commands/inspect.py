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
    names_one,
    open_session,
    print_document,
    print_documents,
    selection_of,
)
from setpoint.cli.views import resources as view
from setpoint.cli.views.resources import has_output
from setpoint.core.secret_fields import SecretFields
from setpoint.core.values.json_types import Json
from setpoint.engine.context import EngineContext
from setpoint.engine.ports import EventRecord, ResourceChangeType, ResourceQuery
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.library.outcome import ExitCode
from setpoint.library.targets import declared_refs, get_declared, ref_of_target

# A resource as data, and as text.
_Rendered: TypeAlias = tuple[Json, RenderableType]


async def get(request: CommandRequest) -> ExitCode:
    """Shows resources as they are on record."""
    async with open_session(request) as session:
        everywhere = request.namespace is None
        # A table shows no secret values.
        show_secrets = request.show_secrets or request.output not in ("json", "yaml")
        listing = await session.list(
            *request.targets, all_namespaces=everywhere, show_secrets=show_secrets, ignore_not_found=request.watch
        )
        resources = [one.resource for one in listing]
        async with session.reading() as engine:
            types = engine.resource_types
        wide, outputs = request.output == "wide", any(map(has_output, resources))
        table = view.ResourceTable(types, wide=wide, outputs=outputs)
        _show_resources(resources, table, request)
        if request.watch:
            changes = session.watch(
                *request.targets, since=listing.revision, all_namespaces=everywhere, show_secrets=show_secrets
            )
            async for change in changes:
                _show_resources([_resource_after(change.change, change.resource.resource)], table, request)
    return ExitCode.DONE


def _show_resources(resources: Sequence[Resource], table: view.ResourceTable, request: CommandRequest) -> None:
    if request.output not in ("json", "yaml"):
        request.console.print(table.lines(resources, _now()), soft_wrap=True)
        return
    documents: list[Json] = [dict(resource.document) for resource in resources]
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
    from setpoint.library.executors import is_resynced

    resyncs = await is_resynced(request.settings)

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
        refs = await declared_refs(selection_of(request), engine)
        _print_rendered(
            [await show(listed.get(ref) or await get_declared(ref, engine), engine) for ref in refs], request
        )
        if request.watch:
            async for event in engine.store.watch(listing.revision, query):
                if event.resource.ref in refs:
                    data, text = await show(_resource_after(event.change, event.resource), engine)
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


def _resource_after(change: ResourceChangeType, resource: Resource) -> Resource:
    """The resource after a change; a deleted one is marked as such."""
    return view.as_deleted(resource, _now()) if change is ResourceChangeType.DELETED else resource


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

"""`setpoint get`, `describe`, `explain` and `events`: what is on record, as text and as data."""

import datetime
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from rich.console import RenderableType
from rich.text import Text

from setpoint.cli.request import (
    CommandRequest,
    names_one,
    open_session,
    print_document,
    print_documents,
    selected,
    selects,
)
from setpoint.cli.views import resources as view
from setpoint.cli.views.resources import has_output
from setpoint.core.values.json_types import Json
from setpoint.engine.ports import ResourceChangeType
from setpoint.engine.resource import Resource
from setpoint.engine.sets.resource_set import SetState, set_of
from setpoint.errors import UserError
from setpoint.library.declared import DeclaredChange, DeclaredResource
from setpoint.library.outcome import ExitCode

# What `get` takes for all sets: no kind has this name.
_SET_WORDS: Final = ("set", "sets")
_SET_FORMS: Final = ("table", "wide", "yaml", "json")

# Imported where it is used: `get` does without.
if TYPE_CHECKING:
    from setpoint.library.inspection.records import EventListing, Inspected, Inspection
    from setpoint.library.session import Session


async def get(request: CommandRequest) -> ExitCode:
    """Shows resources as they are on record."""
    async with open_session(request) as session:
        if len(request.targets) == 1 and request.targets[0].lower() in _SET_WORDS:
            return await _get_sets(session, request)
        everywhere = request.namespace is None
        # A table shows no secret values.
        show_secrets = request.show_secrets or request.output in ("table", "wide", "name")
        listing = await session.list(
            *request.targets, all_namespaces=everywhere, show_secrets=show_secrets, ignore_not_found=request.watch
        )
        async with session.reading() as engine:
            types = engine.resource_types
        declared = [one.resource for one in listing]
        if request.filter is not None:
            request.filter.require_known(declared, types)
        resources = _selected(declared, request)
        wide, outputs = request.output == "wide", any(map(has_output, resources))
        sources = any(set_of(one.annotations) for one in resources)
        table = view.ResourceTable(types, wide=wide, outputs=outputs, sources=sources)
        await _show_resources(resources, table, session, request)
        if request.watch:
            changes = session.watch(
                *request.targets, since=listing.revision, all_namespaces=everywhere, show_secrets=show_secrets
            )
            async for change in changes:
                changed = _selected([_resource_after(change.change, change.resource.resource)], request)
                await _show_resources(changed, table, session, request)
    return ExitCode.DONE


def _selected(resources: Sequence[Resource], request: CommandRequest) -> Sequence[Resource]:
    """Those with the labels and fields that are asked for."""
    chosen = request.filter
    return resources if chosen is None else [one for one in resources if chosen.matches(one)]


async def _get_sets(session: "Session", request: CommandRequest) -> ExitCode:
    """Shows the sets on record; exit 1 while the newest version of one is refused."""
    from setpoint.cli.views.sets import sets_table

    if request.output not in _SET_FORMS or request.watch or request.filter is not None or request.sort_by is not None:
        raise UserError("sets are shown with -o table, wide, yaml or json, and all of them: leave other options out")
    sets = await session.sets()
    if request.output in ("json", "yaml"):
        print_document(sets.to_data(), request)
    else:
        request.console.print(sets_table(sets, wide=request.output == "wide"), soft_wrap=True)
    return ExitCode.FAILED if any(one.state is SetState.FAILED for one in sets) else ExitCode.DONE


async def _show_resources(
    resources: Sequence[Resource], table: view.ResourceTable, session: "Session", request: CommandRequest
) -> None:
    """Prints the resources in the order that is asked for, with what is known of the looks at them."""
    form, _, rest = request.output.partition("=")
    if form not in ("table", "name") or request.sort_by is not None:
        looks = await session.looks(resources)
        resources = [looks[one.ref].shown_in(one) for one in resources]
    if request.sort_by is not None:
        from setpoint.library.selecting.custom_columns import sorted_by

        resources = sorted_by(resources, request.sort_by)
    if rest or form == "name":
        from setpoint.cli.views.chosen_fields import print_chosen_fields

        print_chosen_fields(resources, request, is_one=request.watch or names_one(request))
    elif form in ("json", "yaml"):
        _print_documents(resources, request)
    else:
        request.console.print(table.lines(resources, _now()), soft_wrap=True)


def _print_documents(resources: Sequence[Resource], request: CommandRequest) -> None:
    documents: list[Json] = [dict(resource.document) for resource in resources]
    if request.watch or names_one(request):
        print_documents(documents, request)
    else:
        print_document({"apiVersion": "v1", "kind": "List", "items": documents}, request)


async def describe(request: CommandRequest) -> ExitCode:
    """Shows everything on record about the named resources."""
    from setpoint.library.inspection.records import ResourceDescription

    async with open_session(request) as session:
        described = await session.describe(await selected(request, session), show_secrets=request.show_secrets)
        _print_inspected(described, view.description_of, request)
        if request.watch:
            async for change in _changes_of(described, session, show_secrets=request.show_secrets):
                after = DeclaredResource(_resource_after(change.change, change.resource.resource))
                async with session.reading() as engine:
                    events = await engine.store.events(change.ref)
                _print_change(change, ResourceDescription(after, events), view.description_of, request)
    return ExitCode.DONE


async def explain(request: CommandRequest) -> ExitCode:
    """Shows the record of the last step of the named resources."""
    from setpoint.library.inspection.records import StepExplanation

    async with open_session(request) as session:
        explained = await session.explain(await selected(request, session))
        _print_inspected(explained, view.explanation_of, request)
        if request.watch:
            # The record of a step has no secret values.
            async for change in _changes_of(explained, session, show_secrets=True):
                before, resource = explained[change.ref], change.resource.resource
                after = StepExplanation.of(resource, is_resynced=before.is_resynced, is_owner=before.is_owner)
                _print_change(change, after, view.explanation_of, request)
    return ExitCode.DONE


async def _changes_of(
    shown: "Inspection[Any]", session: "Session", *, show_secrets: bool
) -> AsyncGenerator[DeclaredChange]:
    """The changes of the resources that are shown."""
    refs = {one.ref for one in shown}
    async with aclosing(session.watch(since=shown.revision, show_secrets=show_secrets)) as changes:
        async for change in changes:
            if change.ref in refs:
                yield change


def _print_inspected(
    shown: "Inspection[Inspected]", text_of: "Callable[[Inspected], RenderableType]", request: CommandRequest
) -> None:
    if request.output in ("json", "yaml"):
        print_documents([one.to_data() for one in shown], request)
        return
    for one in shown:
        request.console.print(text_of(one))
        if request.watch or len(shown) > 1:
            request.console.print()


def _print_change(
    change: DeclaredChange,
    after: "Inspected",
    text_of: "Callable[[Inspected], RenderableType]",
    request: CommandRequest,
) -> None:
    if request.output in ("json", "yaml"):
        print_documents([after.to_data()], request)
        return
    is_deleted = change.change is ResourceChangeType.DELETED
    request.console.print(Text(f"{change.ref} deleted", style="dim") if is_deleted else text_of(after))
    request.console.print()


def _resource_after(change: ResourceChangeType, resource: Resource) -> Resource:
    """The resource after a change; a deleted one is marked as such."""
    return view.as_deleted(resource, _now()) if change is ResourceChangeType.DELETED else resource


async def events(request: CommandRequest) -> ExitCode:
    """Shows the events on record; with `--watch` also those that follow."""
    from setpoint.library.inspection.records import events_data

    table, everywhere = view.EventTable(), request.namespace is None

    def show(found: "EventListing") -> None:
        if request.output in ("json", "yaml"):
            if request.watch:
                print_documents(events_data(found), request)
            else:
                print_document(found.to_data(), request)
        elif len(found) or not request.watch:
            request.console.print(table.lines(found), soft_wrap=True)

    async with open_session(request) as session:
        # Without a selector also of what is not declared any more.
        targets = (await selected(request, session)).targets if selects(request) else request.targets
        listing = await session.events(*targets, all_namespaces=everywhere)
        show(listing)
        if request.watch:
            async for found in session.watch_events(*targets, since=listing, all_namespaces=everywhere):
                show(found)
    return ExitCode.DONE


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)

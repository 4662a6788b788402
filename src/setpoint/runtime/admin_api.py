"""The local admin API: the process that holds a store applies, deletes and reconciles for other processes.

They read the store themselves. The controllers reconcile as always; the results are in the statuses.
"""

import asyncio
import logging
import os
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol, TypeVar

import msgspec
from aiohttp import web

from setpoint import __version__
from setpoint.clients.admin_api import (
    ALIVE_PATH,
    APPLY_PATH,
    DECLARE_PATH,
    DELETE_PATH,
    FAILURES_PATH,
    HELLO_PATH,
    LOOKS_PATH,
    MAX_MESSAGE,
    MOST_LOOKS,
    RECONCILE_PATH,
    ApplyRequest,
    DeclareRequest,
    ProcessInfo,
    ReconcileRequest,
    ResourceLook,
    ResourceLooks,
    ResourceName,
    ResourceNames,
    StepFailure,
    StepFailures,
    error_body,
    is_trusted_peer,
    require_small,
)
from setpoint.clients.http import request_tracer
from setpoint.clients.response_bodies import UNDECODABLE
from setpoint.core.conditions import ConditionReason, ConditionType
from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import JsonObject
from setpoint.core.values.problems import MAX_PROBLEMS, joined_problems, problems_of
from setpoint.engine.conditions import condition_of
from setpoint.engine.context import EngineContext
from setpoint.engine.dependency_graph import reconcile_order
from setpoint.engine.intent import check_manifest
from setpoint.engine.kind import Dependency
from setpoint.engine.owners.children import is_unreconciled
from setpoint.engine.references import dependencies_of
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.sets.declare import declare
from setpoint.engine.sets.resource_set import SetDeclaration, SetMember, SetRecord
from setpoint.engine.state import RECONCILE_REQUESTED
from setpoint.engine.step.reconcile_request import CommandTrigger, request_text
from setpoint.engine.transfer.importer import DryRunApply
from setpoint.errors import Bug, ManifestInvalid, RemoteRefused, SetpointError, StoreInUse, UserError, WriteConflict
from setpoint.runtime.manager import Phase

# Attempts to annotate a resource while steps write it.
_ANNOTATE_ATTEMPTS: Final = 20


class RunningManager(Protocol):
    """What the admin API reads of the manager."""

    @property
    def phase(self) -> Phase:
        """The lifecycle phase."""
        ...

    def last_error_of(self, ref: ResourceRef) -> SetpointError | None:
        """The error of the last step of `ref`, when it is to be retried."""
        ...

    def look_of(self, ref: ResourceRef) -> ResourceLook | None:
        """When it was last looked at, and is next; None where nothing is known."""
        ...


class AdminApi:
    """The verbs. Each refuses once the process is stopping: no step would run."""

    def __init__(self, engine: EngineContext, dry_run: DryRunApply, running: RunningManager) -> None:
        self.ended = asyncio.Event()
        self._engine = engine
        self._dry_run = dry_run
        self._running = running

    def hello(self) -> ProcessInfo:
        """Version, process id and phase."""
        return ProcessInfo(__version__, os.getpid(), self._running.phase.value)

    def failures(self, refs: Iterable[ResourceRef]) -> Mapping[ResourceRef, SetpointError]:
        """The errors of those that are being retried."""
        found = {ref: self._running.last_error_of(ref) for ref in refs}
        return {ref: error for ref, error in found.items() if error is not None}

    def looks(self, refs: Iterable[ResourceRef]) -> Sequence[ResourceLook]:
        """When each was last looked at, and is next; without those of which nothing is known."""
        return [look for ref in refs if (look := self._running.look_of(ref)) is not None]

    async def apply(self, manifests: Sequence[JsonObject]) -> Sequence[ResourceRef]:
        """Applies all manifests, or raises and applies none. An unchanged one is reconciled as well."""
        self._require_running()
        drafts = await self._checked(manifests)
        for draft, manifest in zip(drafts, manifests, strict=True):
            await self._apply(draft, manifest)
        return [draft.ref for draft in drafts]

    async def declare(self, request: DeclareRequest) -> Sequence[ResourceRef]:
        """Declares the sets, or raises and declares nothing. An unchanged member is reconciled as well."""
        self._require_running()
        declaration = _declaration(request)
        drafts = await self._checked([member.manifest for member in declaration.members])
        declared = await declare(declaration, self._engine.store, self._engine.clock)
        for draft in drafts:
            if draft.ref not in declared.changed and not is_unreconciled(draft.ref, self._engine):
                await self._request(draft.ref, CommandTrigger.APPLY)
        return [draft.ref for draft in drafts]

    async def delete(self, refs: Sequence[ResourceRef]) -> Sequence[ResourceRef]:
        """Deletes them, or marks them for deletion."""
        self._require_running()
        self._require_handled(refs)
        for ref in refs:
            await self._delete(ref)
        return refs

    async def reconcile(
        self, refs: Sequence[ResourceRef], command: CommandTrigger = CommandTrigger.RECONCILE
    ) -> Sequence[ResourceRef]:
        """Requests a reconcile of those that are there, for `command`; returns them."""
        self._require_running()
        self._require_handled(refs)
        return [ref for ref in refs if await self._request(ref, command)]

    def _require_running(self) -> None:
        if self._running.phase in (Phase.DRAINING, Phase.ENDED):
            raise StoreInUse(f"process {os.getpid()} is stopping: run the command again when it has ended")

    def _require_handled(self, refs: Iterable[ResourceRef]) -> None:
        for ref in refs:
            if (ref.group, ref.kind) not in self._engine.resource_types and not is_unreconciled(ref, self._engine):
                handled = ", ".join(sorted(name for _, name in self._engine.resource_types))
                raise ManifestInvalid(
                    f"{ref}: the running process {os.getpid()} handles only {handled}; "
                    f"stop it, or start it with --kinds {ref.kind} as well"
                )

    async def _checked(self, manifests: Sequence[JsonObject]) -> Sequence[Resource]:
        """The resources that the manifests would make; raises what is wrong with any of them, or with all together."""
        drafts: list[Resource] = []
        wrong: list[UserError] = []
        dependencies: dict[ResourceRef, Sequence[Dependency]] = {}
        for manifest in manifests:
            try:
                draft = await self._dry_run(manifest)
                if draft.ref in dependencies:
                    raise ManifestInvalid(f"{draft.ref} is declared twice: keep one of them")
                drafts.append(draft)
                dependencies[draft.ref] = self._dependencies(draft)
            except UserError as error:
                wrong += problems_of(error)
                if len(wrong) >= MAX_PROBLEMS:
                    break
            # There may be thousands: yields to other tasks.
            await asyncio.sleep(0)
        if wrong:
            raise joined_problems(wrong)
        reconcile_order(dependencies)
        return drafts

    def _dependencies(self, draft: Resource) -> Sequence[Dependency]:
        self._require_handled((draft.ref,))
        if is_unreconciled(draft.ref, self._engine):
            return ()
        kind = self._engine.resource_type_of(draft)
        check_manifest(draft, kind)
        return dependencies_of(draft, self._engine.resource_types)

    async def _apply(self, draft: Resource, manifest: JsonObject) -> None:
        ref = draft.ref
        before = await self._engine.store.get(ref)
        if before is None or is_unreconciled(ref, self._engine) or not same(_body(before), _body(draft)):
            # The new generation triggers a reconcile, and distinguishes the new status from the old one.
            await self._engine.store.apply(manifest)
        elif before.is_deleting:
            # The store decides whether the manifest is still accepted, so it is applied without the request.
            await self._engine.store.apply(manifest)
            await self._request(ref, CommandTrigger.APPLY)
        else:
            # In one write: a second one would conflict with the step that the first one triggers.
            await self._engine.store.apply(_with_annotation(manifest, self._new_request(CommandTrigger.APPLY)))

    async def _delete(self, ref: ResourceRef) -> None:
        before = await self._engine.store.get(ref)
        left = await self._engine.store.delete(ref)
        # Otherwise the deletion itself triggers the step.
        if left is not None and before is not None and (before.is_deleting or _was_paused(before)):
            await self._request(ref, CommandTrigger.DELETE)

    def _new_request(self, command: CommandTrigger) -> str:
        return request_text(f"{self._engine.clock.now()}/{secrets.token_hex(4)}", command)

    async def _request(self, ref: ResourceRef, command: CommandTrigger) -> bool:
        """Whether the request was recorded: the resource may be gone."""
        text = self._new_request(command)
        for _ in range(_ANNOTATE_ATTEMPTS):
            resource = await self._engine.store.get(ref)
            if resource is None:
                return False
            try:
                await self._engine.store.annotate(resource, {RECONCILE_REQUESTED: text})
            except WriteConflict:
                continue
            return True
        raise StoreInUse(f"{ref} is written again and again: run the command again later")


def _body(resource: Resource) -> JsonObject:
    """The part of a resource of which a change makes a new generation."""
    return {name: value for name, value in resource.document.items() if name not in ("metadata", "status")}


def _with_annotation(manifest: JsonObject, request: str) -> JsonObject:
    metadata: Any = manifest["metadata"]
    annotations = {**(metadata.get("annotations") or {}), RECONCILE_REQUESTED: request}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


def _was_paused(resource: Resource) -> bool:
    ready = condition_of(resource, ConditionType.READY)
    return ready is not None and ready.reason == ConditionReason.PAUSED


T = TypeVar("T")

_log: Final = logging.getLogger(__name__)
# A broken connection is noticed by writing to it.
_HEARTBEAT_SECONDS: Final = 15.0


def admin_routes(api: AdminApi) -> Sequence[web.RouteDef]:
    """The HTTP routes of the verbs."""

    async def apply(request: web.Request) -> msgspec.Struct:
        asked = await _decode_body(request, ApplyRequest)
        return _logged_names("applied", await api.apply([_tree(one) for one in asked.manifests]))

    async def declare_sets(request: web.Request) -> msgspec.Struct:
        return _logged_names("declared", await api.declare(await _decode_body(request, DeclareRequest)))

    async def delete(request: web.Request) -> msgspec.Struct:
        return _logged_names("deleted", await api.delete(_refs(await _decode_body(request, ResourceNames))))

    async def reconcile(request: web.Request) -> msgspec.Struct:
        asked = await _decode_body(request, ReconcileRequest)
        return _logged_names("reconcile requested", await api.reconcile(_refs(asked), _command(asked)))

    return [
        *_read_routes(api),
        web.post(APPLY_PATH, _json_handler(apply)),
        web.post(DECLARE_PATH, _json_handler(declare_sets)),
        web.post(DELETE_PATH, _json_handler(delete)),
        web.post(RECONCILE_PATH, _json_handler(reconcile)),
    ]


def _read_routes(api: AdminApi) -> Sequence[web.RouteDef]:
    async def hello(_: web.Request) -> msgspec.Struct:
        return api.hello()

    async def failures(request: web.Request) -> msgspec.Struct:
        found = api.failures(_refs(await _decode_body(request, ResourceNames)))
        return StepFailures(tuple(StepFailure(ResourceName(*ref), error_body(error)) for ref, error in found.items()))

    async def looks(request: web.Request) -> msgspec.Struct:
        refs = _refs(await _decode_body(request, ResourceNames))
        return ResourceLooks(tuple(api.looks(refs[:MOST_LOOKS])))

    async def alive(request: web.Request) -> web.StreamResponse:
        return await _stream_until_ended(api.ended, request) if _is_same_user(request) else web.Response(status=403)

    return [
        web.get(HELLO_PATH, _json_handler(hello)),
        web.get(ALIVE_PATH, alive),
        web.post(FAILURES_PATH, _json_handler(failures)),
        web.post(LOOKS_PATH, _json_handler(looks)),
    ]


def _json_handler(verb: Callable[[web.Request], Awaitable[msgspec.Struct]]) -> Callable[..., Awaitable[web.Response]]:
    async def answer(request: web.Request) -> web.Response:
        try:
            if not _is_same_user(request):
                raise RemoteRefused(
                    f"process {os.getpid()} belongs to another user: run the command as that user, or as root"
                )
            body, status = await _served(verb, request), 200
        except SetpointError as error:
            body, status = error_body(error), 422
        except Exception as error:  # noqa: BLE001 - a bug must not end the process
            _log.exception("request broke", extra={"path": request.path})
            # Without its text, which may hold secret values.
            broke = Bug(f"{type(error).__name__} in the running process: a bug of ours; its log has the traceback")
            body, status = error_body(broke), 500
        return web.Response(status=status, body=msgspec.json.encode(body), content_type="application/json")

    return answer


async def _served(verb: Callable[[web.Request], Awaitable[msgspec.Struct]], request: web.Request) -> msgspec.Struct:
    """The answer; with a tracer it is a span, and the next steps of the resources that it names are linked to that."""
    tracer = request_tracer()
    if tracer is None:
        return await verb(request)
    with tracer.served(request.method, request.path, request.headers) as triggered:
        body = await verb(request)
        if isinstance(body, ResourceNames):
            triggered((one.group, one.kind, one.namespace, one.name) for one in body.names)
    return body


def _is_same_user(request: web.Request) -> bool:
    connection = None if request.transport is None else request.transport.get_extra_info("socket")
    return connection is not None and is_trusted_peer(connection)


async def _decode_body(request: web.Request, form: type[T]) -> T:
    body = bytearray()
    try:
        async for piece in request.content.iter_any():
            body += piece
            if len(body) > MAX_MESSAGE:
                break
    except (web.RequestPayloadError, ConnectionError) as error:
        raise ManifestInvalid("the request breaks off: run the command again") from error
    require_small(body)
    return _decode(body, form)


def _tree(raw: msgspec.Raw) -> JsonObject:
    tree: JsonObject = _decode(raw, dict)
    return tree


def _declaration(request: DeclareRequest) -> SetDeclaration:
    members = [SetMember(_tree(one.manifest), one.set_name, one.source, one.seen) for one in request.members]
    leaving, released = (
        tuple((ResourceRef(*msgspec.structs.astuple(one.name)), one.set_name) for one in left)
        for left in (request.leaving, request.released)
    )
    return SetDeclaration(tuple(members), leaving, released, tuple(_decode(one, SetRecord) for one in request.records))


def _decode(body: bytearray | msgspec.Raw, form: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=form)
    except UNDECODABLE as error:
        raise ManifestInvalid(
            f"the running process cannot read this ({error}): use the same version of setpoint for both"
        ) from error


def _refs(asked: ResourceNames | ReconcileRequest) -> list[ResourceRef]:
    return [ResourceRef(*msgspec.structs.astuple(name)) for name in asked.names]


def _command(asked: ReconcileRequest) -> CommandTrigger:
    return CommandTrigger(asked.command) if asked.command in tuple(CommandTrigger) else CommandTrigger.RECONCILE


def _logged_names(what: str, refs: Sequence[ResourceRef]) -> ResourceNames:
    _log.info(what, extra={"resources": len(refs), "for": "another process"})
    return ResourceNames(tuple(ResourceName(*ref) for ref in refs))


async def _stream_until_ended(ended: asyncio.Event, request: web.Request) -> web.StreamResponse:
    """A response that ends with the process."""
    response = web.StreamResponse()
    try:
        await response.prepare(request)
        while not ended.is_set():
            await response.write(b"\n")
            with suppress(TimeoutError):
                async with asyncio.timeout(_HEARTBEAT_SECONDS):
                    await ended.wait()
    except ConnectionError:
        # The client is gone.
        pass
    return response

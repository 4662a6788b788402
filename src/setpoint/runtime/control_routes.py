"""Control over HTTP: JSON in, JSON out, for the user that runs the process, and for root."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final, TypeVar

import msgspec
from aiohttp import web

from setpoint.clients.daemon_messages import (
    ALIVE,
    APPLY,
    DELETE,
    HELLO,
    LOOK,
    TROUBLES,
    Manifests,
    Name,
    Names,
    Trouble,
    Troubles,
    told,
)
from setpoint.clients.daemon_socket import is_ours
from setpoint.engine.resource import ResourceRef, Tree
from setpoint.errors import Bug, ManifestInvalid, RemoteRefused, SetpointError
from setpoint.runtime.control import Control

T = TypeVar("T")

_log: Final = logging.getLogger(__name__)
_LARGEST: Final = 64 * 2**20
# A connection that is gone is noticed by writing to it.
_BEAT_SECONDS: Final = 15.0


def routes(control: Control) -> Sequence[web.RouteDef]:
    """The verbs under their addresses."""

    async def hello(_: web.Request) -> msgspec.Struct:
        return control.hello()

    async def apply(request: web.Request) -> msgspec.Struct:
        asked = await _read(request, Manifests)
        return _named("applied", await control.apply([_tree(one) for one in asked.manifests]))

    async def delete(request: web.Request) -> msgspec.Struct:
        return _named("deleted", await control.delete(_refs(await _read(request, Names))))

    async def look(request: web.Request) -> msgspec.Struct:
        return _named("asked to look", await control.look(_refs(await _read(request, Names))))

    async def troubles(request: web.Request) -> msgspec.Struct:
        found = control.troubles(_refs(await _read(request, Names)))
        return Troubles(tuple(Trouble(Name(*ref), told(error)) for ref, error in found.items()))

    async def alive(request: web.Request) -> web.StreamResponse:
        return await _stay(control.ended, request) if _is_ours(request) else web.Response(status=403)

    return [
        web.get(HELLO, _answering(hello)),
        web.get(ALIVE, alive),
        web.post(APPLY, _answering(apply)),
        web.post(DELETE, _answering(delete)),
        web.post(LOOK, _answering(look)),
        web.post(TROUBLES, _answering(troubles)),
    ]


def _answering(verb: Callable[[web.Request], Awaitable[msgspec.Struct]]) -> Callable[..., Awaitable[web.Response]]:
    async def answer(request: web.Request) -> web.Response:
        try:
            if not _is_ours(request):
                raise RemoteRefused(
                    f"process {os.getpid()} belongs to another user: run the command as that user, or as root"
                )
            body, status = await verb(request), 200
        except SetpointError as error:
            body, status = told(error), 422
        except Exception as error:  # noqa: BLE001 - ours to mend, and no reason to drop what else is going on
            _log.exception("request broke", extra={"path": request.path})
            # Without its text, which may hold what nobody should see.
            broke = Bug(f"{type(error).__name__} in the running process: a bug of ours; its log has the traceback")
            body, status = told(broke), 500
        return web.Response(status=status, body=msgspec.json.encode(body), content_type="application/json")

    return answer


def _is_ours(request: web.Request) -> bool:
    connection = None if request.transport is None else request.transport.get_extra_info("socket")
    return connection is not None and is_ours(connection)


async def _read(request: web.Request, form: type[T]) -> T:
    body = bytearray()
    async for piece in request.content.iter_any():
        body += piece
        if len(body) > _LARGEST:
            raise ManifestInvalid(f"larger than {_LARGEST // 2**20} MiB: apply it in parts")
    try:
        return msgspec.json.decode(body, type=form)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ManifestInvalid(
            f"the running process cannot read this ({error}): use the same version of setpoint for both"
        ) from error


def _tree(raw: msgspec.Raw) -> Tree:
    tree: Tree = msgspec.json.decode(raw, type=dict)
    return tree


def _refs(names: Names) -> list[ResourceRef]:
    return [ResourceRef(*msgspec.structs.astuple(name)) for name in names.names]


def _named(what: str, refs: Sequence[ResourceRef]) -> Names:
    _log.info(what, extra={"resources": len(refs), "for": "another process"})
    return Names(tuple(Name(*ref) for ref in refs))


async def _stay(ended: asyncio.Event, request: web.Request) -> web.StreamResponse:
    """An answer that does not end before the process does."""
    response = web.StreamResponse()
    try:
        await response.prepare(request)
        while not ended.is_set():
            await response.write(b"\n")
            with suppress(TimeoutError):
                async with asyncio.timeout(_BEAT_SECONDS):
                    await ended.wait()
    except ConnectionError:
        # Nobody waits for it any more.
        pass
    return response

"""A stub of an API server with prepared responses, in a process of its own so that its CPU time is not measured.

Every name has an object, of 3 KB. A list has `LISTED` objects; a watch sends `WATCHED` events and ends.
"""

import asyncio
from contextlib import AbstractContextManager, suppress
from functools import cache
from typing import Final

import msgspec

from benchmarks.server_process import announce_until_parent_ends, running_server
from setpoint.core.values.json_types import Json

GROUP, VERSION, PLURAL, KIND = "bench.test", "v1", "widgets", "Widget"
NAMESPACE: Final = "team-orders"
LISTED: Final = 500
WATCHED: Final = 2_000
_EVENTS_PER_CHUNK: Final = 20


@cache
def body_of(name: str) -> bytes:
    """An object as an API server returns it: a third of it is managedFields."""
    fields: Json = {f"f:spec.field{number}": {"f:value": {}, "f:unit": {}} for number in range(12)}
    managed_fields = [
        {"manager": manager, "operation": "Update", "apiVersion": f"{GROUP}/{VERSION}", "fieldsV1": fields}
        for manager in ("setpoint", "kubectl")
    ]
    spec = {f"field{number}": {"value": f"some value {number}", "unit": "Gi", "isSet": True} for number in range(12)}
    conditions = [
        {"type": kind, "status": "True", "reason": "UpToDate", "message": "The resource is up to date", "since": 1}
        for kind in ("Ready", "Synced", "Available")
    ]
    metadata = {
        "name": name,
        "namespace": NAMESPACE,
        "uid": "0b5a3d4c-1c98-46e0-a3cb-ca3151b4bf44",
        "resourceVersion": "123456",
        "labels": {f"example.test/label-{number}": f"value-{number}" for number in range(6)},
        "managedFields": managed_fields,
    }
    tree = {"apiVersion": f"{GROUP}/{VERSION}", "kind": KIND, "metadata": metadata, "spec": spec}
    return msgspec.json.encode(tree | {"status": {"conditions": conditions, "observedGeneration": 1}})


def name_of(number: int) -> str:
    """The name of an object in a list or a watch."""
    return f"orders-{number:07}"


def running_stub() -> AbstractContextManager[str]:
    """The address of a server that runs until the end of the block."""
    return running_server("benchmarks.api_server_stub")


@cache
def _object_response(name: str) -> bytes:
    return _http_response(body_of(name))


@cache
def _list_response() -> bytes:
    items = b",".join(body_of(name_of(number)) for number in range(LISTED))
    head = b'{"apiVersion":"%s/%s","kind":"%sList"' % (GROUP.encode(), VERSION.encode(), KIND.encode())
    return _http_response(b'%b,"metadata":{"resourceVersion":"123456"},"items":[%b]}' % (head, items))


def _http_response(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


@cache
def _event_chunks() -> tuple[bytes, ...]:
    """Chunks of a stream: several events are sent together, each in a frame of its own."""
    lines = [b'{"type":"MODIFIED","object":%b}\n' % body_of(name_of(number)) for number in range(WATCHED)]
    frames = [b"%x\r\n%b\r\n" % (len(line), line) for line in lines]
    return tuple(b"".join(frames[start : start + _EVENTS_PER_CHUNK]) for start in range(0, WATCHED, _EVENTS_PER_CHUNK))


async def _handle_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError, asyncio.IncompleteReadError):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            path, _, query = head.split(b" ", 2)[1].decode().partition("?")
            if "watch=" in query:
                await _send_events(writer)
            else:
                name = path.rpartition("/")[2]
                writer.write(_list_response() if name == PLURAL else _object_response(name))
            await writer.drain()
    writer.close()


async def _send_events(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    for chunk in _event_chunks():
        writer.write(chunk)
        await writer.drain()
    writer.write(b"0\r\n\r\n")


async def _serve() -> None:
    server = await asyncio.start_server(_handle_connection, "127.0.0.1", 0)
    await announce_until_parent_ends(server.sockets[0].getsockname()[1])
    server.close()


if __name__ == "__main__":
    asyncio.run(_serve())

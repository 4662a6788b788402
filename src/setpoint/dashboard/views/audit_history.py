"""What the audit log says about one resource: as entries of a history, for what is older than the history itself.

The newest lines are read, also of files that the log was rotated to; those about other resources are passed over
undecoded.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Final

import orjson

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.dashboard.views.log_files import newest_lines
from setpoint.dashboard.views.rows import objects_in, text_in
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.reports import HistoryEntry, HistoryType

# The newest part of the log; older lines are for the tools that keep logs.
MAX_BYTES: Final = 64 * 2**20
MAX_ENTRIES: Final = 500
_MAX_REQUESTS: Final = 20


@dataclass(slots=True)
class AuditHistory:
    """The audit log of this process, read by one request at a time."""

    path: Path
    most_bytes: int = MAX_BYTES
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def entries(self, ref: ResourceRef, before: str) -> Sequence[HistoryEntry]:
        """The newest entries of a resource, the newest first; with `before`, those that are older than that time."""
        async with self._turn:
            return await asyncio.to_thread(self._entries, ref, before)

    def _entries(self, ref: ResourceRef, before: str) -> Sequence[HistoryEntry]:
        found = [one for one in read_entries(self._lines(ref), ref) if not before or one.at < before]
        return found[: -MAX_ENTRIES - 1 : -1]

    def _lines(self, ref: ResourceRef) -> Iterator[bytes]:
        """The lines that may be about a resource, or about a write."""
        name = orjson.dumps(ref.name)
        for line in newest_lines(self.path, self.most_bytes):
            if name in line or b'"event":"response"' in line:
                yield line


def read_entries(lines: Iterator[bytes], ref: ResourceRef) -> Sequence[HistoryEntry]:
    """The entries of a resource in lines of an audit log, in their order; a line that cannot be read has none."""
    wanted: Json = {"group": ref.group, "kind": ref.kind, "namespace": ref.namespace, "name": ref.name}
    found: list[HistoryEntry] = []
    requests: dict[str, list[Json]] = {}
    for line in lines:
        try:
            data = orjson.loads(line)
        except orjson.JSONDecodeError:
            # A power failure cut it off.
            continue
        if not isinstance(data, Mapping):
            continue
        event, at, write = (text_in(data, name) for name in ("event", "time", "write"))
        if event == "response" and write in requests:
            requests[write].append(_request(data))
        elif data.get("resource") == wanted:
            found += _entries_of(event, at, data, requests.setdefault(write, []))
    return found


def _entries_of(event: str, at: str, data: JsonObject, requests: list[Json]) -> Sequence[HistoryEntry]:
    trigger: dict[str, Json] = {"trigger": text_in(data, "askedBy")}
    match event:
        case "write":
            return _write(at, {**trigger, "decision": text_in(data, "why")}, data, requests)
        case "drift":
            drift: dict[str, Json] = {"fields": data.get("fields"), "deleted": data.get("deleted")}
            return [HistoryEntry(HistoryType.DRIFT, at, {**trigger, **drift})]
        case "refused":
            return [HistoryEntry(HistoryType.REFUSED, at, {**trigger, "message": text_in(data, "message")})]
        case _:
            return []


def _write(at: str, head: JsonObject, data: JsonObject, requests: list[Json]) -> Sequence[HistoryEntry]:
    """The step with its fields, before and after, and the write with its requests, which follow in the log."""
    action, target = text_in(data, "action"), text_in(data, "target")
    changes: list[Json] = list(objects_in(data.get("fields")))
    step: JsonObject = {**head, "writes": [{"action": action, "name": target, "changes": changes}]}
    paths: list[Json] = [{"path": text_in(one, "path"), "rule": text_in(one, "rule")} for one in objects_in(changes)]
    write: JsonObject = {**head, "action": action, "target": target, "changes": paths, "requests": requests}
    return [HistoryEntry(HistoryType.STEP, at, step), HistoryEntry(HistoryType.WRITE, at, write)]


def _request(data: JsonObject) -> Json:
    method, _, url = text_in(data, "request").partition(" ")
    status = data.get("status")
    return {"method": method, "url": url, "status": status if isinstance(status, int) else None}

"""The methods of a Store: which of them read and which write, and arguments for each write."""

import inspect
from collections.abc import Callable
from typing import Any, Final

from setpoint.engine.ports import ChildWrite, EventRecord, Lease, ResourceUpdate
from setpoint.engine.resource import Resource
from tests.stores.samples import REF, instance

READS: Final = ("close", "events", "get", "get_many", "leases", "list", "pages", "refresh", "watch")
# Updates of one part are updates.
PARTS: Final = ("annotate", "set_finalizers", "update_status")
WRITES: Final = (
    *("acquire", "apply", "create", "delete", "record_event", "release", "replace", "update", "write_children"),
    *PARTS,
)
_ARGUMENTS: Final[dict[str, Any]] = {
    "annotations": {"a": "1"},
    "document": instance(),
    "event": EventRecord(REF, "uid", "Normal", "Updated", "updated", "2026-01-01T00:00:00Z"),
    "finalizers": (),
    "holder": "me",
    "lease": Lease("lease", "me", 1, 0.0),
    "manifest": instance(),
    "name": "lease",
    "ref": REF,
    "resource": Resource(instance()),
    "seconds": 1.0,
    "seen": Resource(instance()),
    "status": {"a": 1},
    "update": ResourceUpdate(status={"a": 1}),
    "writes": [ChildWrite(instance())],
}


def arguments_for(write: Callable[..., Any]) -> list[Any]:
    """Arguments for a write of a store, by the names of its parameters."""
    return [_ARGUMENTS[name] for name in inspect.signature(write).parameters]


def verb_of(name: str) -> str:
    """The verb of a write in messages and reports."""
    return "update" if name in PARTS else name

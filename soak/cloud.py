"""The local cloud of a soak: it counts what happens to objects, and which writer did it."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from setpoint.localcloud.cloud import CloudRequest
from setpoint.localcloud.routing import ServiceResponse
from setpoint.localcloud.server import LocalCloud

PROJECT: Final = "soak"
# How long the service takes for what it does not do at once.
OPERATION_SECONDS: Final = 0.3
# The label with the name of the resource, on objects whose ids their service makes.
NAME_LABEL: Final = "soak-name"
_LABELS: Final = ("labels", "userLabels")
_BUCKET: Final = re.compile(r"/storage/v1/b/([^/]+)")
_DATABASE: Final = re.compile(r"/sql/v1beta4/projects/soak/instances/([^/]+)/databases/([^/]+)")


@dataclass(slots=True)
class Effects:
    """What came of calls, by object: `b/NAME`, `d/INSTANCE/NAME` or `c/SERVICE/RELATIVE NAME`."""

    created: dict[str, int] = field(default_factory=dict)
    deleted: dict[str, int] = field(default_factory=dict)
    deleted_by_other_writer: dict[str, int] = field(default_factory=dict)
    # Calls that must not have been made, in words.
    wrong: list[str] = field(default_factory=list)


class SoakCloud(LocalCloud):
    """Sees every object come and go."""

    def __init__(self) -> None:
        super().__init__(operation_seconds=OPERATION_SECONDS)
        self.effects = Effects()
        # Objects that are declared: only the other writer may delete them.
        self.wanted: set[str] = set()
        self._known: set[str] = set()

    def objects(self) -> set[str]:
        """All that there is."""
        databases = {
            f"d/{key.partition('/')[2]}/{name}"
            for key, instance in self.sql.state.instances.items()
            for name in instance.databases
            if name.startswith("soak-")
        }
        return {f"b/{name}" for name in self.storage.state.buckets} | databases | self._catalogue_objects()

    def _catalogue_objects(self) -> set[str]:
        """Those of the catalogue. One whose creation goes on may still come to nothing."""
        state = self.google.state
        creating = {one.key for one in state.operations.values() if one.verb == "create" and not one.is_finished}
        named = [
            name
            for key, one in state.objects.items()
            if one.pending not in creating and (name := _counted_name(key, one.body)) is not None
        ]
        self.effects.wrong += [f"{name} is there twice" for name, times in Counter(named).items() if times > 1]
        return set(named)

    def key_of(self, name: str) -> str | None:
        """The key of an object of the catalogue in the state, by its name in the counts."""
        found = self.google.state.objects.items()
        return next((key for key, one in found if _counted_name(key, one.body) == name), None)

    def path_of(self, path: str, name: str) -> str:
        """The path of an object, with the id that its service has made where `path` has the name of the resource."""
        key = self.key_of(name) if name.startswith("c/") else None
        return path if key is None else f"{path.rpartition('/')[0]}/{key.rpartition('/')[2]}"

    def handle(self, request: CloudRequest) -> ServiceResponse | None:
        """See Cloud.handle."""
        answer = super().handle(request)
        # After every request: a client that learns from the answer that an object is gone may create it again at once.
        self.count()
        status = None if answer is None else answer.status
        is_busy = any(word in str(answer and answer.body) for word in ("operationInProgress", "ABORTED"))
        if request.method == "POST" and status == 409 and not is_busy:
            self.effects.wrong.append(f"POST {request.path} for something that is there already")
        return answer

    def delete_as_other_writer(self, name: str) -> None:
        """The other writer deletes a bucket, or an object of the catalogue; by its name in the counts."""
        self.count()
        if name.startswith("b/"):
            del self.storage.state.buckets[name[2:]]
        else:
            del self.google.state.objects[str(self.key_of(name))]
        self._known.discard(name)
        self.effects.deleted_by_other_writer[name] = self.effects.deleted_by_other_writer.get(name, 0) + 1

    def count(self) -> None:
        """Takes note of what came and went since the last time: a deletion may take effect after its answer."""
        before, self._known = self._known, self.objects()
        for name in self._known - before:
            self.effects.created[name] = self.effects.created.get(name, 0) + 1
        for name in before - self._known:
            self.effects.deleted[name] = self.effects.deleted.get(name, 0) + 1
            if name in self.wanted:
                self.effects.wrong.append(f"{name} was deleted while its author wanted it")


def _counted_name(key: str, body: Mapping[str, Any]) -> str | None:
    """The name under which an object is counted; None for one that is not of the soak.

    One whose id its service makes is known by a label, or by the member that tells it from others.
    """
    collection, _, own = key.rpartition("/")
    found = [own, *(body.get(name, {}).get(NAME_LABEL) for name in _LABELS), body.get("shortName")]
    found.append(body.get("groupKey", {}).get("id"))
    name = next((one for one in found if isinstance(one, str) and one.startswith("soak-")), None)
    return None if name is None else catalogue_object_name(f"{collection}/{name}")


def catalogue_object_name(key: str) -> str:
    """The name under which an object of the catalogue is counted, from its key in the state."""
    return f"c/{key}"


def object_name(path: str) -> str:
    """The name under which an object is counted, from its path in the API."""
    if found := _BUCKET.fullmatch(path):
        return f"b/{found[1]}"
    found = _DATABASE.fullmatch(path)
    assert found is not None, path
    return f"d/{found[1]}/{found[2]}"

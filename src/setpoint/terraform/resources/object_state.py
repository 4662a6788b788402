"""What is kept of an object between calls: computed attributes, private state, and notes of interrupted creates.

Terraform plans a second time when it applies, in another process, without the state of the object that is replaced. So
the first plan notes on disk, for the working directory of Terraform, which object is kept; and a create notes which
object it is about to make, in case the process is killed. If a note is lost, nothing is adopted and nothing is deleted.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from setpoint.core.unstructured import text_at
from setpoint.core.values.canonical import digest
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.objects.settled_objects import SettledObject
from setpoint.terraform.connections.clusters import ClusterConnections, ClusterLocation
from setpoint.terraform.cty.json_trees import from_untyped
from setpoint.terraform.cty.types import DYNAMIC
from setpoint.terraform.cty.values import UNKNOWN, AttributeValues, CtyValue, Dynamic
from setpoint.terraform.resources.object_config import (
    annotated_id,
    ignored_paths,
    kubernetes_object_name,
    kubernetes_object_spec,
    object_identity,
    read_manifest,
)

if TYPE_CHECKING:
    from setpoint.objects.session import ObjectSession


class PrivateState(msgspec.Struct, frozen=True, omit_defaults=True):
    """The private state of a resource: bytes that Terraform stores and only the provider reads."""

    # The status of the KubernetesObject, as `engine_state` makes it: the stored state of the engine.
    engine: dict[str, Any] = {}
    # Whether the object exists and its wait is not satisfied.
    is_pending: bool = False
    # Of a pending object: whether Terraform has not tainted it. That of an update is not, nor one whose value was lost.
    is_untainted: bool = False
    # In a plan: the ID of the existing object that the create adopts.
    adopts: str = ""
    # A second ID under which the object may be managed: the one before an import, or the next one during an adoption.
    takes: str = ""
    # Of an object whose state was moved here, until its first apply: the field managers of the tool that managed it,
    # which are taken over from.
    taken_over: tuple[str, ...] = ()
    # Of `setpoint_wait`: the satisfaction key of the wait.
    satisfied_for: str = ""
    # The object as the last apply left it; None where something was left to do, and of an earlier version.
    settled: SettledObject | None = None
    # The uid of an object that was imported, or read since it was applied; that of an applied one is in `engine`.
    uid: str = ""

    def to_bytes(self) -> bytes:
        """The bytes that Terraform stores."""
        return msgspec.json.encode(self)

    @property
    def object_uid(self) -> str:
        """The uid of the object; empty when none was stored, as in a state of an earlier version."""
        return self.uid or text_at(self.engine, "object", "uid")

    def of_object(self, live: Json) -> "PrivateState":
        """The same with the uid of this live object."""
        uid = text_at(live, "metadata", "uid")
        return self if uid == self.object_uid else msgspec.structs.replace(self, uid=uid)

    def pending(self, engine: dict[str, Any]) -> "PrivateState":
        """The same of an object whose value is waited for again."""
        is_untainted = self.is_untainted or not self.is_pending
        return msgspec.structs.replace(self, engine=engine, is_pending=True, is_untainted=is_untainted)

    @property
    def settled_object(self) -> SettledObject | None:
        """`settled`, unless there is more to be done with the object than to compare it."""
        return None if self.is_pending or self.adopts or self.takes or self.taken_over else self.settled

    def with_value(self) -> "PrivateState":
        """The same once the value is there. A tainted object stays pending: otherwise it would be replaced."""
        return msgspec.structs.replace(self, is_pending=False, is_untainted=False) if self.is_untainted else self


def read_private_state(private: bytes) -> PrivateState:
    """The state that `to_bytes` wrote; an empty one when the bytes cannot be decoded."""
    try:
        found = msgspec.json.decode(private, type=PrivateState) if private else PrivateState()
    except msgspec.DecodeError:
        return PrivateState()
    # An earlier version stored more.
    return found if found.settled else msgspec.structs.replace(found, engine=engine_state(found.engine))


def engine_state(status: JsonObject) -> dict[str, Any]:
    """What the next call needs of the status of a KubernetesObject: nothing that repeats the manifest or an attribute.

    The record of the last step, messages and the values of other writers may be secret; the output is the attribute
    `status`.
    """
    # Imported on use: an object that is as its last apply left it needs no engine.
    from setpoint.engine.references import OUTPUT
    from setpoint.engine.state import CONTESTS, ENGINE_STATE, READY_DETAILS, without_step_record

    kept = {name: value for name, value in without_step_record(status).items() if name != OUTPUT}
    conditions, ours = kept.get("conditions"), kept.get(ENGINE_STATE)
    if isinstance(conditions, list):
        kept["conditions"] = [{**one, "message": ""} if isinstance(one, dict) else one for one in conditions]
    if isinstance(ours, Mapping):
        kept[ENGINE_STATE] = {name: value for name, value in ours.items() if name not in (CONTESTS, READY_DETAILS)}
    return kept


# --- Interrupted creates ---------------------------------------------------------------------------------------------


_DEFINITION: Final = "CustomResourceDefinition"


class InterruptedCreate(NamedTuple):
    """The ID of an object whose create did not finish; and its uid, once it was seen."""

    id: str = ""
    uid: str = ""


class InterruptedCreates:
    """The ID of each object whose create did not finish: known to this process, and noted in `directory`.

    `working_directory` is the one of Terraform: each has its own notes.
    """

    def __init__(self, directory: Path | None, working_directory: str) -> None:
        self._read: dict[ClusterLocation, InterruptedCreate] = {}
        self._planned: dict[ClusterLocation, InterruptedCreate] = {}
        self._finished: set[ClusterLocation] = set()
        self._lost: set[str] = set()
        self._directory = directory
        self._working_directory = working_directory

    def add_read(self, location: ClusterLocation, id_: str, uid: str = "") -> None:
        """The state of the object, which was just read, has it as pending under `id_`."""
        self._read[location] = InterruptedCreate(id_, uid)

    def add_planned(self, location: ClusterLocation, id_: str, uid: str = "") -> None:
        """The plan that is being applied adopts the object under `id_`."""
        self._planned[location] = InterruptedCreate(id_, uid)

    def add_lost(self, id_: str) -> None:
        """Another writer has made the object again that the state has under `id_`: the user has been warned."""
        self._lost.add(id_)

    def is_lost(self, id_: str) -> bool:
        """Whether this process found that the object of `id_` is another one."""
        return id_ in self._lost

    def note(self, location: ClusterLocation, id_: str, uid: str = "") -> None:
        """Notes the ID on disk, for later processes; and the uid of an object that exists."""
        if (file := self._file(location)) is not None:
            # Without a home directory, or with a read-only one, only this process knows of it.
            with suppress(OSError):
                file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                file.write_text(f"{id_} {uid}".strip(), encoding="ascii")
        self._finished.discard(location)

    def at(self, location: ClusterLocation) -> InterruptedCreate:
        """The interrupted create at `location`; an empty one when there is none."""
        if found := self._read.get(location) or self._planned.get(location):
            return found
        if (file := self._file(location)) is not None and location not in self._finished:
            with suppress(OSError, UnicodeDecodeError):
                id_, _, uid = file.read_text(encoding="ascii").partition(" ")
                return InterruptedCreate(id_, uid)
        return InterruptedCreate()

    def is_found_here(self, location: ClusterLocation) -> bool:
        """Whether this process read it from the state: then the user has not been warned yet."""
        return location in self._read

    def finish(self, location: ClusterLocation) -> None:
        """The create at `location` has been answered. Its note is for later processes, until Terraform has the state.

        Terraform writes the state a while after the answer, to some backends twenty seconds.
        """
        for known in (self._read, self._planned):
            known.pop(location, None)
        self._finished.add(location)

    def forget_finished(self) -> None:
        """Terraform has the state of every object."""
        for location in self._finished:
            self.forget(location)

    def forget(self, location: ClusterLocation) -> None:
        """The state has the object, or the object has another ID by now."""
        for known in (self._read, self._planned):
            known.pop(location, None)
        if (file := self._file(location)) is not None:
            with suppress(OSError):
                file.unlink(missing_ok=True)

    def _file(self, location: ClusterLocation) -> Path | None:
        name = digest([self._working_directory, location.cluster, location.location])
        return None if self._directory is None else self._directory / "pending" / name


# --- Definitions that change -----------------------------------------------------------------------------------------


class ChangingDefinitions:
    """The CustomResourceDefinitions that a plan of this process changes, by cluster, group and kind.

    A plan of their objects cannot ask the cluster about fields and versions that do not exist yet. Terraform plans what
    an object depends on first; when it applies, it plans the object again, once its definition has changed.
    """

    def __init__(self) -> None:
        self._kinds: set[tuple[str, str, str]] = set()

    def note(self, cluster: str, tree: Json) -> None:
        """A plan changes the object of this manifest. It counts if that is a definition."""
        group = text_at(tree, "spec", "group")
        if text_at(tree, "kind") == _DEFINITION and text_at(tree, "apiVersion").startswith("apiextensions.k8s.io/"):
            self._kinds.add((cluster, group, text_at(tree, "spec", "names", "kind")))

    def is_changing(self, cluster: str, tree: Json) -> bool:
        """Whether the definition of the object of this manifest changes."""
        group = text_at(tree, "apiVersion").rpartition("/")[0]
        return (cluster, group, text_at(tree, "kind")) in self._kinds


# --- The object and its computed attributes --------------------------------------------------------------------------


def session_for(
    clusters: ClusterConnections, values: AttributeValues, id_: str, private: PrivateState
) -> "ObjectSession":
    """A session for the object that these attributes declare, managed under `id_`."""
    from setpoint.objects.session import ObjectSession

    tree, cluster = read_manifest(values), clusters.session(values.get("cluster"))
    spec = kubernetes_object_spec(values, tree, id_, private.taken_over)
    if private.settled is not None and private.settled.plural:
        served = private.settled.served(text_at(tree, "apiVersion"), text_at(tree, "kind"))
        if served is not None:
            cluster.assume(served)
    return ObjectSession(cluster, kubernetes_object_name(id_), spec, private.engine)


async def location_of(
    clusters: ClusterConnections, values: AttributeValues, session: "ObjectSession"
) -> ClusterLocation:
    """The location of the object of a session: the same with other credentials."""
    return ClusterLocation(clusters.location_key(values.get("cluster")), await session.location())


def object_ref(tree: Json) -> AttributeValues:
    """The attribute `object_ref` of a live object."""
    return {
        "api_version": text_at(tree, "apiVersion"),
        "kind": text_at(tree, "kind"),
        "name": text_at(tree, "metadata", "name"),
        "namespace": text_at(tree, "metadata", "namespace") or None,
    }


def planned_ref(tree: Json) -> AttributeValues:
    """The attribute `object_ref` of a manifest: whether its kind is namespaced is not known yet."""
    return {**object_ref(tree), "namespace": UNKNOWN}


def projection(session: "ObjectSession", live: Json, values: AttributeValues) -> dict[str, CtyValue]:
    """The attribute `projection`: the declared fields of a live object."""
    return dict(session.fields(live, ignored_paths(values)))


def wait_output(status: Mapping[str, Json]) -> CtyValue:
    """The attribute `status`: the output of a `field` wait, in the status of the KubernetesObject."""
    output = status.get("output")
    if isinstance(output, Mapping) and output.get("state") == "known":
        return status_value(output.get("value"))
    return None


def status_value(pruned: Json) -> CtyValue:
    """The attribute `status` of an object that is pruned to a path: its own status, or else the whole pruned object."""
    return dynamic_value(pruned["status"] if isinstance(pruned, Mapping) and set(pruned) == {"status"} else pruned)


def dynamic_value(tree: Json) -> CtyValue:
    """A JSON tree as a value of the dynamic type."""
    found = from_untyped(tree, DYNAMIC)
    assert found is None or isinstance(found, Dynamic)
    return found


def is_managed_under(live: Json, id_: str, private: PrivateState) -> bool:
    """Whether a live object is managed under `id_`: by its annotation, or by its uid when it has none."""
    mark = annotated_id(live)
    if mark:
        return mark in (id_, private.takes)
    # A moved object has no annotation until its first apply, and not every tool has noted its uid.
    is_moved = bool(private.taken_over) and not private.object_uid
    return is_moved or text_at(live, "metadata", "uid") == private.object_uid


def note_key(clusters: ClusterConnections, values: AttributeValues, prior: AttributeValues | None) -> str:
    """The object that a plan is noted for: by its ID, or by its identity while it has none."""
    if prior is not None:
        return str(prior["id"])
    return digest([clusters.portable_key(values.get("cluster")), list(object_identity(read_manifest(values)))])

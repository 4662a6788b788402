"""What is kept of an object between calls: computed attributes, private state, and notes of interrupted creates.

Terraform plans a second time when it applies, in another process, without the state of the object that is replaced. So
the first plan notes on disk, for the working directory of Terraform, which object is kept; and a create notes which
object it is about to make, in case the process is killed. If a note is lost, nothing is adopted and nothing is deleted.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from setpoint.core.unstructured import text_at
from setpoint.core.values.canonical import digest
from setpoint.core.values.json_types import Json
from setpoint.terraform.cty.json_trees import from_untyped
from setpoint.terraform.cty.types import DYNAMIC
from setpoint.terraform.cty.values import UNKNOWN, AttributeValues, CtyValue, Dynamic
from setpoint.terraform.resources.clusters import ClusterConnections, ClusterLocation
from setpoint.terraform.resources.object_config import (
    annotated_id,
    ignored_paths,
    kubernetes_object_name,
    kubernetes_object_spec,
    read_manifest,
)

if TYPE_CHECKING:
    from setpoint.objects.session import ObjectSession


class PrivateState(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known from before."""

    # What the engine remembers.
    engine: dict[str, Any] = {}
    # Whether the object is there, and what is waited for is not.
    is_pending: bool = False
    # In a plan: the id under which the object was made that is to be kept.
    adopts: str = ""
    # Another id under which the object may be kept: of who kept it before an import, or of a new one in the making.
    takes: str = ""
    # Of a wait: what it was satisfied for.
    satisfied_for: str = ""

    def to_bytes(self) -> bytes:
        """For Terraform to keep."""
        return msgspec.json.encode(self)


def read_private_state(private: bytes) -> PrivateState:
    """What `to_bytes` wrote; what cannot be read is forgotten, never trusted."""
    try:
        return msgspec.json.decode(private, type=PrivateState) if private else PrivateState()
    except msgspec.DecodeError:
        return PrivateState()


class InterruptedCreates:
    """The id of each such object, in this process and in `folder`; `home` is where Terraform runs."""

    def __init__(self, folder: Path | None, home: str) -> None:
        self._seen: dict[ClusterLocation, str] = {}
        self._kept: dict[ClusterLocation, str] = {}
        self._folder = folder
        self._home = home

    def see(self, place: ClusterLocation, id_: str) -> None:
        """The object there is pending under `id_`: so its state says."""
        self._seen[place] = id_

    def keep(self, place: ClusterLocation, id_: str) -> None:
        """The same: so the plan says that is carried out."""
        self._kept[place] = id_

    def note(self, place: ClusterLocation, id_: str) -> None:
        """The same, for the apply that may follow."""
        if (file := self._file(place)) is not None:
            # Without a home, or with a read-only one, only what this process saw is kept.
            with suppress(OSError):
                file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                file.write_text(id_, encoding="ascii")

    def id_at(self, place: ClusterLocation) -> str:
        """Under which id the object there is pending; empty when it is not."""
        if found := self._seen.get(place) or self._kept.get(place):
            return found
        if (file := self._file(place)) is not None:
            with suppress(OSError, UnicodeDecodeError):
                return file.read_text(encoding="ascii")
        return ""

    def is_found_here(self, place: ClusterLocation) -> bool:
        """Whether this process found out: then nobody was told yet."""
        return place in self._seen

    def forget(self, place: ClusterLocation) -> None:
        """The object there is not pending, or no longer under that id."""
        for known in (self._seen, self._kept):
            known.pop(place, None)
        if (file := self._file(place)) is not None:
            with suppress(OSError):
                file.unlink(missing_ok=True)

    def _file(self, place: ClusterLocation) -> Path | None:
        name = digest([self._home, place.cluster, place.location])
        return None if self._folder is None else self._folder / "pending" / name


def session_for(sites: ClusterConnections, values: AttributeValues, id_: str, memory: PrivateState) -> "ObjectSession":
    """The object that these attributes declare, kept under `id_`."""
    from setpoint.objects.session import ObjectSession

    spec = kubernetes_object_spec(values, read_manifest(values), id_)
    return ObjectSession(sites.site(values.get("cluster")), kubernetes_object_name(id_), spec, memory.engine)


async def location_of(sites: ClusterConnections, values: AttributeValues, single: "ObjectSession") -> ClusterLocation:
    """Where that object is."""
    return ClusterLocation(sites.key(values.get("cluster")), await single.location())


def object_ref(of: Json) -> AttributeValues:
    """Which object it is, as a cluster says."""
    return {
        "api_version": text_at(of, "apiVersion"),
        "kind": text_at(of, "kind"),
        "name": text_at(of, "metadata", "name"),
        "namespace": text_at(of, "metadata", "namespace") or None,
    }


def planned_ref(tree: Json) -> AttributeValues:
    """The same before a cluster has said whether its kind has namespaces."""
    return {**object_ref(tree), "namespace": UNKNOWN}


def projection(single: "ObjectSession", of: Json, values: AttributeValues) -> dict[str, CtyValue]:
    """What is declared of an object."""
    return dict(single.fields(of, ignored_paths(values)))


def wait_output(memory: Mapping[str, Json]) -> CtyValue:
    """The value that the engine found, where one is waited for."""
    output = memory.get("output")
    if isinstance(output, Mapping) and output.get("state") == "known":
        return status_value(output.get("value"))
    return None


def status_value(cut: Json) -> CtyValue:
    """What `status` shows of an object that is cut to a path: what is below its own status, or all of the way."""
    return dynamic_value(cut["status"] if isinstance(cut, Mapping) and set(cut) == {"status"} else cut)


def dynamic_value(tree: Json) -> CtyValue:
    """A tree as a value of the dynamic type."""
    found = from_untyped(tree, DYNAMIC)
    assert found is None or isinstance(found, Dynamic)
    return found


def is_managed_under(live: Json, id_: str, memory: PrivateState) -> bool:
    """Whether an object is the one of that id; one that lost the word for it still is."""
    return annotated_id(live) in ("", id_, memory.takes)

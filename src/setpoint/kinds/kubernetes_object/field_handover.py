"""Hand-over of fields: a KubernetesObject becomes the owner of the fields that former field managers own.

A forced apply alone would leave a former manager as the second owner of every field that has the same value, and such a
field would stay in the object when the manifest leaves it out.
"""

from collections.abc import Collection, Mapping
from typing import Final

from setpoint.core.unstructured import text_at
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path, get_at
from setpoint.errors import HeldByOthers
from setpoint.kinds.kubernetes_object.managed_fields import APPLY, NO_FIELDS, FieldSet, union

_MANAGED: Final = Path(("metadata", "managedFields"))


def conflict_with_others(error: HeldByOthers, former: Collection[str]) -> HeldByOthers | None:
    """The conflict without the fields that former managers own; None when no other field is left."""
    left = tuple((field, manager) for field, manager in error.held if manager not in former)
    if len(left) == len(error.held):
        return error
    return HeldByOthers(str(error), left) if left else None


def handover_patch(live: Json, former: Collection[str], manager: str) -> list[dict[str, Json]] | None:
    """The JSON patch that makes `manager` the owner of the fields of `former`; None when these own none.

    It fails when the object was changed since `live`.
    """
    found = get_at(live, _MANAGED)
    entries = [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []
    handed = [one for one in entries if text_at(one, "manager") in former and not text_at(one, "subresource")]
    if not handed:
        return None
    own = [one for one in entries if _is_own(one, manager)]
    version = text_at(live, "apiVersion")
    # Fields of another version may have other names: they are given up.
    merged = [one for one in (*own, *handed) if text_at(one, "apiVersion") == version]
    kept: list[Json] = [one for one in entries if one not in handed and one not in own]
    if merged:
        fields = _fields_of(merged)
        kept.append({**merged[0], "manager": manager, "operation": APPLY, "fieldsV1": fields})
    return [
        {"op": "replace", "path": "/metadata/managedFields", "value": kept},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": text_at(live, "metadata", "resourceVersion")},
    ]


def _is_own(entry: Mapping[str, Json], manager: str) -> bool:
    names = tuple(text_at(entry, name) for name in ("manager", "operation", "subresource"))
    return names == (manager, APPLY, "")


def _fields_of(entries: list[Mapping[str, Json]]) -> FieldSet:
    found = NO_FIELDS
    for entry in entries:
        fields = entry.get("fieldsV1")
        found = union(found, fields) if isinstance(fields, dict) else found
    return found

"""Members that several fields of one object stand for: which of the fields a live value is shown in.

A reference beside another one (`folderRef`, `organizationRef`) has the values of its own kind. One beside a text
(`networkIpRef`, `networkIp`), or a list of them beside a list of texts, is another way to write that text. An object
beside a map (`sensitiveLabels`, `labels`) has its own keys of the map.
"""

from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Any

from setpoint.catalogue.index import kinds_by_group
from setpoint.catalogue.rows import FieldFacts, facts_of
from setpoint.core.values.json_types import MISSING, Json, Missing


def shared_paths(paths: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """The fields whose member another field has, too."""
    counts = Counter(paths.values())
    return frozenset(name for name, path in paths.items() if path and counts[path] > 1)


def text_field(name: str, fields: Mapping[str, FieldFacts]) -> str:
    """The text, or list of texts, that a reference, or a list of them, is another way to write; empty for none."""
    facts, own = fields[name], fields[name].to or name
    if facts.ref is None or facts.within:
        return ""
    sort = "list" if facts.type == "list" else "string"
    others = ((other, its) for other, its in fields.items() if (its.to or other) == own and its.ref is None)
    return next((other for other, its in others if its.type == sort and not its.fields and not its.secret), "")


def with_texts(found: dict[str, Any], fields: Mapping[str, FieldFacts]) -> dict[str, Any]:
    """Fields of a spec, with the texts of references in the fields of texts that they are another way to write."""
    for name in [one for one in found if one in fields and text_field(one, fields)]:
        value, whole = found.pop(name), text_field(name, fields)
        if isinstance(value, list):
            found[whole] = [*(found.get(whole) or ()), *(_text(one) for one in value)]
        elif value is not None:
            found[whole] = _text(value)
    return found


def _text(value: Any) -> Any:  # noqa: ANN401 - JSON
    return value.get("external") if isinstance(value, Mapping) else value


def own_part(value: Any, name: str, fields: Mapping[str, FieldFacts]) -> Json | Missing:  # noqa: ANN401 - JSON
    """The part of a live value that a field stands for; MISSING where it is another field's."""
    facts, own = fields[name], fields[name].to or name
    others = {other: its for other, its in fields.items() if (its.to or other) == own and other != name}
    found: Json | Missing = value
    if text_field(name, fields):
        found = MISSING
    elif facts.ref is not None and any(its.ref is not None for its in others.values()):
        found = _own_references(value, facts)
    elif facts.type == "map" and isinstance(value, Mapping):
        taken = {its.to or one for other in others.values() for one, its in other.fields.items()}
        found = {key: one for key, one in value.items() if key not in taken}
    return found


def _own_references(value: Any, facts: FieldFacts) -> Json | Missing:  # noqa: ANN401 - JSON
    if isinstance(value, list):
        return [one for one in value if _refers(one, facts)] or MISSING
    found: Json | Missing = value if _refers(value, facts) else MISSING
    return found


def _refers(value: Any, facts: FieldFacts) -> bool:  # noqa: ANN401 - JSON
    """Whether a live value is one of this reference's kinds."""
    assert facts.ref is not None
    if isinstance(value, Mapping):
        return all(value.get(name) == one for name, one in facts.adds.items())
    if facts.ref.prefix:
        return facts.ref.prefix.strip("/") in str(value)
    collections = {_collection(kind) for kind in facts.ref.kinds} - {""}
    return not collections or not isinstance(value, str) or bool(collections & set(value.split("/")))


@cache
def _collection(kind: str) -> str:
    """The collection of a kind, as names of its objects have it: `folders`."""
    name = next((one for one in kinds_by_group() if one[1] == kind), None)
    parts = [] if name is None else facts_of(name).name.split("/")
    return parts[-2] if len(parts) > 1 else ""

"""Values of other resources in a manifest: `{"$ref": {…}}`, and `${ref:KIND/NAME:PATH}` inside text.

`$${ref:` is the plain text `${ref:`. A `$ref` whose value is text is none of ours.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from setpoint.core.paths import Path, nearest, scalar_text
from setpoint.core.values import MISSING, Json, Missing
from setpoint.engine.kind import ANY_GROUP, Value
from setpoint.engine.resource import ResourceRef
from setpoint.errors import Blocked, ManifestInvalid

REF: Final = "$ref"
_MEMBERS: Final = ("kind", "name", "namespace", "group", "path")
_NEEDED: Final = ("kind", "name", "path")
# In this order: what is escaped, what is whole, what only begins like one.
_INSIDE: Final = re.compile(
    r"(?P<escaped>\$\$\{ref:)|\$\{ref:(?P<target>[^:{}]*):(?P<path>[^{}]+)\}|(?P<broken>\$\{ref:)"
)


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest in which other resources may be named; `namespace` is where they are if nobody says."""

    tree: Json
    where: str
    namespace: str

    def needs(self) -> tuple[Value, ...]:
        """All that it names, each under the place where it stands; ManifestInvalid for what names nothing."""
        return tuple({need.field: need for need in self._walk(self.tree, self.where)}.values())

    def filled_in(self, values: Mapping[str, Json]) -> Json:
        """The manifest with the value of each need in its place; Blocked for one that is not among them."""
        return _Filling(self, values).value(self.tree, self.where)

    def _walk(self, tree: Json, at: str) -> Iterator[Value]:
        match tree:
            case dict() if _is_reference(tree):
                yield self.reference(tree, at)
            case dict():
                for name, below in tree.items():
                    yield from self._walk(below, f"{at}{_below(name)}")
            case list():
                for position, below in enumerate(tree):
                    yield from self._walk(below, f"{at}[{position}]")
            case str() if "${ref:" in tree:
                yield from (self.inside(found, at) for found in _INSIDE.finditer(tree) if not found["escaped"])
            case _:
                return

    def reference(self, tree: Mapping[str, Json], at: str) -> Value:
        """What `{"$ref": {…}}` names."""
        if len(tree) > 1:
            raise ManifestInvalid(f"{at}: {REF} stands for a whole value: leave out what is beside it")
        members = _members(tree[REF], at)
        kind, name, path = (members[one] for one in _NEEDED)
        group, namespace = members.get("group", ANY_GROUP), members.get("namespace", self.namespace)
        return Value(f"{at}.{REF}", ResourceRef(group, kind, namespace, name), _path(path, f"{at}.{REF}.path"))

    def inside(self, found: "re.Match[str]", at: str) -> Value:
        """What `${ref:…}` names in a text."""
        parts = (found["target"] or "").split("/")
        if found["broken"] or len(parts) not in (2, 3) or not all(parts):
            raise ManifestInvalid(
                f"{at}: write ${{ref:KIND/NAME:PATH}} or ${{ref:KIND/NAMESPACE/NAME:PATH}}; $${{ref: is plain text"
            )
        kind, _, group = parts[0].partition(".")
        namespace = parts[1] if len(parts) == 3 else self.namespace
        field = f"{at} {found[0]}"
        return Value(field, ResourceRef(group or ANY_GROUP, kind, namespace, parts[-1]), _path(found["path"], field))


@dataclass(frozen=True, slots=True)
class _Filling:
    manifest: Manifest
    values: Mapping[str, Json]

    def value(self, tree: Json, at: str) -> Json:
        match tree:
            case dict() if _is_reference(tree):
                return self._known(self.manifest.reference(tree, at))
            case dict():
                return {name: self.value(below, f"{at}{_below(name)}") for name, below in tree.items()}
            case list():
                return [self.value(below, f"{at}[{position}]") for position, below in enumerate(tree)]
            case str() if "${ref:" in tree:
                return _INSIDE.sub(lambda found: self._text(found, at), tree)
            case _:
                return tree

    def _text(self, found: "re.Match[str]", at: str) -> str:
        if found["escaped"]:
            return "${ref:"
        need = self.manifest.inside(found, at)
        text = scalar_text(self._known(need))
        if text is None:
            raise ManifestInvalid(f"{need.field}: the value is a list or a map, which has no place inside a text")
        return text

    def _known(self, need: Value) -> Json:
        found: Json | Missing = self.values.get(need.field, MISSING)
        if isinstance(found, Missing):
            raise Blocked(f"{need.field}: the value at {need.path} of {need.target} is not known yet")
        return found


def _is_reference(tree: Mapping[str, Json]) -> bool:
    return isinstance(tree.get(REF), dict)


def _below(name: str) -> str:
    return f".{name}" if "." not in name else str(Path((name,)))


def _members(data: Json, at: str) -> Mapping[str, str]:
    assert isinstance(data, dict)
    for name, text in data.items():
        if name not in _MEMBERS:
            near = nearest(name, _MEMBERS)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there is {', '.join(_MEMBERS)}"
            raise ManifestInvalid(f"{at}.{REF}.{name}: no such member; {hint}")
        if not isinstance(text, str) or not text:
            raise ManifestInvalid(f"{at}.{REF}.{name}: write text")
    for name in _NEEDED:
        if name not in data:
            raise ManifestInvalid(f"{at}.{REF}.{name} is missing: write kind, name and path")
    return data


def _path(text: str, where: str) -> Path:
    try:
        return Path.parse(text)
    except ManifestInvalid as error:
        raise ManifestInvalid(f"{where}: {error}") from error

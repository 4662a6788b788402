"""The fields of an object that one keeper declares, as flat texts that people can compare."""

from collections.abc import Iterable, Sequence
from typing import Final

from setpoint.core.canonical import canonical, digest
from setpoint.core.hiding import is_hidden, is_secret
from setpoint.core.paths import Path, child, scalar_text
from setpoint.core.values import MISSING, Json, Missing
from setpoint.errors import ManifestInvalid
from setpoint.kinds.kubernetes_object.ownership import fields_of, others_fields
from setpoint.kinds.kubernetes_object.projection import NO_FIELDS, project

# How much of a digest is shown: enough to see that a value is another one.
_SHOWN: Final = 12
# Say nothing that the object's own name does not say.
_IDENTITY: Final = tuple(Path.parse(text) for text in ("apiVersion", "kind", "metadata.name", "metadata.namespace"))


def declared_fields(of: Json, manager: str, left_out: Iterable[Path] = ()) -> dict[str, str]:
    """What `manager` declares of an object: each value as text, by its place."""
    leaves = project(of, fields_of(of, manager) or NO_FIELDS, others_fields(of)).leaves
    apart = (*left_out, *_IDENTITY)
    shown = {path: value for path, value in leaves.items() if not any(one.covers(path) for one in apart)}
    return {str(path): _text(path, value, of) for path, value in sorted(shown.items(), key=lambda one: str(one[0]))}


def fields_at(of: Json, places: Sequence[str]) -> dict[str, str]:
    """What stands at these places of an object now, whoever put it there; what is not there is left out."""
    found: dict[str, str] = {}
    for place in places:
        try:
            path = Path.parse(place)
        except ManifestInvalid:
            # Written by somebody who knew other places.
            continue
        value = _value_at(of, path)
        if not isinstance(value, Missing):
            found[place] = _text(path, value, of)
    return found


def _value_at(of: Json, path: Path) -> Json | Missing:
    found: Json | Missing = of
    for step in path.steps:
        found = _member(found, step) if isinstance(found, list) and isinstance(step, str) else child(found, step)
    return found


def _member(elements: Sequence[Json], text: str) -> Json | Missing:
    """An element of a set, which is told by itself."""
    return next((one for one in elements if scalar_text(one) == text), MISSING)


def _text(path: Path, value: Json, of: Json) -> str:
    if is_secret(of) and is_hidden(path):
        return f"(hidden, sha256 {digest([value])[:_SHOWN]})"
    return value if isinstance(value, str) else canonical(value).decode()

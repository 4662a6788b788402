"""The values of the fields of an object that one field manager declares, as text by path. Loads no engine."""

from collections.abc import Iterable, Sequence
from typing import Final

from setpoint.core.secret_paths import has_secret_fields, secret_within
from setpoint.core.values.canonical import canonical, digest
from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.core.values.paths import Path, scalar_text, value_below
from setpoint.errors import ManifestInvalid
from setpoint.kinds.kubernetes_object.managed_fields import (
    NO_FIELDS,
    foreign_fields,
    manager_fields,
    own_value,
    project,
)

# How much of a digest is shown: enough to see that a value changed.
_SHOWN: Final = 12
# Fields that only repeat the identity of the object.
_IDENTITY: Final = tuple(Path.parse(text) for text in ("apiVersion", "kind", "metadata.name", "metadata.namespace"))


def declared_fields(of: Json, manager: str, left_out: Iterable[Path] = ()) -> dict[str, str]:
    """The fields of an object that `manager` owns: each value as text, by its path."""
    shown = declared_values(of, manager, left_out)
    return {
        str(path): field_text(path, value, of) for path, value in sorted(shown.items(), key=lambda one: str(one[0]))
    }


def declared_values(of: Json, manager: str, left_out: Iterable[Path] = ()) -> dict[Path, Json]:
    """The values of the fields of an object that `manager` owns, by path."""
    leaves = project(of, manager_fields(of, manager) or NO_FIELDS, foreign_fields(of)).leaves
    apart = (*left_out, *_IDENTITY)
    return {path: value for path, value in leaves.items() if not any(one.covers(path) for one in apart)}


def fields_at(of: Json, places: Sequence[str]) -> dict[str, str]:
    """The values at these paths of an object, whichever field manager owns them; a missing one is left out.

    Of an object or list, without what other field managers have added below it.
    """
    found: dict[str, str] = {}
    foreign = foreign_fields(of)
    for place in places:
        try:
            path = Path.parse(place)
        except ManifestInvalid:
            # A path of another version of setpoint.
            continue
        value = value_at(of, path)
        if not isinstance(value, Missing):
            found[place] = field_text(path, own_value(value, of, path, foreign), of)
    return found


def value_at(of: Json, path: Path) -> Json | Missing:
    """The value at a path of a projection, in which the elements of a set go by their values; MISSING for none."""
    found: Json | Missing = of
    for step in path.steps:
        found = _member(found, step) if isinstance(found, list) and isinstance(step, str) else value_below(found, step)
    return found


def _member(elements: Sequence[Json], text: str) -> Json | Missing:
    """An element of a set, which is identified by its value."""
    return next((one for one in elements if scalar_text(one) == text), MISSING)


def field_text(path: Path, value: Json, of: Json) -> str:
    """The value of a field of an object as text; that of a secret hidden."""
    if has_secret_fields(of) and secret_within(of, path) is not None:
        return f"(hidden, sha256 {digest([value])[:_SHOWN]})"
    return value if isinstance(value, str) else canonical(value).decode()

"""Redaction: secret values never appear in a plan, event, log, error or report.

They are recognised by the schema (write-only fields), by being in a Kubernetes Secret, or, in a request body without a
schema, by the names of members. Whole documents: `secret_fields.py`. Single paths of objects: `secret_paths.py`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from operator import is_
from typing import Final

from setpoint.core.schema.shape import UNTYPED, AtomicList, Field, KeyedList, MapShape, ObjectShape, field_below
from setpoint.core.unstructured import group_kind
from setpoint.core.values.json_types import MISSING, Json
from setpoint.core.values.paths import Path, get_at, set_at

# Stands for a value that is not shown. A manifest with it is refused: it would become the value.
REDACTED: Final = "(redacted)"
# The annotation in which kubectl keeps a copy of the whole manifest, secret values included.
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
LAST_APPLIED_PATH: Final = Path(("metadata", "annotations", LAST_APPLIED))
# The values of a Secret.
SECRET_PATHS: Final = (Path(("data",)), Path(("stringData",)), LAST_APPLIED_PATH)
# Everything else in a Secret is a secret value, or one with a typing error in its name.
OPEN_SECRET_MEMBERS: Final = frozenset({"apiVersion", "kind", "metadata", "type", "immutable", "status"})
# A list of Secrets: its items have no kind of their own.
_SECRET_LIST: Final = ("", "SecretList")
_SECRET_WORDS: Final = ("Secret", "SecretList")
_SCALARS: Final = frozenset({str, int, float, bool, type(None)})
# Members with secret values, wherever they are.
SECRET_NAME: Final = re.compile(r"passw|secret|token|credential|(private|client|api)_?key|kubeconfig", re.IGNORECASE)


# --- By schema -------------------------------------------------------------------------------------------------------


def redact(value: Json, field: Field) -> Json:
    """`value` with every write-only field redacted; `value` itself when it holds none."""
    if value is None or field.is_open:
        return value
    if field.write_only:
        return REDACTED
    match field.shape:
        case ObjectShape() | MapShape() if isinstance(value, dict):
            redacted = {name: redact(entry, field_below(field, name) or UNTYPED) for name, entry in value.items()}
            return value if all(map(is_, redacted.values(), value.values())) else redacted
        case KeyedList(item=item) if isinstance(value, list | tuple):
            return _redacted_elements(value, item)
        case AtomicList(item=item) if isinstance(value, list | tuple):
            return _redacted_elements(value, Field(item))
        case _:
            return value


def _redacted_elements(value: Sequence[Json], field: Field) -> Json:
    redacted = [redact(element, field) for element in value]
    return value if all(map(is_, redacted, value)) else redacted


# --- Kubernetes Secrets ----------------------------------------------------------------------------------------------


def is_secret(object_: Json) -> bool:
    """Whether a Kubernetes object is a Secret."""
    return group_kind(object_) == ("", "Secret")


def is_secret_list(object_: Json) -> bool:
    """Whether a Kubernetes object is a list of Secrets."""
    return group_kind(object_) == _SECRET_LIST


def holds_secret_object(value: Json) -> bool:
    """Whether there is a Secret anywhere in `value`, as an object or in a manifest in text form."""
    if type(value) is dict or isinstance(value, Mapping):
        in_text = isinstance(text := value.get("manifest"), str) and "Secret" in text
        # Of most members the word decides, without a look at their group.
        is_one = value.get("kind") in _SECRET_WORDS and (is_secret(value) or is_secret_list(value))
        return in_text or is_one or _any_holds_secret(value.values())
    return _any_holds_secret(value) if isinstance(value, list | tuple) else False


def _any_holds_secret(values: Iterable[Json]) -> bool:
    return any(holds_secret_object(one) for one in values if type(one) not in _SCALARS)


# --- By name, without a schema ---------------------------------------------------------------------------------------


def redact_untyped(body: Json) -> Json:
    """A request body with the values of Secrets, and of members with a secret-sounding name, redacted."""
    if isinstance(body, Mapping) and body.get("kind") == "Secret":
        return _redacted_secret({name: redact_untyped(value) for name, value in body.items()})
    if isinstance(body, Mapping):
        return {
            name: REDACTED if SECRET_NAME.search(name) and holds_value(value) else redact_untyped(value)
            for name, value in body.items()
        }
    return [redact_untyped(entry) for entry in body] if isinstance(body, list | tuple) else body


def redact_record(record: Json, *, whole: bool) -> Json:
    """The record of a step without the values of fields with a secret-sounding name; with `whole`, of all fields."""
    if type(record) is dict or isinstance(record, Mapping):
        if "path" in record:
            return _redacted_change(record, whole=whole)
        return _redacted_members(record, whole=whole)
    return [redact_record(one, whole=whole) for one in record] if isinstance(record, (list, tuple)) else record


def _redacted_members(record: Mapping[str, Json], *, whole: bool) -> Json:
    # Most members are scalars.
    return {
        name: value if type(value) in _SCALARS else redact_record(value, whole=whole) for name, value in record.items()
    }


def _redacted_change(change: Mapping[str, Json], *, whole: bool) -> Json:
    shown = {**change}
    is_hidden = whole or SECRET_NAME.search(str(change["path"])) is not None
    for name in ("before", "after"):
        if name in change:
            side = change[name]
            shown[name] = REDACTED if is_hidden else side if type(side) in _SCALARS else redact_untyped(side)
    return shown


def _redacted_secret(secret: Json) -> Json:
    for path in SECRET_PATHS:
        if get_at(secret, path) is not MISSING:
            secret = set_at(secret, path, REDACTED)
    return secret


def holds_value(value: Json) -> bool:
    """Whether there is a value to redact: an object is a reference to a Secret, or is walked into."""
    return not isinstance(value, Mapping) and bool(value) and not isinstance(value, bool)

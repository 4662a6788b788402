"""The data of a Secret, as Kubernetes takes it. No error here ever holds a value."""

import base64
import binascii
from typing import Any, Final

from setpoint.core.paths import Path
from setpoint.engine.resource import SECRET, ResourceRef
from setpoint.stores.names import DATA_KEY
from setpoint.stores.wording import sort_of

_LINE_ENDS: Final = str.maketrans("", "", "\r\n")


def is_secret(ref: ResourceRef) -> bool:
    """Whether it is a core `v1` Secret."""
    return (ref.group, ref.kind) == SECRET


def fold_secret(body: dict[str, Any]) -> dict[str, str]:
    """Takes `data` and `stringData` out of `body`: all values as base64, `stringData` first where both name a key.

    ValueError names the key and what is wrong with it.
    """
    data = {key: _rewritten(key, value) for key, value in _entries(body, "data")}
    for key, value in _entries(body, "stringData"):
        data[key] = base64.b64encode(value.encode()).decode()
    return data


def _entries(body: dict[str, Any], member: str) -> list[tuple[str, str]]:
    entries = body.pop(member, None) or {}
    if not isinstance(entries, dict):
        raise ValueError(f"{member} is {sort_of(entries)}: write an object of texts")
    for key, value in entries.items():
        if not DATA_KEY.allows(key):
            raise ValueError(f"{Path((member, key))} cannot have that key: write {DATA_KEY}")
        if not isinstance(value, str):
            raise ValueError(f"{Path((member, key))} is {sort_of(value)}: write it as text, in quotes")
    return list(entries.items())


def _rewritten(key: str, text: str) -> str:
    """The one base64 form: without the line ends that Kubernetes allows in it."""
    try:
        plain = base64.b64decode(text.translate(_LINE_ENDS).encode(), validate=True)
    except binascii.Error:
        raise ValueError(f"{Path(('data', key))} is not base64: encode it, or write it under stringData") from None
    return base64.b64encode(plain).decode()

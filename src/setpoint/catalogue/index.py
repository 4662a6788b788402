"""The kinds of the catalogue by name, and those that are held back; no row is read."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from setpoint.core.unstructured import GroupKind

FOLDER: Final = Path(__file__).parent / "google"


class _Written(msgspec.Struct, frozen=True):
    group: str
    version: str
    recorded: bool = False


class IndexedKind(NamedTuple):
    """What is known of a kind without its row: its service, its version, and whether a recording shows it to be right.

    A kind that no recording shows is a preview.
    """

    service: str
    version: str
    is_recorded: bool


@cache
def indexed_kinds() -> Mapping[GroupKind, IndexedKind]:
    """Every kind that has a row, by group and name."""
    index = msgspec.json.decode((FOLDER / "index.json").read_bytes(), type=dict[str, dict[str, _Written]])
    return {
        (one.group, kind): IndexedKind(service, one.version, one.recorded)
        for service, kinds in index.items()
        for kind, one in kinds.items()
    }


@cache
def kinds_by_group() -> Mapping[GroupKind, str]:
    """The service of each kind, by group and name."""
    return {name: one.service for name, one in indexed_kinds().items()}


def is_preview(name: GroupKind) -> bool:
    """Whether it is a kind of the catalogue that no recording shows to be right."""
    found = indexed_kinds().get(name)
    return found is not None and not found.is_recorded


def held_kinds() -> Mapping[str, str]:
    """The kinds of Config Connector's that are known but have no row, and why."""
    return msgspec.json.decode((FOLDER / "held.json").read_bytes(), type=dict[str, str])

"""Which fields people changed, told without a memory: by what an object has and what its owner makes."""

from collections.abc import Mapping
from typing import assert_never

from setpoint.core.canonical import same
from setpoint.core.paths import Path, get_at
from setpoint.core.threeway import Edits, EntryList, EntryMap, Table, Whole, bare
from setpoint.core.values import Json, Missing


def edited_fields(live: Json, generated: Json, table: Table) -> tuple[Path, ...]:
    """The fields of `table` that hold something, and something else than `generated`; in the order of the table.

    Without a memory an owner's older value looks like a person's. An emptied field is never an edit; a map that lacks
    entries is one as long as it has any; so is a list in another order.
    """
    return tuple(
        path for path, edits in table.items() if _is_edited(get_at(live, path), get_at(generated, path), edits)
    )


def _is_edited(live: Json | Missing, generated: Json | Missing, edits: Edits) -> bool:
    match edits:
        case Whole(own=own):
            held = bare(live)
            return held is not None and not any(same(held, value) for value in (bare(generated), *own))
        case EntryMap():
            entries = _entries(live)
            return bool(entries) and not same(entries, _entries(generated))
        case EntryList():
            held = bare(live)
            return held is not None and not same(held, bare(generated))
        case _:
            assert_never(edits)


def _entries(value: Json | Missing) -> Json:
    """The entries of a map: there as soon as they are not null."""
    if not isinstance(value, Mapping):
        return bare(value)
    return {name: entry for name, entry in value.items() if entry is not None} or None

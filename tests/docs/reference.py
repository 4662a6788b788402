"""The reference of a kind, read off its types: a row for each field.

`python -m tests.docs.reference` rewrites the tables of the pages; what stands around them is written by hand.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
from msgspec import inspect

from setpoint.core.shape import Field, KeyedList, Mark, field_below, shape_of
from setpoint.core.values import MISSING
from setpoint.kinds.config_connector import Ref
from setpoint.kinds.gcp.sql_database import SqlDatabaseTree
from setpoint.kinds.gcp.sql_instance.spec import SqlInstanceTree
from setpoint.kinds.gcp.sql_user.spec import SqlUserTree
from setpoint.kinds.gcp.storage_bucket.spec import StorageBucketTree

FOLDER: Final = Path("docs/kinds")
PAGES: Final[Mapping[Path, type[msgspec.Struct]]] = {
    FOLDER / "sql-instance.md": SqlInstanceTree,
    FOLDER / "sql-database.md": SqlDatabaseTree,
    FOLDER / "sql-user.md": SqlUserTree,
    FOLDER / "storage-bucket.md": StorageBucketTree,
}
HEAD: Final = "| field | type | default | notes |\n|---|---|---|---|\n"
_TABLE: Final = re.compile(re.escape(HEAD) + r"(?:\|.*\n)*")
# In the order in which they are told.
WORDS: Final = {
    Mark.IMMUTABLE: "immutable",
    Mark.PROTECTED: "protected",
    Mark.CHOSEN: "chosen by the service",
    Mark.WRITE_ONLY: "write-only",
    Mark.ASKED: "sent once",
    Mark.OUTPUT_ONLY: "output",
}
_SCALARS: Final = {inspect.StrType: "text", inspect.IntType: "integer", inspect.BoolType: "true or false"}


def with_table(page: str, tree_type: type[msgspec.Struct]) -> str:
    """The page with the table that `tree_type` asks for."""
    table = HEAD + "".join(f"{row}\n" for row in rows_of(tree_type))
    rewritten, count = _TABLE.subn(lambda _: table, page)
    if count != 1:
        raise ValueError(f"a page has one table that starts with {HEAD!r}, not {count}")
    return rewritten


def rows_of(tree_type: type[msgspec.Struct]) -> list[str]:
    """A row for each field that an author may write."""
    top = _Place("", Field(shape_of(tree_type)), inspect.type_info(tree_type), is_required=True)
    parts = [part for part in _below(top) if part.path in ("spec", "metadata")]
    return [_row(place) for part in parts for place in _all_below(part)]


@dataclass(frozen=True, slots=True)
class _Place:
    """A field: what the shape says of it, and what its type does."""

    path: str
    field: Field
    type: inspect.Type
    is_required: bool


def _all_below(holder: _Place) -> Iterator[_Place]:
    for place in _below(holder):
        yield place
        yield from _all_below(place)


def _below(holder: _Place) -> Iterator[_Place]:
    """The fields in an object, or in the elements of a list of objects. A reference is told in one word."""
    match holder.type:
        case inspect.StructType(cls=cls, fields=fields) if cls is not Ref:
            for one in fields:
                below = field_below(holder.field, one.encode_name)
                assert below is not None
                path = f"{holder.path}.{one.encode_name}".lstrip(".")
                yield _Place(path, below, _plain(one.type), one.required)
        case inspect.ListType(item_type=item):
            yield from _below(_element(holder, item))
        case _:
            return


def _element(holder: _Place, item: inspect.Type) -> _Place:
    match holder.field.shape:
        case KeyedList(keys=keys, item=inside):
            return _Place(f"{holder.path}[{','.join(f'{key}=…' for key in keys)}]", inside, item, is_required=False)
        case _:
            inside = field_below(holder.field, 0) or Field(holder.field.shape)
            return _Place(f"{holder.path}[…]", inside, item, is_required=False)


def _plain(type_: inspect.Type) -> inspect.Type:
    """The type without null."""
    if not isinstance(type_, inspect.UnionType):
        return type_
    (plain,) = (one for one in type_.types if not isinstance(one, inspect.NoneType))
    return plain


def _row(place: _Place) -> str:
    default = "" if place.field.default is MISSING else f"`{msgspec.json.encode(place.field.default).decode()}`"
    words = ["required"] * place.is_required + [word for mark, word in WORDS.items() if mark in place.field.marks]
    cells = (f"`{place.path}`", _type(place), default, ", ".join(words))
    return "|" + "".join(f" {cell} |" if cell else " |" for cell in cells)


def _type(place: _Place) -> str:
    match place.field.shape:
        case KeyedList(keys=keys):
            return f"list of objects, told apart by {' and '.join(f'`{key}`' for key in keys)}"
        case _:
            return _type_name(place.type)


def _type_name(type_: inspect.Type) -> str:
    match _plain(type_):
        case inspect.StructType(cls=cls):
            return "reference" if cls is Ref else "object"
        case inspect.ListType(item_type=item):
            return f"list of {'objects' if isinstance(item, inspect.StructType) else _type_name(item)}"
        case inspect.DictType(value_type=value):
            return f"{_type_name(value)} by key"
        case inspect.LiteralType(values=values):
            return " or ".join(f"`{msgspec.json.encode(value).decode()}`" for value in values)
        case plain:
            return _SCALARS[type(plain)]


if __name__ == "__main__":
    for path, tree_type in PAGES.items():
        path.write_text(with_table(path.read_text(encoding="utf-8"), tree_type), encoding="utf-8")

"""Columns that the user names: `NAME:.metadata.name,REGION:.spec.region`; and sorting by a field."""

from collections.abc import Sequence
from typing import Final

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json
from setpoint.engine.resource import Resource
from setpoint.errors import ManifestInvalid
from setpoint.library.selecting.json_path import FieldPath, value_text

# What a column shows of a resource without the field.
NONE: Final = "<none>"
# Where a resource without the field is sorted.
_LAST: Final = (2, 0.0, "")


@dataclass(frozen=True, slots=True)
class CustomColumns:
    """Headers, each with the path of its values."""

    columns: tuple[tuple[str, FieldPath], ...]

    @staticmethod
    def parse(text: str) -> "CustomColumns":
        """The columns written as `text`; ManifestInvalid names the column that is wrong."""
        found = []
        for number, part in enumerate(text.split(","), 1):
            header, sign, path = part.partition(":")
            where = f"custom-columns: column {number}, {part!r}"
            if not sign or not header.strip() or not path.strip():
                raise ManifestInvalid(f"{where}: write HEADER:PATH, such as REGION:.spec.region")
            found.append((header.strip(), FieldPath.parse(_bare(path, where), where)))
        return CustomColumns(tuple(found))

    @property
    def headers(self) -> Sequence[str]:
        """The headers."""
        return [header for header, _ in self.columns]

    def row(self, document: Json) -> Sequence[str]:
        """The values of a document, one for each column."""
        return [",".join(map(value_text, path.values(document))) or NONE for _, path in self.columns]


def _bare(text: str, where: str) -> str:
    """The path without the braces around it; ManifestInvalid for one brace alone."""
    bare = text.strip()
    if bare.startswith("{") is not bare.endswith("}"):
        raise ManifestInvalid(f"{where}: write a path such as .spec.region, or {{.spec.region}}")
    return bare.removeprefix("{").removesuffix("}")


def sorted_by(resources: Sequence[Resource], text: str) -> list[Resource]:
    """The resources in the order of a field: numbers before texts, and those without it at last. ManifestInvalid where
    none of several has it, as with kubectl.
    """
    where = f"--sort-by {text!r}"
    path = FieldPath.parse(_bare(text, where), where)
    keys = {one.ref: _sort_key(next(path.values(dict(one.document)), None)) for one in resources}
    if len(keys) > 1 and all(key == _LAST for key in keys.values()):
        raise ManifestInvalid(f"{where}: none of these {len(keys)} resources has the field; write one that they have")
    return sorted(resources, key=lambda one: keys[one.ref])


def _sort_key(found: Json) -> tuple[int, float, str]:
    if found is None:
        return _LAST
    if isinstance(found, bool | int | float):
        return 0, float(found), ""
    return 1, 0.0, value_text(found)

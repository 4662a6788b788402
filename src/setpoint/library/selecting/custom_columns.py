"""Columns that the user names: `NAME:.metadata.name,REGION:.spec.region`; and sorting by a field."""

from collections.abc import Iterable, Sequence
from typing import Final

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json
from setpoint.engine.resource import Resource
from setpoint.errors import ManifestInvalid
from setpoint.library.selecting.json_path import FieldPath, value_text

# What a column shows of a resource without the field.
NONE: Final = "<none>"


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
            found.append((header.strip(), FieldPath.parse(_bare(path), where)))
        return CustomColumns(tuple(found))

    @property
    def headers(self) -> Sequence[str]:
        """The headers."""
        return [header for header, _ in self.columns]

    def row(self, document: Json) -> Sequence[str]:
        """The values of a document, one for each column."""
        return [",".join(map(value_text, path.values(document))) or NONE for _, path in self.columns]


def _bare(text: str) -> str:
    return text.strip().removeprefix("{").removesuffix("}")


def sorted_by(resources: Iterable[Resource], text: str) -> list[Resource]:
    """The resources in the order of a field: numbers before texts, and those without it at last."""
    path = FieldPath.parse(_bare(text), f"--sort-by {text!r}")

    def key(resource: Resource) -> tuple[int, float, str]:
        found = next(path.values(dict(resource.document)), None)
        if found is None:
            return 2, 0.0, ""
        if isinstance(found, bool | int | float):
            return 0, float(found), ""
        return 1, 0.0, value_text(found)

    return sorted(resources, key=key)

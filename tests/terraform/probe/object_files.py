"""The objects of the probe provider: a folder in which every object is a JSON file that any process can change."""

import json
from collections.abc import Mapping
from pathlib import Path

from setpoint.terraform.cty.json_trees import from_untyped, to_untyped
from setpoint.terraform.cty.types import ObjectType
from setpoint.terraform.cty.values import AttributeValues


class ObjectFiles:
    """Objects by name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, name: str, type_: ObjectType) -> AttributeValues | None:
        """The object of that name; None when there is none."""
        file = self._file(name)
        if not file.exists():
            return None
        found = from_untyped(json.loads(file.read_text()), type_)
        assert isinstance(found, Mapping)
        return found

    def put(self, name: str, values: AttributeValues) -> None:
        """Makes or replaces an object."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._file(name).write_text(json.dumps(to_untyped(values)))

    def remove(self, name: str) -> None:
        """Removes an object, if it is there."""
        self._file(name).unlink(missing_ok=True)

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}.json"

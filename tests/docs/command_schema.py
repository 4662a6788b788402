"""`python -m tests.docs.command_schema` writes `docs/command-output.schema.json` anew from the types of the code."""

import json
from pathlib import Path
from typing import Final

from setpoint.library.command_document import schema

FILE: Final = Path("docs/command-output.schema.json")


def schema_text() -> str:
    """The JSON Schema of what `apply`, `plan`, `reconcile` and `delete` print with `-o json`."""
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **_members()}, indent=2) + "\n"


def _members() -> dict[str, object]:
    found = schema()
    assert isinstance(found, dict)
    return {**found}


if __name__ == "__main__":
    FILE.write_text(schema_text(), encoding="utf-8")

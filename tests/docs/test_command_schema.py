"""The schema of the documents of commands is that of the types; the page names every member and every outcome."""

import json
from pathlib import Path

from setpoint.library.command_document import ResultOutcome
from tests.docs.command_schema import FILE, schema_text

PAGE = Path("docs/command-output.md").read_text(encoding="utf-8")


def test_the_schema_is_made_from_the_types() -> None:
    assert FILE.read_text(encoding="utf-8") == schema_text(), "stale: run python -m tests.docs.command_schema"


def test_the_page_names_every_member_of_the_document() -> None:
    definitions = json.loads(schema_text())["$defs"]
    members = {*definitions["CommandDocument"]["properties"], *definitions["ResultData"]["properties"]}

    assert [name for name in sorted(members) if f"`{name}`" not in PAGE and f"].{name}`" not in PAGE] == []


def test_the_page_names_every_outcome() -> None:
    assert [one.value for one in ResultOutcome if f"`{one.value}`" not in PAGE] == []

"""`setpoint schema` in the language server that editors use: examples are valid, mistakes are underlined."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from setpoint.cli.main import main
from tests.cli.wrong_manifests import TABLE, rows_of
from tests.editor.language_server import LanguageServer

_BUCKET: Final = """apiVersion: storage.cnrm.cloud.google.com/v1beta1
kind: StorageBucket
metadata:
  name: photos
  annotations:
    cnrm.cloud.google.com/unmanaged: spec.versioning
spec:
  location: EU
  versioning:
    enabled: true
"""


def _printed(*arguments: str) -> str:
    done = CliRunner().invoke(main, ["schema", *arguments], prog_name="setpoint", catch_exceptions=False)
    assert done.exit_code == 0
    output: str = done.output
    return output


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LanguageServer]:
    """An editor with the schema of all kinds."""
    schema = tmp_path_factory.mktemp("schema") / "setpoint.json"
    schema.write_text(_printed(), encoding="utf-8")
    with LanguageServer(schema) as opened:
        yield opened


def test_every_example_is_valid_in_an_editor(editor: LanguageServer) -> None:
    files = sorted(Path("examples").rglob("*.yaml"))

    assert {str(file): editor.problems(file.name, file.read_text("utf-8")) for file in files} == {
        str(file): [] for file in files
    }
    assert len(files) == 6


def test_a_mistake_is_underlined_where_it_is(editor: LanguageServer) -> None:
    misspelt = editor.problems("misspelt.yaml", _BUCKET.replace("location", "locatoin"))
    wrong_type = editor.problems("type.yaml", _BUCKET.replace("enabled: true", "enabled: 7"))

    assert misspelt == [(8, "Property locatoin is not allowed.")]
    assert [line for line, _ in wrong_type] == [10]


def test_a_field_and_an_annotation_are_explained_on_hover(editor: LanguageServer) -> None:
    editor.problems("hover.yaml", _BUCKET)

    assert "Whether objects that are overwritten or deleted are kept" in editor.hover("hover.yaml", 10, 7)
    assert "that keep their live value" in editor.hover("hover.yaml", 6, 10)


def test_what_is_no_kind_of_ours_is_left_alone(editor: LanguageServer) -> None:
    assert editor.problems("other.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {}\nodd: 1\n") == []


def test_unknown_fields_of_the_table_are_underlined(editor: LanguageServer) -> None:
    """The same mistakes as `setpoint validate` finds, of those that a schema can see."""
    unknown = [row for row in rows_of(TABLE) if len(row.refused) == 1 and "there is no field spec." in row.refused[0]]
    missed = [row for row in unknown[::5] if not editor.problems("row.yaml", row.text)]

    assert len(unknown) > 100
    assert missed == []


def test_a_schema_of_some_kinds_has_no_others() -> None:
    assert "ComputeNetwork" not in _printed("StorageBucket")
    assert "StorageBucket" in _printed("-f", "examples/shop")

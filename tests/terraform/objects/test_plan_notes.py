"""The notes of plans: one process writes them, and another one finds what differs."""

import shutil
from pathlib import Path

import pytest

from setpoint.terraform.cty.types import STRING
from setpoint.terraform.cty.values import UNKNOWN, AttributeValues, Dynamic
from setpoint.terraform.resources.plan_notes import PlanNote, PlanNotes, known_parts, manifest_digest

SHOWN: AttributeValues = {
    "object_ref": {"kind": "ConfigMap", "namespace": UNKNOWN},
    "projection": {"data.a": "1", "data.b": "2"},
    "status": Dynamic(STRING, "Ready"),
    "yaml_body": "text",
    "manifest": UNKNOWN,
}
NOTE = PlanNote(manifest_digest({"kind": "ConfigMap"}), False, known_parts(SHOWN))


@pytest.mark.parametrize(
    ("change", "differing"),
    [
        ({}, []),
        ({"object_ref": {"kind": "ConfigMap", "namespace": "shop"}, "manifest": "anything"}, []),
        ({"projection": {"data.a": "1", "data.b": "3"}}, ['projection["data.b"]']),
        ({"projection": {"data.a": "1"}}, ['projection["data.b"]']),
        ({"projection": {"data.a": "1", "data.b": "2", "data.c": "3"}}, ['projection["data.c"]']),
        ({"projection": {"data.a": "1", "data.b": "2", "data.c": UNKNOWN}}, ["projection"]),
        ({"projection": UNKNOWN}, ['projection["data.a"]', 'projection["data.b"]']),
        ({"status": None, "yaml_body": "other"}, ["status", "yaml_body"]),
    ],
)
def test_what_was_known_has_to_stay_and_what_was_unknown_may_become_anything(
    change: AttributeValues, differing: list[str]
) -> None:
    assert NOTE.differing({**SHOWN, **change}) == differing


def test_a_note_is_for_one_working_directory_and_one_manifest_and_has_no_values(tmp_path: Path) -> None:
    PlanNotes(tmp_path, "/project").write("a", NOTE)
    later = PlanNotes(tmp_path, "/project")

    assert later.read("a", NOTE.manifest) == NOTE
    assert later.read("a", "another") is None
    assert later.read("b", NOTE.manifest) is None
    assert PlanNotes(tmp_path, "/elsewhere").read("a", NOTE.manifest) is None
    (file,) = (tmp_path / "planned").iterdir()
    assert "Ready" not in file.read_text()
    file.write_text("no JSON")
    assert later.read("a", NOTE.manifest) is None
    later.forget("a")
    assert not file.exists()


def test_a_note_of_a_manifest_that_was_unknown_is_for_any(tmp_path: Path) -> None:
    notes = PlanNotes(tmp_path, "/project")
    notes.write("a", PlanNote(manifest_digest(None), False, {}))

    assert notes.read("a", NOTE.manifest) is not None


def test_without_a_place_for_notes_there_are_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    for directory in (None, tmp_path / "file"):
        notes = PlanNotes(directory, "/project")
        notes.write("a", NOTE)

        assert notes.read("a", NOTE.manifest) is None
        notes.forget("a")


def test_notes_are_in_the_data_directory_of_terraform_and_go_where_it_is_copied_to(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    (here / ".terraform").mkdir(parents=True)
    environment = {"HOME": str(tmp_path / "home")}
    PlanNotes.of_terraform(environment, here).write("a", NOTE)
    shutil.copytree(here, there)

    assert PlanNotes.of_terraform({}, there).read("a", NOTE.manifest) == NOTE
    # Another data directory has notes of its own, and without one they are in the cache of the user.
    (tmp_path / "data").mkdir()
    other = {**environment, "TF_DATA_DIR": str(tmp_path / "data")}
    assert PlanNotes.of_terraform(other, here).read("a", NOTE.manifest) is None
    (here / ".terraform").rename(here / "moved")
    PlanNotes.of_terraform(environment, here).write("a", NOTE)
    assert PlanNotes.of_terraform(environment, here).read("a", NOTE.manifest) == NOTE
    assert list((tmp_path / "home").rglob("planned/*")) != []

"""Notes of patches on disk: what a killed process leaves half written goes with the note."""

from pathlib import Path

from setpoint.objects.patch_record import PatchRecord
from setpoint.terraform.patches.patch_state import PatchNotes

PLACE = "https://a.test v1 ConfigMap shop/settings @ own"


def test_a_note_is_forgotten_with_what_a_killed_process_left_of_it(tmp_path: Path) -> None:
    notes = PatchNotes(tmp_path, "/srv")
    for id_ in ("one", "two"):
        notes.write(PLACE, id_, PatchRecord("uid"))
    (folder,) = (tmp_path / "patches").iterdir()
    for id_ in ("one", "two"):
        (folder / f".{id_}.4711").write_text("{")

    notes.forget(PLACE, "one")

    assert sorted(file.name for file in folder.iterdir()) == [".two.4711", "two"]
    assert [id_ for id_, _ in notes.all(PLACE)] == ["two"]

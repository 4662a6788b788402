"""The notes of interrupted creates: one process writes them, and another reads them."""

from pathlib import Path

from setpoint.terraform.resources.clusters import ClusterLocation
from setpoint.terraform.resources.object_state import InterruptedCreates

HERE = ClusterLocation("a", "v1 Service shop/web")


def test_a_note_is_read_by_another_process_in_the_same_working_directory_until_it_is_removed(tmp_path: Path) -> None:
    InterruptedCreates(tmp_path / "cache", "/project").note(HERE, "8f3a1c2b9d04/1")
    after = InterruptedCreates(tmp_path / "cache", "/project")

    assert (after.id_at(HERE), after.is_found_here(HERE)) == ("8f3a1c2b9d04/1", False)
    assert after.id_at(ClusterLocation("b", HERE.location)) == ""
    assert InterruptedCreates(tmp_path / "cache", "/elsewhere").id_at(HERE) == ""
    after.forget(HERE)
    assert InterruptedCreates(tmp_path / "cache", "/project").id_at(HERE) == ""


def test_an_interrupted_create_in_a_state_or_a_plan_needs_no_note(tmp_path: Path) -> None:
    for cache in (None, tmp_path / "file"):
        (tmp_path / "file").write_text("no folder")
        interrupted = InterruptedCreates(cache, "/project")
        interrupted.note(HERE, "8f3a1c2b9d04/1")
        assert interrupted.id_at(HERE) == ""
        interrupted.add_planned(HERE, "8f3a1c2b9d04/1")
        assert (interrupted.id_at(HERE), interrupted.is_found_here(HERE)) == ("8f3a1c2b9d04/1", False)
        interrupted.add_read(HERE, "8f3a1c2b9d04/2")
        assert (interrupted.id_at(HERE), interrupted.is_found_here(HERE)) == ("8f3a1c2b9d04/2", True)
        interrupted.forget(HERE)

        assert interrupted.id_at(HERE) == ""

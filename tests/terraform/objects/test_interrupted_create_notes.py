"""The notes of interrupted creates: one process writes them, and another reads them."""

from pathlib import Path

from setpoint.terraform.connections.clusters import ClusterLocation
from setpoint.terraform.resources.object_state import InterruptedCreate, InterruptedCreates

HERE = ClusterLocation("a", "v1 Service shop/web")
NONE = InterruptedCreate()


def test_a_note_is_read_by_another_process_in_the_same_working_directory_until_it_is_removed(tmp_path: Path) -> None:
    InterruptedCreates(tmp_path / "cache", "/project").note(HERE, "8f3a1c2b9d04/1", "the-uid")
    after = InterruptedCreates(tmp_path / "cache", "/project")

    assert (after.at(HERE), after.is_found_here(HERE)) == (("8f3a1c2b9d04/1", "the-uid"), False)
    assert after.at(ClusterLocation("b", HERE.location)) == NONE
    assert InterruptedCreates(tmp_path / "cache", "/elsewhere").at(HERE) == NONE
    after.forget(HERE)
    assert InterruptedCreates(tmp_path / "cache", "/project").at(HERE) == NONE


def test_an_interrupted_create_in_a_state_or_a_plan_needs_no_note(tmp_path: Path) -> None:
    for cache in (None, tmp_path / "file"):
        (tmp_path / "file").write_text("no folder")
        interrupted = InterruptedCreates(cache, "/project")
        interrupted.note(HERE, "8f3a1c2b9d04/1")
        assert interrupted.at(HERE) == NONE
        interrupted.add_planned(HERE, "8f3a1c2b9d04/1")
        assert (interrupted.at(HERE), interrupted.is_found_here(HERE)) == (("8f3a1c2b9d04/1", ""), False)
        interrupted.add_read(HERE, "8f3a1c2b9d04/2", "the-uid")
        assert (interrupted.at(HERE), interrupted.is_found_here(HERE)) == (("8f3a1c2b9d04/2", "the-uid"), True)
        interrupted.forget(HERE)

        assert interrupted.at(HERE) == NONE


def test_the_note_of_a_create_that_was_answered_is_for_other_processes_until_terraform_has_the_state(
    tmp_path: Path,
) -> None:
    notes = InterruptedCreates(tmp_path, "/project")
    notes.note(HERE, "8f3a1c2b9d04/1")
    notes.finish(HERE)

    assert notes.at(HERE) == NONE
    assert InterruptedCreates(tmp_path, "/project").at(HERE) == ("8f3a1c2b9d04/1", "")
    notes.forget_finished()
    assert InterruptedCreates(tmp_path, "/project").at(HERE) == NONE
    notes.note(HERE, "8f3a1c2b9d04/2")
    assert notes.at(HERE) == ("8f3a1c2b9d04/2", "")

"""The kinds that recordings show to be right, and the others, which are previews."""

from pathlib import Path

import pytest

from setpoint.app.kind_reference import known_kinds
from setpoint.app.plugins import NO_PLUGINS
from setpoint.catalogue.index import indexed_kinds, is_preview
from tools.catalogue import recorded
from tools.catalogue.recorded import add_recorded, recorded_kinds, shown_kinds

REPORT = {
    "fixtures": [
        {"verdict": "passed", "writes": {"A": {"expected": 2, "equal": 2}, "B": {"expected": 0, "equal": 0}}},
        {"verdict": "failed", "writes": {"C": {"expected": 1, "equal": 1}}},
        {"verdict": "excluded"},
    ]
}
TOPIC, SNAPSHOT = (("pubsub.cnrm.cloud.google.com", kind) for kind in ("PubSubTopic", "PubSubSnapshot"))


def test_a_recording_that_passes_shows_the_kinds_that_it_writes() -> None:
    assert list(shown_kinds(REPORT)) == ["A"]


def test_the_list_only_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "RECORDED", tmp_path / "recorded.txt")
    (tmp_path / "recorded.txt").write_text("B\nC\n")

    assert add_recorded({"A", "B"}) == ["A"]
    assert (tmp_path / "recorded.txt").read_text() == "A\nB\nC\n"


def test_a_kind_that_is_not_on_the_list_is_a_preview() -> None:
    by_name = {name[1]: name for name in indexed_kinds()}

    assert {kind for kind in recorded_kinds() & by_name.keys() if is_preview(by_name[kind])} == set()
    assert {kind for kind in by_name.keys() - recorded_kinds() if not is_preview(by_name[kind])} == set()
    assert not is_preview(("apps", "Deployment"))


def test_the_list_of_kinds_says_which_are_previews() -> None:
    found = known_kinds(NO_PLUGINS, [TOPIC, SNAPSHOT]).kinds

    assert [found[name].source for name in (TOPIC, SNAPSHOT)] == ["built in", "built in, preview"]
    assert [found[name].to_data()["preview"] for name in (TOPIC, SNAPSHOT)] == [False, True]

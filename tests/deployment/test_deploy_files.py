"""What `deploy/` holds is what the one source of it says now."""

from pathlib import Path

import pytest

from tests.deployment.deploy_files import HEAD, files, stale
from tests.deployment.installed_objects import TYPES

WRITTEN = files(TYPES)


@pytest.mark.parametrize("path", WRITTEN, ids=str)
def test_a_file_is_up_to_date(path: Path) -> None:
    assert path.exists(), "run make manifests"
    assert path.read_text(encoding="utf-8") == WRITTEN[path], "stale: run make manifests"


def test_no_file_is_left_of_something_that_is_gone() -> None:
    assert stale(WRITTEN) == [], "run make manifests"


def test_a_file_that_would_not_be_written_any_more_is_found() -> None:
    gone = Path("deploy/kustomize/base/deployment.yaml")

    assert stale({path: text for path, text in WRITTEN.items() if path != gone}) == [gone]


def test_every_file_says_where_to_edit_it() -> None:
    assert all(text.startswith(HEAD) for text in WRITTEN.values())

"""The files in `deploy/` are as generated."""

from pathlib import Path

import pytest

from tests.deployment.deploy_files import HEAD, files, stale

WRITTEN = files()


@pytest.mark.parametrize("path", WRITTEN, ids=str)
def test_a_file_is_up_to_date(path: Path) -> None:
    assert path.exists(), "run make manifests"
    assert path.read_text(encoding="utf-8") == WRITTEN[path], "stale: run make manifests"


def test_no_generated_file_is_stale() -> None:
    assert stale(WRITTEN) == [], "run make manifests"


def test_a_file_that_is_no_longer_generated_is_stale() -> None:
    gone = Path("deploy/kustomize/base/deployment.yaml")

    assert stale({path: text for path, text in WRITTEN.items() if path != gone}) == [gone]


def test_every_generated_file_names_its_source() -> None:
    assert all(text.startswith(HEAD) for text in WRITTEN.values())

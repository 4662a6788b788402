"""Manifests of the docs and of Config Connector are accepted by our definitions and stored unchanged."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from setpoint.core.values.canonical import same
from setpoint.core.values.yaml_documents import read_documents
from tests.cluster.crds.resources import APIS, CustomResources

ROOT = Path(__file__).resolve().parents[3]
RECORDINGS = ROOT.parent / "shared" / "conformance" / "fixtures"
FENCE = re.compile(r"^```yaml\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# This page shows invalid manifests, and some others show one each.
PAGES = [page for page in (ROOT / "docs").rglob("*.md") if page.name != "errors.md"]
INVALID = {("check-manifests", 0), ("run-from-git", 4)}


def _documents(text: str, source: str) -> Iterator[Any]:
    for document in read_documents(re.sub(r"\$\{\w+\}", "placeholder", text), source):
        assert isinstance(document.value, dict)
        if document.value.get("kind") in APIS:
            yield document.value


def _in_docs() -> list[Any]:
    return [
        pytest.param(one, id=f"{page.stem}-{one['metadata']['name']}-{number}")
        for page in sorted(PAGES)
        for number, text in enumerate(FENCE.findall(page.read_text(encoding="utf-8")))
        if (page.stem, number) not in INVALID
        for one in _documents(text, page.name)
    ]


@pytest.mark.parametrize("document", _in_docs())
def test_a_manifest_of_the_docs_is_accepted_unchanged(resources: CustomResources, document: Any) -> None:
    # Without the namespace of the page.
    metadata = {name: value for name, value in document["metadata"].items() if name != "namespace"}

    accepted = resources.create_dry_run({**document, "metadata": metadata})

    assert accepted.status == 201, accepted.body
    assert same(accepted.body["spec"], document["spec"])


def _recordings() -> list[Path]:
    return sorted(path for path in RECORDINGS.glob("*") if path.is_dir())


def _recorded(recording: Path, name: str) -> list[Any]:
    file = recording / name
    return list(_documents(file.read_text(encoding="utf-8"), name)) if file.exists() else []


@pytest.mark.skipif(not _recordings(), reason="no recordings beside the project, in ../shared/conformance")
@pytest.mark.parametrize("recording", _recordings(), ids=lambda path: path.name)
def test_manifests_of_config_connector_are_accepted_unchanged(resources: CustomResources, recording: Path) -> None:
    for document in _recorded(recording, "dependencies.yaml"):
        assert resources.create_dry_run(document).status == 201
    (first,) = _recorded(recording, "create.yaml")
    made = resources.create(first)

    assert made.status == 201, made.body
    assert same(made.body["spec"], first["spec"])
    for document in _recorded(recording, "update.yaml"):
        changed = resources.change(made.body, document["spec"])
        assert changed.status == 200, changed.body
        assert same(changed.body["spec"], document["spec"])

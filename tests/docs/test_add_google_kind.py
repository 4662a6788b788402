"""The steps of the page on adding a kind of Google's."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from setpoint.catalogue import index, rows
from setpoint.localcloud.google import collections
from tests.cli.workspace import Workspace, user_environment
from tools.catalogue import discovery, exceptions
from tools.catalogue.__main__ import correct_rows
from tools.catalogue.discovery import Document
from tools.catalogue.entries import Rows
from tools.catalogue.generated import OUTPUT, texts
from tools.catalogue.references import Targets

PAGE: Final = Path("docs/how-to/add-a-google-kind.md")
SERVICE: Final = "blockchainnodeengine"
# What Google's document says of the collection.
DOCUMENT: Final = Path(__file__).parent / "blockchainnodeengine.v1.json"
LIVE: Final = f"/{SERVICE}.googleapis.com/v1/projects/some-project/locations/europe-west1/blockchainNodes/ledger"


def _fences(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def _document(_name: str) -> Document:
    found = json.loads(DOCUMENT.read_text("utf-8"))
    return Document(found["schemas"], found["resources"], found["servicePath"])


@pytest.fixture
def generated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The files that the generator makes of the facts and lines of the page, in the catalogue of this process."""
    folder = tmp_path / "google"
    shutil.copytree(OUTPUT, folder)
    (tmp_path / f"{SERVICE}.yaml").write_text(_fences("yaml")[0], "utf-8")
    monkeypatch.setattr(exceptions, "EXCEPTIONS", tmp_path)
    monkeypatch.setattr(discovery, "document", _document)
    found: Rows = json.loads(_fences("json")[0])
    correct_rows(SERVICE, found, Targets(["Project", *found]))
    made = texts({SERVICE: found})
    whole = json.loads((folder / "index.json").read_text("utf-8")) | json.loads(made["index.json"])
    (folder / "index.json").write_text(json.dumps(whole), "utf-8")
    (folder / f"{SERVICE}.json").write_text(made[f"{SERVICE}.json"], "utf-8")
    for module in (index, rows):
        monkeypatch.setattr(module, "FOLDER", folder)
    _forget_rows()
    yield made
    monkeypatch.undo()
    _forget_rows()


def _forget_rows() -> None:
    for module in (index, rows, collections):
        for kept in vars(module).values():
            if hasattr(kept, "cache_clear"):
                kept.cache_clear()


def test_the_row_is_made_of_the_facts_and_of_two_lines(generated: dict[str, str]) -> None:
    row: Any = json.loads(generated[f"{SERVICE}.json"])["BlockchainNode"]

    assert len(_fences("yaml")[0].splitlines()) - 1 == 2
    assert row["name"] == "projects/{project}/locations/{location}/blockchainNodes/{blockchainNode}"
    assert row["update_style"] == "patch-mask-query"
    assert row["fields"]["privateServiceConnect"]["to"] == "privateServiceConnectEnabled"
    assert json.loads(generated["held.json"]) == {}


@pytest.mark.usefixtures("generated")
def test_the_kind_is_planned_made_corrected_and_deleted(tmp_path: Path) -> None:
    folder = tmp_path / "user"
    folder.mkdir()
    with Workspace(folder, user_environment()) as workspace:
        workspace.environment["SETPOINT_GOOGLE_ENDPOINT"] = workspace.environment["STORAGE_EMULATOR_HOST"]
        workspace.write(_fences("yaml")[1])
        planned = workspace.run_in_process("plan")
        workspace.run_quietly("apply")
        again = workspace.run_in_process("plan")
        workspace.in_cloud(lambda cloud: cloud.edit(LIVE, {"privateServiceConnectEnabled": False}))
        drifted = workspace.run_in_process("plan")
        workspace.run_quietly("apply")
        corrected: Any = workspace.in_cloud(lambda cloud: cloud.call("GET", LIVE)).body
        workspace.run_quietly("delete", "BlockchainNode/ledger")
        gone = workspace.in_cloud(lambda cloud: cloud.call("GET", LIVE)).status

    assert (planned[0], again[0], drifted[0]) == (2, 0, 2)
    assert any("spec.privateServiceConnect" in line for line in drifted[1])
    assert (corrected["privateServiceConnectEnabled"], gone) == (True, 404)

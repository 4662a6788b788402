"""Plug-ins in a process that runs on, and owners of plug-ins."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.programs import Call, Piped
from tests.cluster.polling import until
from tests.plugins.installed_plugins import install
from tests.plugins.shop_workspace import ShopWorkspace, widget

RESYNC = {"cnrm.cloud.google.com/reconcile-interval-in-seconds": "1"}
PROGRAM = """
import atexit, sys
atexit.register(lambda: print("stickers:", "shop_setpoint.sticker" in sys.modules, flush=True))
from setpoint.cli.entry import main
main()
"""
OWNER = """
from dataclasses import dataclass, field

from msgspec import Struct

from setpoint import kind


class GreetingSpec(Struct, forbid_unknown_fields=True):
    language: str = "en"


class GreetingTree(Struct):
    spec: GreetingSpec


@dataclass
class GreetingOwner:
    group: str = "example.com"
    version: str = "v1"
    name: str = "Greeting"
    revision: int = 1
    annotations: tuple = ()
    tree_type: type = GreetingTree
    definition: kind.CrdDetails = kind.CrdDetails("A greeting.")
    makes: tuple = (kind.ObjectKind("", "v1", "ConfigMap", "configmaps"),)
    reads: tuple = ()
    finalizer: str = ""
    minimum_outputs: dict = field(default_factory=dict)

    def check(self, resource):
        kind.decode_spec(resource, GreetingSpec)

    def dependencies(self, resource):
        return ()

    def sources(self, resource):
        return ()

    def generate(self, resource, found):
        owned = [kind.owner_reference(resource.document)]
        metadata = {"name": resource.ref.name, "namespace": resource.ref.namespace, "ownerReferences": owned}
        page = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(resource.spec)}
        view = kind.FieldsView((kind.Path(("data",)),))
        return kind.GeneratedChildren((kind.Child(page, kind.ChildUpdatePolicy.OVERWRITE, view, {}),))

    def completed(self, child):
        return child.object

    def status_of(self, resource, children):
        return kind.OwnerStatus(kind.UP_TO_DATE, {"shown": len(children)})

    def deleted_first(self, resource):
        return ()


def make(context):
    return GreetingOwner()
"""


def test_an_owner_of_a_plug_in_makes_its_children(
    workspace: ShopWorkspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = install(tmp_path / "site", "greetings", "Greeting.v1.example.com/owner = greetings_owner:make")
    (site / "greetings_owner.py").write_text(OWNER, encoding="utf-8")
    monkeypatch.syspath_prepend(site)
    greeting = {"apiVersion": "example.com/v1", "kind": "Greeting", "metadata": {"name": "door"}}

    code, text = workspace.apply({**greeting, "spec": {"language": "fr"}})

    monkeypatch.delitem(sys.modules, "greetings_owner")
    assert (code, text.splitlines()[-1]) == (0, "created 1"), text
    assert workspace.get("ConfigMap/door")["data"] == {"language": "fr"}
    assert workspace.get("Greeting/door")["status"]["shown"] == 1


@pytest.fixture
def running(workspace: ShopWorkspace, installed: Path) -> Iterator[Piped]:
    """`setpoint run` for widgets alone; its output is its log, and at last whether stickers were loaded."""
    paths = os.pathsep.join(filter(None, (str(installed), os.environ.get("PYTHONPATH", ""))))
    own = {"PATH": os.environ["PATH"], "HOME": str(workspace.folder), "PYTHONPATH": paths, "PYTHONUTF8": "1"}
    arguments = ("--store", workspace.store, "run", "--kinds", "widget", "--log-format", "json")
    call = Call((sys.executable, "-c", PROGRAM, *arguments), workspace.folder, {**own, **workspace.environment})
    program = Piped(call, subprocess.STDOUT)
    try:
        program.until(lambda: '"event":"running"' in program.text)
        yield program
    finally:
        program.close()


def test_a_selected_kind_of_a_plug_in_is_reconciled_for_ever_and_no_other_is_loaded(
    workspace: ShopWorkspace, running: Piped
) -> None:
    code, text = workspace.apply(widget(size=3, annotations=RESYNC))
    assert (code, workspace.shop.widgets["one"]["size"]) == (0, 3), text

    workspace.shop.widgets["one"]["size"] = 9

    until(lambda: workspace.shop.widgets["one"]["size"] == 3)
    running.send(signal.SIGTERM)
    assert running.end() == 0
    assert running.text.splitlines()[-1] == "stickers: False"

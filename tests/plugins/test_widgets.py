"""What a kind of sixty lines gets from the engine, by the real commands on a real service."""

import gzip
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from setpoint.app import read_only
from setpoint.cli.commands.apply import apply
from setpoint.cli.commands.delete import delete
from setpoint.cli.commands.inspect import get
from setpoint.clients.http import HttpRequest
from setpoint.clients.write_guard import BlockedWrites
from setpoint.errors import WriteBlocked
from tests.cli.programs import DEADLINE
from tests.plugins.installed_plugins import SHOP
from tests.plugins.shop_server import TOKEN, Shop
from tests.plugins.shop_workspace import ShopWorkspace, widget

UNMANAGED = "cnrm.cloud.google.com/unmanaged"
IGNORE = "cnrm.cloud.google.com/ignore-unspecified-fields"
ABANDON = {"cnrm.cloud.google.com/deletion-policy": "abandon"}
MANAGEMENT = "setpoint.dev/management"
PASSWORD = {"valueFrom": {"secretKeyRef": {"name": "locks", "key": "password"}}}


def secret(password: str) -> dict[str, Any]:
    """The Secret with the password of a widget."""
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "locks"}, "stringData": {"password": password}}


def sticker(**reference: str) -> dict[str, Any]:
    """The manifest of a sticker: on the widget `one`, or another."""
    spec = {"widgetRef": reference or {"name": "one"}, "text": "fragile"}
    return {"apiVersion": "shop.example.com/v1", "kind": "Sticker", "metadata": {"name": "label"}, "spec": spec}


def changes(planned: Any) -> list[tuple[str, Any, Any, str]]:
    """Path, before, after and rule of each planned change."""
    found = planned["results"][0]["changes"]
    return [(one["path"], one.get("before"), one.get("after"), one["rule"]) for one in found]


def test_the_kind_has_at_most_sixty_lines() -> None:
    lines = (SHOP / "widget.py").read_text(encoding="utf-8").splitlines()

    assert len(lines) <= 60


# --- Create, update, drift --------------------------------------------------------------------------------------------


def test_a_widget_is_created_with_its_defaults_and_shows_its_outputs(workspace: ShopWorkspace) -> None:
    code, text = workspace.apply(widget(size=3))

    shown = workspace.shop.widgets["one"]
    assert (code, text.splitlines()) == (0, ["Widget default/one created", "created 1"])
    assert {name: shown[name] for name in ("size", "colour")} == {"size": 3, "colour": "grey"}
    assert workspace.get()["status"]["serial"] == shown["serial"]


def test_what_is_as_declared_is_read_once_and_not_written(workspace: ShopWorkspace) -> None:
    workspace.apply(widget(size=3))
    workspace.shop.requests.clear()

    code, text = workspace.apply(widget(size=3))

    assert (code, text.splitlines()[0]) == (0, "Widget default/one unchanged")
    assert workspace.shop.requests == [("GET", "/widgets/one")]


def test_a_change_of_the_author_is_planned_with_its_reason_and_sent(workspace: ShopWorkspace) -> None:
    workspace.apply(widget(size=3))

    code, planned = workspace.plan(widget(size=4))

    assert (code, planned["results"][0]["plan"]["decision"]) == (2, "intent changed")
    assert changes(planned) == [("spec.size", 3, 4, "spec")]
    assert workspace.apply(widget(size=4))[0] == 0
    assert workspace.shop.widgets["one"]["size"] == 4


def test_drift_is_told_from_a_change_and_put_back(workspace: ShopWorkspace) -> None:
    workspace.apply(widget(size=3))
    workspace.shop.widgets["one"] |= {"colour": "red", "size": 9}

    _, planned = workspace.plan(widget(size=3))

    assert planned["results"][0]["plan"]["decision"] == "drifted"
    assert sorted(changes(planned)) == [("spec.colour", "red", "grey", "default"), ("spec.size", 9, 3, "spec")]
    assert workspace.reconcile()[0] == 0
    assert (workspace.shop.widgets["one"]["size"], workspace.shop.widgets["one"]["colour"]) == (3, "grey")


def test_drift_of_an_unspecified_field_is_kept_where_the_policy_says_so(workspace: ShopWorkspace) -> None:
    declared = widget(size=3, annotations={IGNORE: "true"})
    workspace.apply(declared)
    workspace.shop.widgets["one"] |= {"colour": "red", "size": 9}

    workspace.apply(declared)

    assert (workspace.shop.widgets["one"]["size"], workspace.shop.widgets["one"]["colour"]) == (3, "red")


def test_an_unmanaged_field_keeps_its_live_value_though_the_spec_names_one(workspace: ShopWorkspace) -> None:
    declared = widget(size=3, colour="blue", annotations={UNMANAGED: "spec.colour"})
    workspace.apply(declared)
    workspace.shop.widgets["one"] |= {"colour": "red", "size": 9}

    workspace.apply(declared)

    assert (workspace.shop.widgets["one"]["size"], workspace.shop.widgets["one"]["colour"]) == (3, "red")


def test_a_change_of_an_immutable_field_is_refused_with_its_name(workspace: ShopWorkspace) -> None:
    workspace.apply(widget(size=3, shelf="left"))
    before = list(workspace.shop.writes)

    code, text = workspace.apply(widget(size=3, shelf="right"))

    assert (code, "spec.shelf" in text) == (1, True)
    assert workspace.shop.writes == before


def test_a_wrong_manifest_is_refused_with_every_wrong_field(workspace: ShopWorkspace) -> None:
    workspace.write(widget(size="large", colur="red"))

    done = run_setpoint(workspace, "apply", "-f", str(workspace.file))

    assert done.returncode == 1
    assert "spec.size is text: write a whole number, without quotes" in done.stderr
    assert "there is no field spec.colur; did you mean spec.colour?" in done.stderr
    assert workspace.shop.requests == []


# --- Whose object it is -----------------------------------------------------------------------------------------------


def test_an_object_that_was_there_is_adopted(workspace: ShopWorkspace) -> None:
    workspace.shop.widgets["one"] = {"name": "one", "size": 3, "colour": "red", "serial": "S-0"}

    code, text = workspace.apply(widget(size=3, colour="red"))

    assert (code, text.splitlines()[0].partition(":")[0]) == (0, "Widget default/one adopted")
    assert workspace.shop.writes == []
    assert workspace.get()["status"]["serial"] == "S-0"


def test_an_observed_widget_reports_drift_and_is_never_written(workspace: ShopWorkspace) -> None:
    workspace.shop.widgets["one"] = {"name": "one", "size": 3, "colour": "red", "serial": "S-0"}

    workspace.apply(widget(size=4, annotations={MANAGEMENT: "observe"}))

    assert workspace.shop.writes == []
    assert "The live object differs in spec.size, spec.colour; nothing is written" in workspace.explain()


def test_a_paused_widget_is_not_even_read(workspace: ShopWorkspace) -> None:
    workspace.apply(widget(size=4, annotations={MANAGEMENT: "paused"}))

    assert workspace.shop.requests == []


def test_a_deleted_widget_is_gone_and_a_missing_one_is_no_error(workspace: ShopWorkspace) -> None:
    workspace.apply(widget("one", size=3), widget("two", size=3))
    del workspace.shop.widgets["two"]

    assert workspace.delete("Widget/one")[0] == 0
    assert workspace.delete("Widget/two")[0] == 0
    assert workspace.shop.widgets == {}


def test_an_abandoned_widget_stays(workspace: ShopWorkspace) -> None:
    workspace.apply(widget(size=3, annotations=ABANDON))

    assert workspace.delete()[0] == 0
    assert list(workspace.shop.widgets) == ["one"]


# --- Secrets and references -------------------------------------------------------------------------------------------


def test_a_password_is_sent_when_its_secret_is_rotated_and_never_shown(workspace: ShopWorkspace) -> None:
    workspace.apply(secret("first-secret"), widget(size=3, password=PASSWORD))
    first = dict(workspace.shop.passwords)
    workspace.shop.requests.clear()

    code, planned = workspace.plan(secret("second-secret"), widget(size=3, password=PASSWORD))
    _, text = workspace.apply(secret("second-secret"), widget(size=3, password=PASSWORD))

    assert (first, workspace.shop.passwords) == ({"one": "first-secret"}, {"one": "second-secret"})
    assert workspace.shop.writes == [("PUT", "/widgets/one")]
    shown = f"{planned} {text} {workspace.get()} {workspace.explain()}"
    assert (code, "first-secret" in shown, "second-secret" in shown) == (2, False, False)


def test_a_password_that_has_not_changed_is_not_sent_with_drift(workspace: ShopWorkspace) -> None:
    workspace.apply(secret("first-secret"), widget(size=3, password=PASSWORD))
    workspace.shop.passwords.clear()
    workspace.shop.widgets["one"]["size"] = 9

    workspace.reconcile()

    assert (workspace.shop.widgets["one"]["size"], workspace.shop.passwords) == (3, {})


def test_a_password_in_the_manifest_is_hidden_wherever_it_would_be_shown(workspace: ShopWorkspace) -> None:
    workspace.apply(widget(size=3, password={"value": "in-the-manifest"}))

    assert workspace.shop.passwords == {"one": "in-the-manifest"}
    assert "in-the-manifest" not in f"{workspace.get()} {workspace.explain()}"
    assert b"in-the-manifest" not in (workspace.folder / "state.db").read_bytes()


def test_a_reference_waits_until_the_widget_is_ready_and_takes_its_name(workspace: ShopWorkspace) -> None:
    blocked, text = workspace.apply(sticker())

    code, _ = workspace.apply(sticker(), widget(size=3))

    assert (blocked, "reference Widget default/one is not found" in text) == (3, True)
    assert (code, workspace.shop.stickers) == (0, {"one": {"text": "fragile"}})


def test_a_widget_is_deleted_after_what_refers_to_it(workspace: ShopWorkspace) -> None:
    workspace.apply(sticker(), widget(size=3))

    assert workspace.run(delete, yes=True)[0] == 0
    assert workspace.shop.writes[-2:] == [("DELETE", "/stickers/one"), ("DELETE", "/widgets/one")]


def test_a_reference_to_an_object_that_is_no_resource_is_taken_as_it_is(workspace: ShopWorkspace) -> None:
    code, _ = workspace.apply(sticker(external="two"))

    assert (code, workspace.shop.stickers) == (0, {"two": {"text": "fragile"}})


def test_a_reference_with_two_names_is_refused(workspace: ShopWorkspace) -> None:
    workspace.write(sticker(external="two", name="one"))

    done = run_setpoint(workspace, "apply", "-f", str(workspace.file))

    assert (done.returncode, "spec.widgetRef needs name or external, and not both" in done.stderr) == (1, True)


def test_a_value_of_a_widget_is_known_to_other_kinds(workspace: ShopWorkspace) -> None:
    value = {"$ref": {"kind": "Widget", "name": "one", "path": "status.serial"}}
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"serial": value}}
    metadata = {"name": "copy", "annotations": {MANAGEMENT: "paused"}}
    other = {"apiVersion": "setpoint.dev/v1alpha1", "kind": "KubernetesObject", "metadata": metadata}
    workspace.apply(widget(size=3), {**other, "spec": {"manifest": manifest}})

    graph = run_setpoint(workspace, "graph", "-o", "text")

    assert (graph.returncode, "Widget default/one" in graph.stdout) == (0, True)


# --- When something goes wrong ----------------------------------------------------------------------------------------


def test_a_process_that_is_killed_after_the_create_leaves_one_widget_which_the_next_one_finds(
    workspace: ShopWorkspace, installed: Path
) -> None:
    workspace.write(widget(size=3))
    arrived, killed = threading.Event(), threading.Event()

    def hold() -> None:
        arrived.set()
        killed.wait(DEADLINE)

    workspace.shop.after_write = hold
    process = subprocess.Popen(command(workspace, "apply", "-f", str(workspace.file)), **start(workspace, installed))
    assert arrived.wait(DEADLINE)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(DEADLINE)
    killed.set()

    assert workspace.run(apply)[0] == 0
    assert workspace.shop.writes == [("POST", "/widgets")]
    assert workspace.get()["status"]["serial"] == workspace.shop.widgets["one"]["serial"]


def test_an_outage_of_the_service_never_looks_like_absence(workspace: ShopWorkspace) -> None:
    workspace.apply(widget(size=3))
    workspace.shop.failures += [(500, {}), (403, {})]
    workspace.shop.requests.clear()

    code, text = workspace.run(apply, wait=False)

    assert (code != 0, "created" in text) == (True, False)
    assert workspace.shop.writes == []


def test_an_error_says_what_the_service_said_and_what_to_check(workspace: ShopWorkspace) -> None:
    workspace.shop.failures.append((403, {}))

    code, text = workspace.apply(widget(size=3))

    said = "GET /widgets/one: 403: the shop is closed. Check what the token may do"
    assert (code, said in text) == (1, True)


def test_a_token_that_is_not_set_is_named(workspace: ShopWorkspace) -> None:
    del workspace.environment["SHOP_TOKEN"]

    code, text = workspace.apply(widget(size=3))

    assert (code, "SHOP_TOKEN is not set: write the token of shop there" in text) == (1, True)
    assert workspace.shop.requests == []


def test_a_preview_lets_no_write_of_a_service_pass_whatever_it_says() -> None:
    blocked = BlockedWrites()
    guard = read_only("service:shop", blocked)

    assert guard.on_request(HttpRequest("GET", "https://shop.example/widgets")) is None
    with pytest.raises(WriteBlocked):
        guard.on_request(HttpRequest("POST", "https://shop.example/widgets?dryRun=All"))
    assert [str(one) for one in blocked.writes] == ["POST /widgets (service:shop)"]


# --- Other commands ---------------------------------------------------------------------------------------------------


def test_a_recorded_world_has_the_widgets_and_not_the_token(workspace: ShopWorkspace, installed: Path) -> None:
    workspace.apply(widget(size=3))
    workspace.shop.widgets["one"]["size"] = 9

    recorded = run_setpoint(workspace, "record", "--to", "world.jsonl")
    workspace.shop.requests.clear()
    planned = run_setpoint(workspace, "plan", "--world", "world.jsonl", "-o", "json")

    world = gzip.decompress((workspace.folder / "world.jsonl").read_bytes()).decode()
    assert (recorded.returncode, "/widgets/one" in world, TOKEN in world) == (0, True, False)
    assert (planned.returncode, workspace.shop.requests) == (2, [])
    (request,) = msgspec.json.decode(planned.stdout)["resources"][0]["requests"]
    assert (request["method"], request["target"], request["body"]) == (
        *("PUT", "/widgets/one", {"colour": "grey", "size": 3}),
    )


def test_a_definition_and_the_manifests_of_an_installation_have_the_kind(workspace: ShopWorkspace) -> None:
    definition = workspace.crds("widget")
    installation = run_setpoint(workspace, "install", "--dry-run", "--kinds", "widget")

    assert "name: widgets.shop.example.com" in definition
    assert "How large it is." in definition
    assert "widgets.shop.example.com" in installation.stdout
    assert "- widgets\n" in installation.stdout


def test_an_export_carries_widgets_to_another_store(workspace: ShopWorkspace) -> None:
    workspace.apply(widget(size=3))
    exported = run_setpoint(workspace, "export", "-A")
    (workspace.folder / "export.yaml").write_text(exported.stdout, encoding="utf-8")
    other = f"sqlite:///{workspace.folder}/other.db"

    imported = run_setpoint(workspace, "--store", other, "import", "-f", "export.yaml")

    assert (exported.returncode, imported.returncode) == (0, 0), imported.stderr
    assert workspace.run(get, "Widget/one")[0] == 0


# --- The command as a process of its own ------------------------------------------------------------------------------


def command(workspace: ShopWorkspace, *arguments: str) -> list[str]:
    """The command line; options of the group may stand before the command."""
    store = [] if "--store" in arguments else ["--store", workspace.store]
    return [str(Path(sys.executable).with_name("setpoint")), *store, *arguments]


def start(workspace: ShopWorkspace, installed: Path) -> dict[str, Any]:
    """How it is started: with the plug-in on its path."""
    paths = os.pathsep.join(filter(None, (str(installed), os.environ.get("PYTHONPATH", ""))))
    own = {"PATH": os.environ["PATH"], "HOME": str(workspace.folder), "PYTHONPATH": paths}
    return {"cwd": workspace.folder, "env": {**own, **workspace.environment}}


def run_setpoint(workspace: ShopWorkspace, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """The command, after it has ended."""
    installed = next(Path(one) for one in sys.path if Path(one, "shop_setpoint").is_dir())
    return subprocess.run(
        command(workspace, *arguments),
        capture_output=True,
        encoding="utf-8",
        timeout=DEADLINE,
        check=False,
        **start(workspace, installed),
    )


def test_the_shop_is_empty_at_first(shop: Shop) -> None:
    assert (shop.widgets, shop.requests) == ({}, [])

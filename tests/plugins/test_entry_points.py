"""Which plug-ins are found, and what becomes of those that cannot be used."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from setpoint.app.kinds import all_plugins, definitions, described_types, kinds_with, plugin_types
from setpoint.app.plugins import NO_PLUGINS, Plugins, fits, installed_plugins
from setpoint.errors import PluginBroken
from setpoint.kind import KindContext
from tests.cli.programs import DEADLINE
from tests.plugins.installed_plugins import STICKER, WIDGET, install, install_shop
from tests.plugins.shop_workspace import ShopWorkspace, widget

GROUP = "shop.example.com"
TAKEN = [("sql.cnrm.cloud.google.com", "SQLUser")]


def found_in(*paths: Path) -> Plugins:
    """The plug-ins on these paths."""
    return installed_plugins(TAKEN, list(map(str, paths)))


def error_of(plugins: Plugins, kind: str = "Widget") -> str:
    """Why a kind cannot be used."""
    found = plugin_types(plugins)[GROUP, kind]
    return str(getattr(found, "error", ""))


# --- What is found ----------------------------------------------------------------------------------------------------


def test_a_plug_in_is_known_by_its_metadata_alone(tmp_path: Path) -> None:
    found = found_in(install(tmp_path, "shop", "Widget.v1.shop.example.com = not.there:Kind"), tmp_path / "missing")

    (one,) = found.offered.values()
    assert (one.name, one.version, str(one.distribution)) == ((GROUP, "Widget"), "v1", "shop 1.2")


def test_of_a_distribution_that_is_there_twice_the_first_counts(tmp_path: Path) -> None:
    first = install(tmp_path / "first", "the_shop", WIDGET, version="2.0")
    second = install(tmp_path / "second", "The.Shop", WIDGET, version="1.0")

    found = found_in(first, second)

    assert [str(one.distribution) for one in found.offered.values()] == ["the_shop 2.0"]
    assert found.clashes == {}


def test_an_owner_is_told_from_a_kind_by_its_name(tmp_path: Path) -> None:
    found = found_in(install(tmp_path, "shop", WIDGET, "Greeting.v1.example.com/owner = module:owner"))

    assert {name[1]: one.is_owner for name, one in found.offered.items()} == {"Widget": False, "Greeting": True}
    assert list(found.owners(KindContext)) == [("example.com", "Greeting")]
    assert list(found.kinds(KindContext)) == [(GROUP, "Widget")]


@pytest.mark.parametrize(
    "entry",
    [
        "Widget = module:Kind",
        "Widget.shop.example.com = module:Kind",
        "widget.v1.shop.example.com = module:Kind",
        "Widget.v1.shop.example.com = module",
    ],
)
def test_an_entry_point_that_names_no_kind_is_refused_with_its_distribution(tmp_path: Path, entry: str) -> None:
    found = found_in(install(tmp_path, "shop", entry))

    (refused,) = found.refused
    assert (found.offered, str(refused.distribution), refused.entry) == ({}, "shop 1.2", entry.partition(" =")[0])


def test_folders_of_other_distributions_are_not_read_as_ours(tmp_path: Path) -> None:
    other = tmp_path / "other-1.0.dist-info"
    other.mkdir()
    (other / "entry_points.txt").write_text("[console_scripts]\nsetpoint.kinds = a:b\n", encoding="utf-8")

    assert not found_in(tmp_path)


# --- Clashes ----------------------------------------------------------------------------------------------------------


def test_a_kind_of_ours_stays_and_the_other_is_refused(tmp_path: Path) -> None:
    found = found_in(install(tmp_path, "shop", "SQLUser.v1.shop.example.com = module:Kind"))

    (refused,) = found.refused
    assert (found.offered, refused.why) == ({}, "setpoint itself has a kind SQLUser, which stays")


def test_of_two_distributions_with_one_name_neither_is_used_and_both_are_named(tmp_path: Path) -> None:
    first, second = install_shop(tmp_path / "first"), install(tmp_path / "second", "another", WIDGET)

    found = found_in(first, second)

    assert list(found.offered) == [(GROUP, "Sticker")]
    message = error_of(found)
    assert "more than one plug-in offers a kind Widget, so that none is used" in message
    assert ("shop_setpoint 1.2" in message, "another 1.2" in message) == (True, True)


def test_a_name_is_taken_whatever_its_group(tmp_path: Path) -> None:
    other = "Widget.v1.other.example.com = module:Kind"

    found = found_in(install(tmp_path / "first", "first", WIDGET), install(tmp_path / "second", "second", other))

    assert sorted(found.clashes) == [("other.example.com", "Widget"), (GROUP, "Widget")]


# --- Broken ones ------------------------------------------------------------------------------------------------------

MODULE = """
from setpoint import kind
from shop_setpoint.widget import WidgetKind

def wrong_type(context):
    return {"name": "Widget"}

class Renamed(WidgetKind):
    name = "Gadget"

def raising(context):
    raise ValueError("no such luck")
"""


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("nowhere_to_be_found:Kind", "ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
        ("shop_setpoint.widget:Missing", "AttributeError: module 'shop_setpoint.widget' has no attribute 'Missing'"),
        ("broken_shop:raising", "ValueError: no such luck"),
        ("broken_shop:wrong_type", "made a dict, which is no kind: it lacks group, version, name, revision"),
        ("broken_shop:Renamed", "made the kind Gadget.v1.shop.example.com: both names have to be the same"),
    ],
)
def test_what_is_wrong_is_named_with_distribution_version_and_entry_point(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, why: str
) -> None:
    monkeypatch.syspath_prepend(installed)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "broken_shop.py").write_text(MODULE, encoding="utf-8")

    message = error_of(found_in(install(tmp_path, "broken", f"Widget.v1.shop.example.com = {target}")))

    monkeypatch.delitem(sys.modules, "broken_shop", raising=False)
    assert f"the entry point Widget.v1.shop.example.com = {target} of broken 1.2" in message
    assert why in message


def test_a_plug_in_for_another_version_of_setpoint_is_not_loaded(tmp_path: Path) -> None:
    folder = install(tmp_path, "shop", WIDGET, requires="setpoint[testing] (>=99) ; python_version > '3'")

    assert "requires setpoint >=99, and this is " in error_of(found_in(folder))


@pytest.mark.parametrize(
    ("specifiers", "expected"),
    [
        *((text, True) for text in ("", ">=0.1", ">=0.1,<0.2", "~=0.1", "~=0.1.0", "==0.1.*", "==0.1", "!=0.2", ">0")),
        *((text, False) for text in ("<0.1", ">0.1", ">=0.2", "~=0.2", "==0.2.*", "!=0.1.0", ">=0.1,<0.1.0", "~=1.0")),
    ],
)
def test_a_version_fits_the_specifiers_of_a_requirement(specifiers: str, *, expected: bool) -> None:
    assert fits("0.1.0", specifiers) is expected


def test_a_broken_owner_leaves_its_children_alone(tmp_path: Path) -> None:
    found = found_in(install(tmp_path, "broken", "Greeting.v1.example.com/owner = nowhere_to_be_found:owner"))

    owner = found.owners(KindContext)["example.com", "Greeting"]
    assert (owner.makes, owner.reads, owner.finalizer) == ((), (), "")
    with pytest.raises(PluginBroken, match="nowhere_to_be_found"):
        owner.generate(None, {})  # type: ignore[arg-type] # whatever it is asked


def test_resources_of_a_broken_kind_fail_with_that_message_and_others_go_on(
    workspace: ShopWorkspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = install(tmp_path / "site", "broken", "Gizmo.v1.shop.example.com = nowhere_to_be_found:Kind")
    monkeypatch.syspath_prepend(site)
    gizmo = {**widget("two", size=1), "kind": "Gizmo"}

    code, text = workspace.apply(widget(size=3), gizmo)

    assert (code, list(workspace.shop.widgets)) == (1, ["one"])
    assert "Widget default/one created" in text
    assert "= nowhere_to_be_found:Kind of broken 1.2 cannot be loaded: ModuleNotFoundError" in text
    assert workspace.get("Gizmo/two")["status"]["conditions"][0]["status"] == "False"


# --- Lazy loading -----------------------------------------------------------------------------------------------------

PROGRAM = """
import atexit, json, sys

def report():
    names = ("importlib.metadata", "setpoint.app.plugins", "shop_setpoint", "shop_setpoint.widget")
    print(json.dumps([name for name in names if name in sys.modules]), file=sys.stderr)

atexit.register(report)
from setpoint.cli.entry import main
main()
"""


def imported_by(workspace: ShopWorkspace, installed: Path, *arguments: str) -> list[str]:
    """Which modules a command has imported in the end."""
    paths = os.pathsep.join(filter(None, (str(installed), os.environ.get("PYTHONPATH", ""))))
    own = {"PATH": os.environ["PATH"], "HOME": str(workspace.folder), "PYTHONPATH": paths}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=workspace.folder,
        env={**own, **workspace.environment, "SETPOINT_STORE": workspace.store},
        capture_output=True,
        encoding="utf-8",
        timeout=DEADLINE,
        check=False,
    )
    found: list[str] = json.loads(done.stderr.splitlines()[-1])
    return found


def test_a_plug_in_is_imported_by_commands_on_its_kinds_alone(workspace: ShopWorkspace, installed: Path) -> None:
    workspace.write(widget(size=3))

    assert imported_by(workspace, installed, "--help") == []
    assert imported_by(workspace, installed, "get") == ["setpoint.app.plugins"]
    assert imported_by(workspace, installed, "plan", "-f", str(workspace.file)) == [
        *("setpoint.app.plugins", "shop_setpoint", "shop_setpoint.widget"),
    ]


def test_kinds_that_are_not_selected_are_not_loaded(installed: Path) -> None:
    found = found_in(installed)
    made: list[str] = []

    def context() -> KindContext:
        made.append("a kind")
        return KindContext()

    kinds = found.kinds(context)

    assert (sorted(kinds), made) == ([(GROUP, "Sticker"), (GROUP, "Widget")], [])


# --- What is generated into the repository ----------------------------------------------------------------------------


def test_our_own_definitions_do_not_depend_on_what_is_installed(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = set(definitions())
    monkeypatch.syspath_prepend(installed)

    assert (set(definitions()), (GROUP, "Widget") in described_types()) == (before, False)
    assert set(definitions(all_plugins())) - before == {(GROUP, "Sticker"), (GROUP, "Widget")}


def test_no_plug_in_can_take_a_name_of_ours(installed: Path) -> None:
    ours = {name for _, name in described_types()}

    taken = installed_plugins(described_types(), [str(installed)])

    assert ours.isdisjoint(name for _, name in taken.offered)
    assert {name for _, name in kinds_with(None, None, None, {})} <= ours  # type: ignore[arg-type] # names alone
    assert not NO_PLUGINS


# --- setpoint kinds ---------------------------------------------------------------------------------------------------


def test_kinds_are_listed_with_their_source(workspace: ShopWorkspace) -> None:
    code, text = workspace.kinds()

    rows = [" ".join(line.split()) for line in text.splitlines()]
    assert code == 0
    assert rows[0] == "KIND API VERSION SOURCE COOKIE"
    assert "SQLDatabase sql.cnrm.cloud.google.com/v1beta1 built in no" in rows
    assert "Sticker shop.example.com/v1 shop_setpoint 1.2 yes" in rows
    assert "Widget shop.example.com/v1 shop_setpoint 1.2 yes" in rows


def test_broken_kinds_are_listed_with_their_error(
    workspace: ShopWorkspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = ("Gizmo.v1.shop.example.com = nowhere_to_be_found:Kind", "SQLUser.v1.other = a:b", "nonsense = a:b")
    monkeypatch.syspath_prepend(install(tmp_path / "site", "broken", *entries))

    code, text = workspace.kinds()
    data = json.loads(workspace.kinds(output="json")[1])

    assert (code, "Widget" in text) == (1, True)
    assert "Gizmo: the entry point Gizmo.v1.shop.example.com = nowhere_to_be_found:Kind of broken 1.2" in text
    assert [one["entryPoint"] for one in data["refused"]] == ["SQLUser.v1.other", "nonsense"]
    assert [one["error"][:21] for one in data["kinds"] if "error" in one] == ["the entry point Gizmo"]


def test_a_kind_is_described_with_its_fields_policies_and_references(workspace: ShopWorkspace) -> None:
    _, text = workspace.kinds("widget", "Sticker.v1.shop.example.com")
    data = json.loads(workspace.kinds("Widget", output="json")[1])

    rows = [" ".join(line.split()) for line in text.splitlines()]
    assert 'spec.colour text "grey" - Its colour.' in rows
    assert "spec.shelf text - immutable The shelf that it is made for." in rows
    assert "spec.password object - write-only What opens it." in rows
    assert any(row.startswith("spec.widgetRef reference to Widget.shop.example.com - required") for row in rows)
    assert any(row.startswith("cnrm.cloud.google.com/unmanaged") for row in rows)
    assert data["source"] == {"distribution": "shop_setpoint", "version": "1.2"}
    assert data["fields"][1] == {
        **{"path": "spec.colour", "description": "Its colour.", "type": "text", "default": "grey", "notes": []},
    }
    assert [one["path"] for one in data["outputs"]] == ["status.serial"]


def test_the_page_of_a_kind_is_as_ours_are(workspace: ShopWorkspace) -> None:
    _, page = workspace.kinds("widget", output="markdown")

    assert page.startswith("# Widget\n\nA widget of the shop.\n\n```yaml\napiVersion: shop.example.com/v1\n")
    assert "| field | what it is | type | default | notes |\n|---|---|---|---|---|\n" in page
    assert "| `spec.size` | How large it is. | integer | | required |\n" in page
    assert "| annotation | what it does |\n|---|---|\n| `cnrm.cloud.google.com/deletion-policy` |" in page
    assert "| `setpoint.dev/merge` |" not in page
    assert page.endswith("| `status.serial` | The number that the shop gave it. |\n")


def test_names_can_be_used_again(workspace: ShopWorkspace) -> None:
    names = workspace.kinds(output="name")[1].split()

    assert {"Widget.v1.shop.example.com", "StorageBucket.v1beta1.storage.cnrm.cloud.google.com"} <= set(names)
    assert workspace.kinds(*names)[0] == 0


def test_entries_of_the_shop_are_those_of_its_package() -> None:
    assert [one.partition(".")[0] for one in (WIDGET, STICKER)] == ["Widget", "Sticker"]

"""An owner of another package, which knows the public surface alone: the contract of owners, and the commands."""

import json
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from setpoint import kind
from setpoint.testing import ChildField, OwnerContract, OwnerFixture, OwnerPart
from tests.plugins.installed_plugins import install
from tests.plugins.shop.shop_setpoint.display import CONFIG_MAP, DisplayOwner, DisplaySpec
from tests.plugins.shop_workspace import ShopWorkspace

READY: Final = {"type": "Ready", "status": "True", "reason": "UpToDate", "message": "fine"}


def display(**spec: Any) -> dict[str, Any]:
    """The manifest of a display."""
    metadata = {"name": "window", "namespace": "default"}
    head = {"apiVersion": "shop.example.com/v1", "kind": "Display", "metadata": metadata}
    return {**head, "spec": {"title": "New", "size": 3, **spec}}


def prices(**data: str) -> dict[str, Any]:
    """A list of prices."""
    metadata = {"name": "prices", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


class TestDisplay(OwnerContract):
    fixture = OwnerFixture(
        owner=DisplayOwner(kind.KindContext({})),
        manifest=display(prices="prices"),
        changed={"title": "Sale", "size": 4},
        managed=ChildField("Widget/window", "spec.size", 9),
        editable=ChildField("Widget/window", "spec.colour", "gold"),
        source=prices(small="1"),
        rotated=prices(small="2"),
        followers=("ConfigMap/window-prices",),
        readiness_child="Widget/window",
        ready_status={"observedGeneration": 1, "conditions": [READY]},
        once="Secret/window-key",
        label="display",
        without={OwnerPart.ENTRIES: "the widget has no map, and no list"},
    )


def test_a_display_is_ready_once_its_widget_is_and_an_edit_of_its_page_is_kept(
    workspace: ShopWorkspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = "Display.v1.shop.example.com/owner = shop_setpoint.display:DisplayOwner"
    monkeypatch.syspath_prepend(install(tmp_path / "site", "displays", entry))

    code, text = workspace.apply(display())

    assert (code, workspace.shop.widgets["window"]["size"]) == (0, 3), text
    status = workspace.get("Display/window")["status"]
    assert ({one["type"]: one["status"] for one in status["conditions"]}["Ready"], status["children"]) == ("True", 3)
    described = json.loads(workspace.kinds("Display", output="json")[1])
    assert {one["name"] for one in described["annotations"]} >= {"setpoint.dev/merge", "setpoint.dev/management"}

    page = workspace.get("ConfigMap/window-page")
    workspace.apply({**page, "data": {**page["data"], "text": "Closed"}})
    code, text = workspace.apply(display(title="Sale"))

    assert (code, workspace.get("ConfigMap/window-page")["data"]) == (0, {"title": "Sale", "text": "Closed"}), text


# --- The base class ---------------------------------------------------------------------------------------------------


def test_an_owner_without_a_group_children_or_a_description_is_refused_when_it_is_written() -> None:
    with pytest.raises(TypeError, match=r"LostOwner has no group: write group = 'shop\.example\.com'"):
        _owner("LostOwner", makes=(CONFIG_MAP,), __doc__="Lost.")
    with pytest.raises(TypeError, match="IdleOwner has no makes: write makes = the kinds of children"):
        _owner("IdleOwner", group="example.com", __doc__="Idle.")
    with pytest.raises(TypeError, match="MuteOwner has no docstring"):
        _owner("MuteOwner", group="example.com", makes=(CONFIG_MAP,))


def _owner(name: str, **members: Any) -> type:
    """An owner with these members."""
    return types.new_class(name, (kind.BaseOwner[DisplaySpec],), {}, lambda body: body.update(members))


def test_children_before_an_error_are_made_and_a_wrong_spec_is_named_by_its_field() -> None:
    owner = DisplayOwner(kind.KindContext({}))
    resource = kind.Resource({**display(prices="none"), "metadata": {"name": "window", "namespace": "default"}})

    made = owner.generate(resource, {})

    assert [one.key for one in made.children] == ["ConfigMap/window-page", "Secret/window-key", "Widget/window"]
    assert str(made.error) == "ConfigMap default/none is not there: create it"
    with pytest.raises(kind.ManifestInvalid, match=r"there is no field spec\.titel; did you mean spec\.title\?"):
        owner.check(kind.Resource({**display(), "spec": {"titel": "New"}}))


def test_an_owner_is_named_and_described_by_its_class() -> None:
    assert (DisplayOwner.name, DisplayOwner.definition.description) == (
        "Display",
        "A widget in the window of the shop.",
    )
    assert isinstance(DisplayOwner(kind.KindContext({})), kind.Owner)
    found: Mapping[str, kind.Resource] = {}
    condition = DisplayOwner(kind.KindContext({})).readiness(found, "Widget/window")
    assert (condition.status, condition.message) == ("False", "Widget/window is not there yet")

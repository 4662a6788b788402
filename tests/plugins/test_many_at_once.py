"""Many resources are planned and applied with few requests."""

import asyncio
from typing import Any

from setpoint.app import AppSettings
from setpoint.cli.commands.apply import apply
from setpoint.preview import open_preview
from tests.plugins.shop_workspace import ShopWorkspace

MANY = 40


def stickers(text: str = "fragile", count: int = MANY) -> list[dict[str, Any]]:
    """Manifests of stickers on widgets that are no resources."""
    return [
        {
            "apiVersion": "shop.example.com/v1",
            "kind": "Sticker",
            "metadata": {"name": f"s{number}"},
            "spec": {"widgetRef": {"external": f"w{number}"}, "text": text},
        }
        for number in range(count)
    ]


def test_a_plan_of_many_new_resources_observes_them_with_one_request(workspace: ShopWorkspace) -> None:
    code, planned = workspace.plan(*stickers())

    assert (code, planned["summary"]) == (2, {"create": MANY})
    assert workspace.shop.requests == [("GET", "/stickers")]


def test_a_plan_of_many_says_the_same_as_the_plan_of_each(workspace: ShopWorkspace) -> None:
    workspace.apply(*stickers())
    workspace.shop.stickers["w3"]["text"] = "changed by hand"
    del workspace.shop.stickers["w4"]
    workspace.shop.requests.clear()

    _, together = workspace.plan(*stickers())
    requests = list(workspace.shop.requests)
    alone = [workspace.plan(one)[1]["results"][0] for one in stickers()]

    assert requests == [("GET", "/stickers")]
    assert sorted(together["results"], key=str) == sorted(alone, key=str)
    assert together["summary"] == {"update": 1, "create": 1, "unchanged": MANY - 2}


def test_few_resources_are_observed_one_by_one(workspace: ShopWorkspace) -> None:
    workspace.plan(*stickers(count=3))

    assert sorted(workspace.shop.requests) == [("GET", f"/stickers/w{number}") for number in range(3)]


def test_an_outage_of_the_list_leaves_the_plan_to_single_requests(workspace: ShopWorkspace) -> None:
    workspace.shop.failures.append((403, {}))

    code, planned = workspace.plan(*stickers())

    assert (code, planned["summary"], len(workspace.shop.requests)) == (2, {"create": MANY}, MANY + 1)


def test_an_apply_of_many_that_are_as_declared_takes_one_request(workspace: ShopWorkspace) -> None:
    workspace.apply(*stickers())
    workspace.shop.requests.clear()

    code, text = workspace.run(apply)

    assert (code, text.splitlines()[-1]) == (0, f"unchanged {MANY}")
    assert workspace.shop.requests == [("GET", "/stickers")]


def test_no_write_of_an_apply_rests_on_what_was_observed_together(workspace: ShopWorkspace) -> None:
    workspace.apply(*stickers())
    workspace.shop.stickers["w3"]["text"] = "changed by hand"
    workspace.shop.requests.clear()

    code, _ = workspace.run(apply)

    assert (code, workspace.shop.stickers["w3"]["text"]) == (0, "fragile")
    assert workspace.shop.writes == [("PUT", "/stickers/w3")]
    assert workspace.shop.requests[:3] == [("GET", "/stickers"), ("GET", "/stickers/w3"), ("PUT", "/stickers/w3")]


def test_a_plan_of_all_says_the_same_as_if_each_was_observed_by_itself(workspace: ShopWorkspace) -> None:
    workspace.apply(*stickers())
    workspace.shop.stickers["w3"]["text"] = "changed by hand"
    del workspace.shop.stickers["w4"]
    settings = AppSettings(workspace.store, environment=workspace.environment)

    async def report(*, lists: bool) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        workspace.shop.requests.clear()
        async with open_preview(settings, lists=lists) as preview:
            found = (await preview.preview_all(lambda _: None)).to_data()
        return found, sorted(workspace.shop.requests)

    together, requests = asyncio.run(report(lists=True))
    alone, each = asyncio.run(report(lists=False))

    assert together == alone
    assert together["summary"] == {"Sticker": {"in sync": MANY - 2, "writes": 2}}
    assert requests == [("GET", "/stickers"), ("GET", "/stickers/w3"), ("GET", "/stickers/w4")]
    assert each == sorted(("GET", f"/stickers/w{number}") for number in range(MANY))

"""The four waits: they come true at once, late or never, and whatever becomes of a watch meanwhile."""

from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from tests.cluster.polling import until
from tests.cluster.running.proxy import no_fault
from tests.cluster.waiting.four_waits import HALFWAY, NAMES, four, play, play_halfway, uids, until_all_wait
from tests.cluster.waiting.wait_harness import WaitHarness

DONE = "".join(f"KubernetesObject here/{name} created\n" for name in NAMES)


def _lines(text: str, word: str) -> list[str]:
    return [line for line in text.splitlines() if f" {word}" in line]


def test_what_comes_late_ends_each_wait_and_progress_says_what_is_missing(harness: WaitHarness) -> None:
    applying = harness.begin_apply(*four())
    until_all_wait(applying)
    play_halfway(harness.controllers)
    applying.until_said(*(f"KubernetesObject here/{name} waiting: {why}\n" for name, why in HALFWAY.items()))
    play(harness.controllers)
    code, text = applying.ended()

    assert code == 0, text
    assert sorted(_lines(text, "created")) == sorted([*DONE.splitlines(), "KubernetesObject here/dependant created"])
    # A status is no drift: each object is written once.
    assert harness.writes() == ["PATCH"] * 5


def test_what_is_there_already_is_not_waited_for(harness: WaitHarness) -> None:
    assert harness.apply(*four("2s")).code == 3
    play(harness.controllers)
    watches = harness.watches()
    code, text = harness.apply(*four("2s"))

    assert code == 0
    assert _lines(text, "waiting") == []
    assert harness.watches() == watches


def test_a_wait_that_came_true_stays_so_whatever_becomes_of_the_status(harness: WaitHarness) -> None:
    harness.apply(*four("2s"))
    play(harness.controllers)
    assert harness.apply(*four("2s")).code == 0
    play_halfway(harness.controllers)
    code, text = harness.apply(*four("2s"))

    assert code == 0, text
    assert len(_lines(text, "unchanged")) == 5


def test_a_new_generation_is_waited_for_anew(harness: WaitHarness) -> None:
    harness.apply(*four("2s"))
    play(harness.controllers)
    assert harness.apply(*four("2s")).code == 0
    changed = four("240s")
    for one in changed[1:]:
        one["spec"]["manifest"]["spec"].update(_another(one))
    applying = harness.begin_apply(*changed)
    applying.until_said("KubernetesObject here/by-rollout waiting: the status is out of date")
    play(harness.controllers)
    code, text = applying.ended()

    assert code == 0, text
    assert "KubernetesObject here/by-rollout updated\n" in text


def _another(resource: Any) -> dict[str, Any]:
    match resource["spec"]["manifest"]["kind"]:
        case "Deployment":
            return {"minReadySeconds": 1}
        case "Service":
            return {"sessionAffinity": "ClientIP"}
        case _:
            return {"target": "192.0.2.2"}


# --- Weather ----------------------------------------------------------------------------------------------------------


async def _gone(incoming: web.BaseRequest) -> web.StreamResponse | None:
    """410 to everyone who wants to hear of changes, as an API server says it that remembers none so old."""
    if "watch=true" not in incoming.rel_url.raw_query_string:
        return None
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410, "reason": "Expired"}
    return web.json_response({**status, "message": "too old resource version"}, status=410)


def _close(harness: WaitHarness) -> None:
    harness.cut()


def _expire(harness: WaitHarness) -> None:
    harness.set_fault(_gone)
    harness.cut()
    refused = sum(one.status == 410 for one in harness.asked())
    until(lambda: sum(one.status == 410 for one in harness.asked()) > refused + 3)
    harness.set_fault(no_fault)


@pytest.mark.parametrize("happens", [_close, _expire], ids=["closed", "expired"])
def test_a_watch_that_ends_in_the_middle_ends_no_wait(
    harness: WaitHarness, happens: Callable[[WaitHarness], None]
) -> None:
    applying = harness.begin_apply(*four())
    until_all_wait(applying)
    until(lambda: harness.watches() >= 3)
    before, asked = uids(harness.controllers), len(harness.asked())
    happens(harness)
    # Three kinds of objects are waited for.
    until(lambda: sum(one.is_watch and one.status == 0 for one in harness.asked()[asked:]) >= 3)
    play(harness.controllers)
    code, text = applying.ended()

    assert code == 0, text
    assert _lines(text, "failed") == []
    assert uids(harness.controllers) == before

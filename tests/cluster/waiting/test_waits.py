"""The four types of waits, and faults of their watches."""

from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from tests.cluster.polling import until
from tests.cluster.running.proxy import no_fault
from tests.cluster.waiting.four_waits import (
    HALFWAY,
    NAMES,
    four_objects,
    report_done,
    report_halfway,
    uids,
    until_all_wait,
)
from tests.cluster.waiting.wait_harness import WaitHarness

DONE = "".join(f"KubernetesObject here/{name} created\n" for name in NAMES)


def _lines(text: str, word: str) -> list[str]:
    return [line for line in text.splitlines() if f" {word}" in line]


def test_each_wait_shows_its_progress_and_ends_when_it_is_satisfied(harness: WaitHarness) -> None:
    running = harness.start_apply(*four_objects())
    until_all_wait(running)
    report_halfway(harness.controllers)
    running.until_printed(*(f"KubernetesObject here/{name} waiting: {why}\n" for name, why in HALFWAY.items()))
    report_done(harness.controllers)
    code, text = running.result()

    assert code == 0, text
    assert sorted(_lines(text, "created")) == sorted([*DONE.splitlines(), "KubernetesObject here/dependant created"])
    # A status is no drift: each object is written once.
    assert harness.writes() == ["PATCH"] * 5


def test_a_satisfied_wait_starts_no_watch(harness: WaitHarness) -> None:
    assert harness.apply(*four_objects("2s")).code == 3
    report_done(harness.controllers)
    watches = harness.watches()
    code, text = harness.apply(*four_objects("2s"))

    assert code == 0
    assert _lines(text, "waiting") == []
    assert harness.watches() == watches


def test_a_satisfied_wait_stays_satisfied_when_the_status_changes(harness: WaitHarness) -> None:
    harness.apply(*four_objects("2s"))
    report_done(harness.controllers)
    assert harness.apply(*four_objects("2s")).code == 0
    report_halfway(harness.controllers)
    code, text = harness.apply(*four_objects("2s"))

    assert code == 0, text
    assert len(_lines(text, "unchanged")) == 5


def test_a_new_generation_is_waited_for_again(harness: WaitHarness) -> None:
    harness.apply(*four_objects("2s"))
    report_done(harness.controllers)
    assert harness.apply(*four_objects("2s")).code == 0
    changed = four_objects("240s")
    for one in changed[1:]:
        one["spec"]["manifest"]["spec"].update(_another(one))
    running = harness.start_apply(*changed)
    running.until_printed("KubernetesObject here/by-rollout waiting: the status is out of date")
    report_done(harness.controllers)
    code, text = running.result()

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


# --- Faults of watches ------------------------------------------------------------------------------------------------


async def _expired(incoming: web.BaseRequest) -> web.StreamResponse | None:
    """410 for every watch, like an API server without that history."""
    if "watch=true" not in incoming.rel_url.raw_query_string:
        return None
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410, "reason": "Expired"}
    return web.json_response({**status, "message": "too old resource version"}, status=410)


def _close(harness: WaitHarness) -> None:
    harness.cut()


def _expire(harness: WaitHarness) -> None:
    harness.set_fault(_expired)
    harness.cut()
    refused = sum(one.status == 410 for one in harness.requests())
    until(lambda: sum(one.status == 410 for one in harness.requests()) > refused + 3)
    harness.set_fault(no_fault)


@pytest.mark.parametrize("fault", [_close, _expire], ids=["closed", "expired"])
def test_a_watch_that_ends_does_not_end_its_wait(harness: WaitHarness, fault: Callable[[WaitHarness], None]) -> None:
    running = harness.start_apply(*four_objects())
    until_all_wait(running)
    until(lambda: harness.watches() >= 3)
    before, requests = uids(harness.controllers), len(harness.requests())
    fault(harness)
    # One watch for each of three kinds.
    until(lambda: sum(one.is_watch and one.status == 0 for one in harness.requests()[requests:]) >= 3)
    report_done(harness.controllers)
    code, text = running.result()

    assert code == 0, text
    assert _lines(text, "failed") == []
    assert uids(harness.controllers) == before

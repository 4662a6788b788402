"""Where cookies are kept is a setting: an option of every command, and a variable."""

import json
from typing import Any

import pytest

from tests.cli.workspace import Workspace, bucket

ANNOTATION = "cnrm.cloud.google.com/last-changed-cookie"


def _places(workspace: Workspace) -> tuple[bool, bool]:
    """Whether the annotation has a cookie, and the status."""
    found: Any = json.loads(workspace.run("get", "StorageBucket/logs", "-o", "json").stdout)
    return ANNOTATION in found["metadata"].get("annotations", {}), "lastModifiedCookie" in found["status"]


@pytest.mark.parametrize("by_variable", [True, False])
def test_cookies_are_kept_where_the_setting_says_and_moved_after_a_switch(
    workspace: Workspace,
    by_variable: bool,
) -> None:
    def reconcile(place: str) -> None:
        option = () if by_variable else ("--cookie-location", place)
        variable = {"SETPOINT_COOKIE_LOCATION": place} if by_variable else {}
        done = workspace.run(*option, "apply", "-f", "manifest.yaml", **variable)
        assert done.returncode == 0, done.stderr

    workspace.write(bucket("logs"))
    seen = []
    for place in ("annotation", "status", "annotation"):
        reconcile(place)
        seen.append(_places(workspace))

    assert seen == [(True, False), (False, True), (True, False)]
    assert len(workspace.in_cloud(lambda cloud: [one for one in cloud.journal.entries if one.method != "GET"])) == 1


def test_another_place_is_refused(workspace: Workspace) -> None:
    done = workspace.run("get", SETPOINT_COOKIE_LOCATION="nowhere")

    assert done.returncode == 2
    assert "'nowhere' is not one of 'status', 'annotation'" in done.stderr

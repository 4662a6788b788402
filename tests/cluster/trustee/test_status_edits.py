"""Edits of a status by another writer: restored at once, and nothing else is written."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import pytest

from tests.cluster.trustee.manifests import trustee_config
from tests.cluster.trustee.trustee_cluster import TrusteeCluster
from tests.cluster.trustee.trustee_namespace import DEPLOYMENT, KBS, SERVICE, TRUSTEE, TrusteeNamespace

ALL: Final = (TRUSTEE, KBS, DEPLOYMENT, SERVICE)
_AT: Final = "2020-01-01T00:00:00Z"
_WRONG: Final = {"type": "Ready", "status": "False", "reason": "Wrong", "message": "no", "lastTransitionTime": _AT}
_EDITS: Final[Mapping[str, Any]] = {
    "no condition": {"conditions": None},
    "another condition": {"conditions": [_WRONG]},
    "not ready": {"isReady": False},
    "no memory": {"lastGenerated": None},
    "no state": {"setpoint": None, "lastModifiedCookie": None},
}


def _reported(object_: Any) -> Any:
    """What the status says, without times and without the record of the last step."""
    status = object_.get("status", {})
    conditions = sorted((one["type"], one["status"], one["reason"], one["message"]) for one in status["conditions"])
    rest = {name: value for name, value in status.items() if name not in ("conditions", "setpoint")}
    return {**rest, "conditions": conditions}


def _is_reported(wanted: Any, found: Any) -> bool:
    return "conditions" in found.get("status", {}) and bool(_reported(found) == wanted)


# The children of a KbsConfig are not merged: it remembers nothing that it generated.
@pytest.mark.parametrize(
    ("target", "edit"), [(TRUSTEE, edit) for edit in _EDITS] + [(KBS, edit) for edit in _EDITS if edit != "no memory"]
)
def test_an_edited_status_is_restored_by_one_write(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace, target: str, edit: str
) -> None:
    trustee.settle_ready(trustee_config())
    before = trustee.get(target)
    requests = len(trustee_cluster.requests())

    trustee.patch_status(target, **_EDITS[edit])

    trustee.until(target, partial(_is_reported, _reported(before)))
    paths = {trustee.path(one) for one in ALL if one != target}
    writes = [one for one in trustee_cluster.writes(requests, trustee.namespace) if "/events" not in one]
    assert writes.count(f"PATCH {trustee.path(target)}/status") == 1
    assert not [one for one in writes if one.partition(" ")[2] in paths]
    trustee_cluster.expect_no_more_writes(trustee, *ALL)


def test_a_removed_status_is_restored(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    trustee.settle_ready(trustee_config())
    before = {target: _reported(trustee.get(target)) for target in (TRUSTEE, KBS)}

    for target in (TRUSTEE, KBS):
        members = dict.fromkeys(trustee.get(target)["status"]) | {"isReady": False}
        trustee.patch_status(target, **members)

    for target in (TRUSTEE, KBS):
        trustee.until(target, partial(_is_reported, before[target]))
    trustee_cluster.expect_no_more_writes(trustee, *ALL)


def test_each_of_several_edits_is_answered_by_one_write(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    """Our own writes of a status are no edits."""
    trustee.settle_ready(trustee_config())
    requests, write = len(trustee_cluster.requests()), f"PATCH {trustee.path(TRUSTEE)}/status"

    for number in range(1, 6):
        trustee.patch_status(TRUSTEE, isReady=False)
        trustee.until(TRUSTEE, lambda found: found["status"].get("isReady") is True)
        assert trustee_cluster.writes(requests, trustee.namespace).count(write) == number
    trustee_cluster.expect_no_more_writes(trustee, *ALL)


def test_explain_names_the_ten_seconds_of_an_owner_that_is_not_ready(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(trustee_config())
    not_ready = trustee_cluster.setpoint("explain", "TrusteeConfig/tc", "-n", trustee.namespace)
    trustee.report_replicas()
    trustee.until(TRUSTEE, lambda found: found["status"].get("isReady") is True)
    ready = trustee_cluster.setpoint("explain", "TrusteeConfig/tc", "-n", trustee.namespace)

    expected = "next step: by the running process, at the latest 10 s after the last step; at once after an edit"
    assert not_ready.stdout.splitlines()[-1] == expected, json.dumps(not_ready.stderr)
    assert "at the latest" in ready.stdout.splitlines()[-1]
    assert ready.stdout.splitlines()[-1] != expected

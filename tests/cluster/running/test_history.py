"""`setpoint history` of a resource in a cluster: the last step on record and the Events, with a note of that."""

import json
from typing import Any

from tests.cluster.polling import until
from tests.cluster.running.controller_harness import ControllerHarness
from tests.cluster.running.manifests import bucket

_TARGET = "StorageBucket/remembered"


def entries(harness: ControllerHarness, *options: str) -> list[dict[str, Any]]:
    done = harness.setpoint("history", _TARGET, "-o", "json", *options)
    assert done.returncode == 0, done.stderr
    assert "note: the store is in a cluster" in done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_the_history_of_a_cluster_is_the_last_step_and_the_events(shared_harness: ControllerHarness) -> None:
    kubectl = shared_harness.kubectl
    kubectl.apply(bucket("remembered"))
    kubectl.until_ready("storagebucket/remembered")
    until(lambda: "event" in {one["type"] for one in entries(shared_harness)})

    first = entries(shared_harness)
    (step,) = [one for one in first if one["type"] == "step"]
    assert (step["decision"], step["writes"][0]["action"]) == ("create", "create")
    assert {"path": "spec.location", "rule": "spec", "after": "EU"} in step["writes"][0]["changes"]
    assert [one["at"] for one in first] == sorted(one["at"] for one in first)
    assert all(one["reason"] and one["count"] >= 1 for one in first if one["type"] == "event")

    # The record is that of the last step alone, and the Events are those of both.
    kubectl("patch", "storagebucket", "remembered", "--type=merge", "-p", '{"spec": {"storageClass": "COLDLINE"}}')
    until(lambda: any("COLDLINE" in str(one) for one in entries(shared_harness) if one["type"] == "step"))
    (step,) = [one for one in entries(shared_harness) if one["type"] == "step"]
    assert step["writes"][0]["action"] == "update"
    events = [one for one in first if one["type"] == "event"]
    later = {(one["reason"], one["message"]) for one in entries(shared_harness) if one["type"] == "event"}
    assert {(one["reason"], one["message"]) for one in events} <= later
    assert len(entries(shared_harness, "--limit", "1")) == 1
    assert entries(shared_harness, "--since", "2999-01-01T00:00Z") == []

    # Idle looks of a controller in a cluster are on no record: the last step is, and no next time is made up.
    shown = json.loads(shared_harness.setpoint("get", _TARGET, "-o", "json").stdout)
    assert shown["status"]["setpoint"]["look"] == {"last": step["at"]}

    # The columns of kubectl say the same of the record.
    header, row = kubectl("get", "storagebucket", "remembered", "-o", "wide").splitlines()
    columns = {name: row[header.index(name) :].lstrip() for name in ("FOUND", "LAST LOOK")}
    assert columns["FOUND"].startswith(step["decision"])
    assert columns["LAST LOOK"][0].isdigit()

    text = shared_harness.setpoint("history", _TARGET)
    assert text.stdout.splitlines()[0].split() == ["WHEN", "WHAT", "BY", "RESULT"]
    assert "COLDLINE" in text.stdout

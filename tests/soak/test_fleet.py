"""The checks of the soak of replicas can fail."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from soak.fleet.api import Api
from soak.fleet.author import Author
from soak.fleet.cloud import MultiEndpointCloud, Written
from soak.fleet.cluster_objects import ObjectVersion, ObjectWatch
from soak.fleet.fleet import Fleet, Loss
from soak.fleet.leases import LeaseObservation, LeaseWatch
from soak.fleet.results import hand_overs, lateness, problems, too_late, unready
from soak.fleet.subjects import PROJECT, Subject
from tests.cluster.access import Access

BUCKET = Subject("StorageBucket", "fleet-2")
DATABASE = Subject("SQLDatabase", "fleet-1")
INSTANCE = Subject("SQLInstance", "fleet-0")
OBJECT = Subject("KubernetesObject", "fleet-3")
NOWHERE: Any = None


def _fleet(subject: Subject, *writes: tuple[str, str, object]) -> Fleet:
    """One resource with two editions after the first, and the requests that were sent to the cloud for it."""
    cloud = MultiEndpointCloud()
    for number, (writer, method, body) in enumerate(writes):
        path = subject.collection if method == "POST" else subject.path
        cloud.written.append(Written(writer, method, path, body, 200, float(number)))
    api = Api(Access("https://a.test", NOWHERE, None, has_controllers=False))
    author = Author(api, cloud, ObjectWatch(api, "here"), random.Random(1), _editions={subject: 2})
    return Fleet([], 1, LeaseWatch(api, ""), author, (subject,))


def _made(subject: Subject, writer: str = "one") -> tuple[str, str, object]:
    return writer, "POST", {"name": subject.name, "project": PROJECT}


def _sent(age: int, writer: str = "one") -> tuple[str, str, object]:
    return writer, "PATCH", {"lifecycle": {"rule": [{"condition": {"age": age}}]}}


def test_every_edit_once_is_no_problem() -> None:
    fleet = _fleet(BUCKET, _made(BUCKET), _sent(2), _sent(3, "two"))

    assert problems(fleet, fleet.author, []) == []


def test_an_edit_that_was_executed_twice_is_found() -> None:
    fleet = _fleet(BUCKET, _made(BUCKET), _sent(2), _sent(2, "two"), _sent(3, "two"))

    (found,) = problems(fleet, fleet.author, [])
    assert found == "fleet-2: sent [('one', 2), ('two', 2), ('two', 3)], not each of [2, 3] once"


def test_an_edit_that_was_lost_is_found() -> None:
    fleet = _fleet(BUCKET, _made(BUCKET), _sent(3))

    assert problems(fleet, fleet.author, []) == ["fleet-2: sent [('one', 3)], not each of [2, 3] once"]


def test_a_second_creation_is_found() -> None:
    fleet = _fleet(BUCKET, _made(BUCKET), _made(BUCKET, "two"), _sent(2), _sent(3))

    assert problems(fleet, fleet.author, []) == ["fleet-2: asked for 2 times: [('one', 200), ('two', 200)]"]


def test_the_editions_of_every_kind_are_distinct_in_requests() -> None:
    assert DATABASE.mark_in({"charset": "UTF8"}) == DATABASE.mark(2) == "utf8mb3"
    assert INSTANCE.mark_in({"settings": {"backupConfiguration": {"startTime": "00:01"}}}) == INSTANCE.mark(1)
    assert OBJECT.mark_in({"data": {"edition": "2"}}) == OBJECT.mark(2)
    for subject in (BUCKET, DATABASE, INSTANCE, OBJECT):
        assert subject.mark(1) != subject.mark(2)


def _with_versions(*versions: tuple[str, str]) -> Fleet:
    """An object in the cluster, which has had these uids and editions."""
    fleet = _fleet(OBJECT)
    observed = [ObjectVersion(uid, edition, str(number)) for number, (uid, edition) in enumerate(versions)]
    fleet.author.objects.versions[OBJECT.name] = observed
    return fleet


def _log(fleet: Fleet, file: Path, *requests: tuple[str, int, str]) -> None:
    """The audit log of the API server: on whose behalf each write of the object was, its status, and its query."""
    target = {"namespace": "here", "name": OBJECT.name}
    events = [
        {
            "verb": "patch",
            "requestURI": f"/api/v1/namespaces/here/configmaps/{OBJECT.name}{query}",
            "user": {"username": "controller"},
            "objectRef": target,
            "responseStatus": {"code": code},
            **({"impersonatedUser": {"username": account}} if account else {}),
        }
        for account, code, query in requests
    ]
    file.write_text("".join(f"{json.dumps(one)}\n" for one in events), encoding="utf-8")
    fleet.author.objects.audit_log = file


@pytest.mark.parametrize(
    ("versions", "problem"),
    [
        ([("a", "0"), ("a", "1"), ("a", "2")], None),
        ([("a", "0"), ("a", "2")], "fleet-3: had ['0', '2'], not each of ['0', '1', '2'] once"),
        ([("a", "0"), ("a", "1"), ("a", "1"), ("a", "2")], "fleet-3: had ['0', '1', '1', '2'], not each of"),
        ([("a", "0"), ("b", "1"), ("b", "2")], "fleet-3: made 2 times"),
        ([], "fleet-3: made 0 times"),
    ],
)
def test_every_version_of_an_object_is_compared(versions: list[tuple[str, str]], problem: str | None) -> None:
    fleet = _with_versions(*versions)

    found = problems(fleet, fleet.author, [])

    assert found[0].startswith(problem) if problem else found == [], found


TENANT_ACCOUNT = "system:serviceaccount:here:setpoint"
AS_TENANT = (TENANT_ACCOUNT, 200, "?fieldManager=setpoint")


@pytest.mark.parametrize(
    ("requests", "problem"),
    [
        ([AS_TENANT, (TENANT_ACCOUNT, 200, "?dryRun=All"), (TENANT_ACCOUNT, 409, ""), AS_TENANT, AS_TENANT], None),
        ([AS_TENANT, AS_TENANT], "fleet-3: 2 writes instead of 3, on behalf of []"),
        ([AS_TENANT] * 4, "fleet-3: 4 writes instead of 3, on behalf of []"),
        ([AS_TENANT, AS_TENANT, ("", 200, "")], "fleet-3: 3 writes instead of 3, on behalf of ['controller']"),
    ],
)
def test_every_write_of_an_object_is_on_behalf_of_the_tenant(
    requests: list[tuple[str, int, str]], problem: str | None, tmp_path: Path
) -> None:
    fleet = _with_versions(("a", "0"), ("a", "1"), ("a", "2"))
    _log(fleet, tmp_path / "audit.log", *requests)

    assert problems(fleet, fleet.author, []) == ([] if problem is None else [problem])


def test_a_resource_with_a_status_of_an_older_generation_is_not_ready() -> None:
    status = {"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}]}

    assert unready([{"metadata": {"generation": 1}, "status": status}]) == []
    assert len(unready([{"metadata": {"generation": 2}, "status": status}, {"metadata": {"generation": 1}}])) == 2


def test_the_time_without_a_holder_counts_from_the_end_of_the_lease() -> None:
    fleet = _fleet(BUCKET)
    renewed, acquired, back, again = (
        LeaseObservation(10.0, "a"),
        LeaseObservation(27.5, "b"),
        LeaseObservation(40.0, ""),
        LeaseObservation(41.0, "c"),
    )
    fleet.leases.observations["setpoint-shard-0"] = [LeaseObservation(5.0, "a"), renewed, acquired, back, again]
    fleet.losses.append(Loss(frozenset({"a"}), frozenset({"setpoint-shard-0"}), 11.0, (), killed=True))

    assert (lateness(fleet), hand_overs(fleet)) == ([2.5], [1.0])
    assert too_late(fleet) == ["a shard had no holder for 2.50 s after its lease"]

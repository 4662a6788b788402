"""The checks of the soak of replicas can fail."""

import random
from typing import Any

from soak.fleet.api import Api
from soak.fleet.author import Author
from soak.fleet.cloud import MultiEndpointCloud, Written
from soak.fleet.fleet import Fleet, Loss
from soak.fleet.leases import LeaseObservation, LeaseWatch
from soak.fleet.results import hand_overs, lateness, problems, too_late, unready
from soak.fleet.subjects import PROJECT, Subject
from tests.cluster.access import Access

BUCKET = Subject("StorageBucket", "fleet-2")
DATABASE = Subject("SQLDatabase", "fleet-1")
INSTANCE = Subject("SQLInstance", "fleet-0")
NOWHERE: Any = None


def _fleet(subject: Subject, *writes: tuple[str, str, object]) -> Fleet:
    """One resource with two editions after the first, and the requests that were sent to the cloud for it."""
    cloud = MultiEndpointCloud()
    for number, (writer, method, body) in enumerate(writes):
        path = subject.collection if method == "POST" else subject.path
        cloud.written.append(Written(writer, method, path, body, 200, float(number)))
    api = Api(Access("https://a.test", NOWHERE, None, has_controllers=False))
    author = Author(api, cloud, "here", random.Random(1), _editions={subject: 2})
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
    for subject in (BUCKET, DATABASE, INSTANCE):
        assert subject.mark(1) != subject.mark(2)


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

"""What is known of watched objects: the newest version that was shown or answered, and never an older one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.clients.kubernetes.watched_objects import (
    CurrentObject,
    ObjectVersion,
    WatchedCollection,
    WatchedObjects,
    version_of,
)

TOPIC = "v1 ConfigMap shop/* @ own:shop/setpoint"
SOURCE = object()
# The history of one object: True for each version, False for a deletion. Each has the next number.
HISTORIES = st.lists(st.booleans(), min_size=1, max_size=8)


def version(number: int) -> ObjectVersion:
    return ObjectVersion("uid", number)


def watched(*, is_whole: bool = True, kept_bytes: int = 1000, **versions: int) -> WatchedObjects:
    objects = WatchedObjects(kept_bytes)
    found = {name: version(number) for name, number in versions.items()}
    objects.begin(TOPIC, WatchedCollection(SOURCE, found, is_whole))
    return objects


def find(objects: WatchedObjects, name: str = "a") -> CurrentObject | None:
    return objects.find(TOPIC, name, SOURCE)


@pytest.mark.laws
@given(HISTORIES, st.data())
def test_answers_that_come_before_or_after_their_events_never_bring_back_an_older_version(
    history: list[bool], data: st.DataObject
) -> None:
    """Events come in order; each version may be answered at any time after it was made."""
    objects = watched()
    made = [(number, is_there) for number, is_there in enumerate(history, start=1)]
    # What has happened in the cluster, and how much of it the watch has shown.
    happened, shown, newest_known = 0, 0, 0
    while shown < len(made):
        choices = ["event"] if happened > shown else []
        choices += ["answer"] if any(there for _, there in made[:happened]) else []
        choices += ["change"] if happened < len(made) else []
        match data.draw(st.sampled_from(choices)):
            case "change":
                happened += 1
            case "event":
                number, there = made[shown]
                is_news = objects.show(TOPIC, "a", version(number), is_deleted=not there)
                assert is_news or number <= newest_known
                shown += 1
                newest_known = max(newest_known, number)
            case _:
                answers = [number for number, there in made[:happened] if there]
                number = data.draw(st.sampled_from(answers))
                objects.keep(TOPIC, "a", version(number), str(number).encode())
                newest_known = max(newest_known, number)
        found = find(objects)
        assert found is not None
        if found.version is not None:
            assert found.version.number >= made[shown - 1][0] if shown else True
            assert found.body in (None, str(found.version.number).encode())

    last, is_there = made[-1]
    found = find(objects)
    assert found is not None
    assert found.version == (version(last) if is_there else None)


@pytest.mark.laws
@given(st.lists(st.tuples(st.sampled_from("abcde"), st.binary(min_size=1, max_size=40)), max_size=30))
def test_no_more_bytes_are_kept_than_allowed_and_the_last_ones_stay(answers: list[tuple[str, bytes]]) -> None:
    objects = watched(kept_bytes=60)
    for number, (name, body) in enumerate(answers, start=1):
        objects.keep(TOPIC, name, version(number), body)

    found = {name: find(objects, name) for name, _ in answers}
    bodies = {name: one.body for name, one in found.items() if one is not None and one.body is not None}
    assert sum(map(len, bodies.values())) <= 60
    assert not answers or bodies[answers[-1][0]] == answers[-1][1]


def test_an_event_of_what_was_answered_is_no_news() -> None:
    objects = watched(a=1)
    objects.keep(TOPIC, "a", version(2), b"two")

    assert objects.show(TOPIC, "a", version(2)) is False
    assert find(objects) == CurrentObject(version(2), b"two")
    assert objects.show(TOPIC, "a", version(3)) is True
    assert find(objects) == CurrentObject(version(3))


def test_what_is_in_no_list_is_absent_only_if_the_list_was_read_to_its_end() -> None:
    assert find(watched(b=1)) == CurrentObject(None)
    assert find(watched(is_whole=False, b=1)) is None


def test_nothing_is_known_without_a_watch_or_from_another_connection() -> None:
    objects = watched(a=1)
    collection = WatchedCollection(SOURCE, {}, is_whole=True)

    assert objects.find(TOPIC, "a", object()) is None
    objects.end(TOPIC, collection)
    assert find(objects) is not None
    objects.begin(TOPIC, collection)
    objects.keep(TOPIC, "a", version(1), b"one")
    objects.end(TOPIC, collection)
    assert find(objects) is None
    assert objects.show(TOPIC, "a", version(1)) is True
    objects.begin(TOPIC, collection)
    assert find(objects) == CurrentObject(version(1))


def test_a_doubted_object_is_read_until_it_is_answered_or_shown() -> None:
    objects = watched(a=1)
    objects.doubt(TOPIC, "a")

    assert find(objects) is None
    objects.keep(TOPIC, "a", version(1), b"one")
    assert find(objects) == CurrentObject(version(1), b"one")
    objects.doubt(TOPIC, "a")
    objects.show(TOPIC, "a", version(2))
    assert find(objects) == CurrentObject(version(2))


@pytest.mark.parametrize("resource_version", ["", "abc", "-1", "1.5", "٣", "1" * 65])
def test_a_resource_version_that_is_no_number_is_not_compared(resource_version: str) -> None:
    objects = watched(a=1)

    assert version_of("uid", resource_version) is None
    assert objects.show(TOPIC, "a", version_of("uid", resource_version)) is True
    assert find(objects) is None
    objects.keep(TOPIC, "a", version_of("uid", resource_version), b"what")
    assert find(objects) is None


def test_a_version_is_identified_by_uid_and_number() -> None:
    marks: Any = {version_of(uid, number) for uid in ("a", "b") for number in ("1", "2")}

    assert sorted(one.mark for one in marks) == ["a/1", "a/2", "b/1", "b/2"]

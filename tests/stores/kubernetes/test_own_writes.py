"""The answer to a write and its event show one state: whichever comes first is decoded, and the other is the same."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec import json

from setpoint.engine.resource import ResourceRef
from setpoint.stores.kubernetes.cache import OwnWrites
from setpoint.stores.kubernetes.list_watch import decode_written
from setpoint.stores.kubernetes.objects import decode_object
from setpoint.stores.kubernetes.served_kinds import ServedKind

KIND = ServedKind("sql.cnrm.cloud.google.com", "v1beta1", "SQLInstance", "sqlinstances")
REF = ResourceRef(KIND.group, KIND.kind, "default", "db")


def an_object(version: int, uid: str = "u") -> bytes:
    metadata = {"name": REF.name, "namespace": REF.namespace, "uid": uid, "resourceVersion": str(version)}
    return json.encode({"metadata": metadata, "spec": {"size": version}, "status": {"seen": version}})


@given(st.lists(st.tuples(st.sampled_from(["begin", "answer", "event"]), st.integers(1, 4), st.sampled_from("uv"))))
def test_whatever_of_a_write_comes_first_its_state_is_what_was_sent(steps: list[tuple[str, int, str]]) -> None:
    """Answers and events in any order, lost ones, and those of other writers and of an object of the same name."""
    written = OwnWrites()
    for what, version, uid in steps:
        if what == "begin":
            written.begin(REF)
            continue
        raw = an_object(version, uid)
        assert decode_written(raw, KIND, written).kept == decode_object(raw, KIND.api_version, KIND.kind)


def test_the_answer_and_the_event_of_a_write_are_decoded_once() -> None:
    written = OwnWrites()
    written.begin(REF)

    first, second = decode_written(an_object(8), KIND, written), decode_written(an_object(8), KIND, written)

    assert first is second
    assert decode_written(an_object(8), KIND, written) is not first
    assert decode_written(an_object(9), KIND, written).revision == "9"

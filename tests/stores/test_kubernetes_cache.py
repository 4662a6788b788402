"""The cache of a Kubernetes store: which states it keeps, and which writes are its own."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec import json
from msgspec.structs import replace

from setpoint.engine.ports import ResourceChangeType
from setpoint.engine.resource import ResourceRef
from setpoint.stores.kubernetes.cache import ObjectCache, OwnWrites
from setpoint.stores.kubernetes.list_watch import decode_written
from setpoint.stores.kubernetes.objects import ObjectState, decode_object
from setpoint.stores.kubernetes.served_kinds import ServedKind

KIND = ("sql.cnrm.cloud.google.com", "SQLInstance")
REF = ResourceRef(*KIND, "default", "db")
SERVED = ServedKind(KIND[0], "v1beta1", KIND[1], "sqlinstances")
_names = st.tuples(
    st.sampled_from(["", "a.dev", "sql.cnrm.cloud.google.com"]), st.sampled_from(["Secret", "A", "SQLInstance"])
)
_versions = st.integers(0, 2**64 - 1).map(str)


def _object(version: str = "7", uid: str = "u", **members: object) -> bytes:
    metadata = {"name": "db", "namespace": "default", "uid": uid, "resourceVersion": version, "generation": 2}
    return json.encode({"metadata": {**metadata, "managedFields": [{"manager": "kubectl"}]}, **members})


def _kept(version: str = "7", uid: str = "u") -> ObjectState:
    return decode_object(_object(version, uid, spec={"size": 1}), "sql.cnrm.cloud.google.com/v1beta1", "SQLInstance")


class TestCache:
    def test_an_older_state_is_ignored(self) -> None:
        cache = ObjectCache()
        cache.put(_kept("9"))
        cache.put(_kept("10"))
        cache.put(_kept("9"))

        found = cache.get(REF)
        assert found is not None
        assert found.revision == "10"

    def test_an_object_that_this_process_deleted_does_not_come_back_with_a_stale_event(self) -> None:
        cache = ObjectCache()
        cache.put(_kept("9"))
        cache.drop(REF, "u")
        cache.put(_kept("8"))

        assert cache.get(REF) is None

    def test_a_recreated_object_is_cached_before_and_after_the_deletion_event_of_the_first(self) -> None:
        cache = ObjectCache()
        cache.put(_kept("9", "first"))
        cache.drop(REF, "first")
        cache.put(_kept("12", "second"))
        cache.observe_deletion(_kept("11", "first"))

        found = cache.get(REF)
        assert found is not None
        assert found.uid == "second"

    def test_a_deletion_event_removes_an_object(self) -> None:
        cache = ObjectCache()
        cache.put(_kept("9"))
        cache.observe_deletion(_kept("10"))

        assert cache.get(REF) is None
        assert len(cache) == 0

    def test_a_relist_removes_objects_that_it_does_not_show(self) -> None:
        cache = ObjectCache()
        cache.put(_kept("9"))
        cache.restart([KIND])

        assert cache.get(REF) is None

    @given(st.lists(st.tuples(st.sampled_from(["begin", "answer", "event"]), st.integers(1, 4), st.sampled_from("uv"))))
    def test_whatever_of_a_write_comes_first_its_state_is_what_was_sent(
        self, steps: list[tuple[str, int, str]]
    ) -> None:
        """Answers and events in any order, lost ones, and those of other writers and of an object of the same name."""
        written, kind = OwnWrites(), SERVED
        for what, version, uid in steps:
            raw = _object(str(version), uid, spec={"size": version})
            if what == "begin":
                written.begin(REF)
                continue
            found = decode_written(raw, kind, written)
            assert found.kept == decode_object(raw, kind.api_version, kind.kind)

    def test_the_answer_and_the_event_of_a_write_are_decoded_once(self) -> None:
        written, kind = OwnWrites(), SERVED
        raw, later = _object("8", "u", spec={"size": 1}), _object("9", "u", spec={"size": 1})
        written.begin(REF)

        first, second = decode_written(raw, kind, written), decode_written(raw, kind, written)

        assert first is second
        assert decode_written(raw, kind, written) is not first
        assert decode_written(later, kind, written).revision == "9"

    def test_the_cache_knows_a_kind_while_it_is_watched(self) -> None:
        cache = ObjectCache()
        cache.begin([KIND])
        during = cache.knows(KIND)
        cache.end([KIND])

        assert (during, cache.knows(KIND)) == (True, False)

    @given(
        st.lists(
            st.tuples(
                st.sampled_from(("put", "drop", "deleted", "restart")),
                st.sampled_from(("a", "b")),
                st.sampled_from("xyz"),
                st.sampled_from(("u", "v")),
            )
        )
    )
    def test_the_objects_of_a_namespace_are_those_that_are_cached(self, program: list[tuple[str, ...]]) -> None:
        cache = ObjectCache([KIND])
        for number, (verb, namespace, name, uid) in enumerate(program):
            ref = ResourceRef(*KIND, namespace, name)
            state = replace(_kept(str(number), uid), ref=ref)
            match verb:
                case "put":
                    cache.put(state)
                case "drop":
                    cache.drop(ref, uid)
                case "deleted":
                    cache.observe(ResourceChangeType.DELETED, state)
                case _:
                    cache.restart([KIND])

        for namespace in ("a", "b"):
            cached = [cache.get(ResourceRef(*KIND, namespace, name)) for name in "xyz"]
            assert list(cache.all_in(KIND, namespace)) == [one for one in cached if one is not None]

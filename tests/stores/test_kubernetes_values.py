"""Values of the Kubernetes store: bookmarks, object states, write bodies, cache, leases, events and addresses."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json
from msgspec.structs import replace

from setpoint.core.values.json_types import JsonObject
from setpoint.core.values.messages import FieldTerm, field_named_by
from setpoint.engine.ports import EventRecord, ResourceChangeType
from setpoint.engine.resource import Resource, ResourceRef, Revision
from setpoint.errors import (
    KindNotServed,
    ManifestInvalid,
    RemoteConflict,
    RemoteInvalid,
    RemoteRefused,
    RemoteUnavailable,
    RevisionExpired,
    SetpointError,
    StoreError,
)
from setpoint.stores.kubernetes.bookmarks import from_revision, to_revision
from setpoint.stores.kubernetes.cache import ObjectCache
from setpoint.stores.kubernetes.errors import object_errors
from setpoint.stores.kubernetes.event_queue import QueuedEvent
from setpoint.stores.kubernetes.events import count_patch, decode_event, event_for, event_record
from setpoint.stores.kubernetes.factory import ClusterAddress, parse_cluster_address
from setpoint.stores.kubernetes.leases import (
    LeaseObservation,
    decode_lease,
    lease_body,
    observed,
    released_body,
    seconds_presumed_held,
)
from setpoint.stores.kubernetes.objects import ClusterResource, ObjectState, decode_object
from setpoint.stores.kubernetes.write_bodies import replacement_body

KIND = ("sql.cnrm.cloud.google.com", "SQLInstance")
REF = ResourceRef(*KIND, "default", "db")
_names = st.tuples(
    st.sampled_from(["", "a.dev", "sql.cnrm.cloud.google.com"]), st.sampled_from(["Secret", "A", "SQLInstance"])
)
_versions = st.integers(0, 2**64 - 1).map(str)


class TestBookmarks:
    @given(st.dictionaries(_names, _versions, min_size=1), st.data())
    def test_any_subset_of_the_kinds_of_a_bookmark_is_found_again(
        self, positions: dict[tuple[str, str], str], data: st.DataObject
    ) -> None:
        wanted = data.draw(st.lists(st.sampled_from(sorted(positions)), unique=True))

        assert from_revision(to_revision(positions), wanted) == {kind: positions[kind] for kind in wanted}

    @given(_versions, st.lists(_names, unique=True))
    def test_a_bare_number_is_the_position_of_each(self, version: str, kinds: list[tuple[str, str]]) -> None:
        assert from_revision(Revision(version), kinds) == dict.fromkeys(kinds, version)

    def test_a_watch_of_no_kind_has_a_bookmark(self) -> None:
        assert from_revision(to_revision({}), ()) == {}

    @pytest.mark.parametrize("text", ["", "x", "A.=1,", "A.", "=1", ".=1", "A.=x", "A=1", "9" * 21])
    def test_a_text_that_is_no_bookmark_has_expired(self, text: str) -> None:
        with pytest.raises(RevisionExpired, match="list again"):
            from_revision(Revision(text), [("", "A")])

    def test_a_bookmark_that_lacks_a_kind_has_expired(self) -> None:
        with pytest.raises(RevisionExpired, match="list again"):
            from_revision(to_revision({("", "A"): "1"}), [("", "B")])


def _object(version: str = "7", uid: str = "u", **members: object) -> bytes:
    metadata = {"name": "db", "namespace": "default", "uid": uid, "resourceVersion": version, "generation": 2}
    return json.encode({"metadata": {**metadata, "managedFields": [{"manager": "kubectl"}]}, **members})


def _kept(version: str = "7", uid: str = "u") -> ObjectState:
    return decode_object(_object(version, uid, spec={"size": 1}), "sql.cnrm.cloud.google.com/v1beta1", "SQLInstance")


class TestObjects:
    def test_managed_fields_are_dropped_and_everything_else_is_kept(self) -> None:
        resource = ClusterResource(_kept())

        assert resource.document == {
            "apiVersion": "sql.cnrm.cloud.google.com/v1beta1",
            "kind": "SQLInstance",
            "metadata": {
                "name": "db",
                "namespace": "default",
                "uid": "u",
                "resourceVersion": "7",
                "generation": 2,
            },
            "spec": {"size": 1},
        }
        assert b"managedFields" not in resource.kept.metadata

    def test_an_object_of_metadata_alone_has_its_own_kind(self) -> None:
        raw = _object(apiVersion="meta.k8s.io/v1", kind="PartialObjectMetadata")

        assert ClusterResource(decode_object(raw, "v1", "Secret")).ref == ResourceRef("", "Secret", "default", "db")

    @pytest.mark.parametrize("status", [None, {}, "absent"])
    def test_an_empty_status_is_none(self, status: object) -> None:
        raw = _object() if status == "absent" else _object(status=status)

        assert "status" not in ClusterResource(decode_object(raw, "v1", "Secret")).document

    @pytest.mark.parametrize("raw", [b"", b"[]", b"{}", b'{"metadata":{}}', b"\xff", b'{"metadata":{"name":1}}'])
    def test_a_malformed_object_is_a_store_error(self, raw: bytes) -> None:
        with pytest.raises(StoreError, match="no Secret"):
            decode_object(raw, "v1", "Secret")

    def test_words_of_the_author_s_part_are_found(self) -> None:
        raw = _object(spec={"rootPassword": {"valueFrom": {"secretKeyRef": {"name": "a"}}}}, status={"other": "words"})
        resource = ClusterResource(decode_object(raw, "v1", "SQLInstance"))

        assert resource.mentions("secretKeyRef")
        assert not resource.mentions("words")


def _seen() -> Resource:
    raw = _object(spec={"size": 1}, status={"ready": True})
    document = ClusterResource(decode_object(raw, "sql.cnrm.cloud.google.com/v1beta1", "SQLInstance")).document
    metadata = document["metadata"]
    assert isinstance(metadata, dict)
    return Resource({**document, "metadata": {**metadata, "labels": {"a": "0"}, "annotations": {"c": "0"}}})


def _with(seen: Resource, metadata: Mapping[str, Any], **members: Any) -> JsonObject:
    return {**seen.document, **members, "metadata": {"name": "db", "namespace": "default", **metadata}}


_metadata: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "labels": st.dictionaries(st.sampled_from("ab"), st.sampled_from("12"), max_size=2) | st.none(),
        "annotations": st.dictionaries(st.sampled_from("ab"), st.sampled_from("12"), max_size=2),
        "ownerReferences": st.lists(st.just({"uid": "p"}), max_size=1),
        "finalizers": st.just(["x.dev/f"]),
        "uid": st.just("another"),
        "resourceVersion": st.just("1"),
        "managedFields": st.just([{}]),
    },
)
_contents = st.fixed_dictionaries({}, optional={"spec": st.integers(0, 2), "status": st.just({}), "more": st.none()})


class TestReplacing:
    def test_an_object_as_it_was_read_needs_no_replacement(self) -> None:
        assert replacement_body(_seen(), _seen().document) is None

    @given(_metadata, _contents)
    def test_a_replacement_keeps_the_part_that_is_not_the_owner_s(
        self, metadata: dict[str, Any], contents: dict[str, Any]
    ) -> None:
        seen = _seen()
        sent = replacement_body(seen, _with(seen, metadata, **contents))

        if sent is not None:
            made = Resource(sent)
            assert (made.uid, made.revision, made.finalizers, made.status) == ("u", "7", (), {"ready": True})
            assert "managedFields" not in str(sent)

    @given(_metadata, _contents)
    def test_a_replacement_has_the_owner_s_part_as_declared(
        self, metadata: dict[str, Any], contents: dict[str, Any]
    ) -> None:
        seen = _seen()
        document = _with(seen, metadata, **contents)
        made = Resource(replacement_body(seen, document) or seen.document)

        assert made.labels == Resource(document).labels
        assert made.annotations == Resource(document).annotations
        assert made.document.get("spec") == document["spec"]

    @given(_metadata, _contents)
    def test_an_object_as_it_was_sent_needs_no_replacement(
        self, metadata: dict[str, Any], contents: dict[str, Any]
    ) -> None:
        seen = _seen()
        sent = replacement_body(seen, _with(seen, metadata, **contents)) or seen.document

        assert replacement_body(Resource(sent), sent) is None

    @pytest.mark.parametrize("member", ["name", "namespace"])
    def test_a_replacement_cannot_change_the_identity(self, member: str) -> None:
        with pytest.raises(ManifestInvalid, match=r"^SQLInstance default/db cannot become"):
            replacement_body(_seen(), _with(_seen(), {member: "another"}))

    def test_a_number_that_a_cluster_would_round_is_refused(self) -> None:
        with pytest.raises(ManifestInvalid, match=r"^SQLInstance db: spec.size cannot be 9223372036854775808"):
            replacement_body(_seen(), _with(_seen(), {}, spec={"size": 2**63}))


class TestRefusals:
    @pytest.mark.parametrize(
        ("error", "wanted"),
        [
            (RemoteInvalid("POST /a: 422: Invalid: no", (("spec.a", "too big"),)), ManifestInvalid),
            (RemoteRefused("POST /a: 400: BadRequest: no", 400), ManifestInvalid),
            (RemoteRefused("POST /a: 403: Forbidden: no", 403), ManifestInvalid),
            (RemoteRefused('POST /a: 404: NotFound: namespaces "x" not found', 404), ManifestInvalid),
            (RemoteRefused("POST /a: 401: Unauthorized", 401), StoreError),
            (RemoteRefused("POST /a: 401: Unauthorized: 403: no", 401), StoreError),
            (KindNotServed("POST /a: 404: page not found"), StoreError),
            (RemoteUnavailable("POST /a: 503: no"), StoreError),
            (RemoteConflict("POST /a: 409: Conflict: no"), StoreError),
        ],
    )
    def test_an_error_about_the_object_names_it(self, error: Exception, wanted: type[Exception]) -> None:
        with pytest.raises(SetpointError) as caught, object_errors(REF):
            raise error

        assert type(caught.value) is wanted
        assert str(caught.value).startswith("SQLInstance default/db: ") == (wanted is ManifestInvalid)

    @pytest.mark.parametrize(
        ("error", "field"),
        [
            (RemoteInvalid("POST /a: 422: no", (("", "wrong"), ("spec.a", "too big"))), "spec.a"),
            (RemoteRefused('POST /a: 400: unknown field "spec.b"', 400, ("spec.b",)), "spec.b"),
        ],
    )
    def test_a_refusal_names_the_field_at_fault(self, error: Exception, field: str) -> None:
        with pytest.raises(ManifestInvalid) as caught, object_errors(REF):
            raise error

        assert field_named_by(caught.value) == FieldTerm(field)


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


class TestLeases:
    def _written(self, body: object, version: str) -> bytes:
        tree = json.decode(json.encode(body), type=dict[str, Any])
        tree["metadata"]["resourceVersion"] = version
        return json.encode(tree)

    def test_the_fence_grows_with_each_holder_and_with_no_renewal(self) -> None:
        now = "2026-01-01T00:00:00Z"
        first = decode_lease(self._written({**lease_body("a", "me", 15, now, None)}, "1"))
        renewed = decode_lease(self._written({**lease_body("a", "me", 15, now, first)}, "2"))
        freed = decode_lease(self._written({**released_body("a", renewed)}, "3"))
        taken = decode_lease(self._written({**lease_body("a", "you", 15, now, freed)}, "4"))

        assert [one.fence for one in (first, renewed, freed, taken)] == [1, 1, 1, 2]
        assert [one.holder for one in (first, renewed, freed, taken)] == ["me", "me", "", "you"]

    def test_a_lease_expires_when_no_renewal_was_observed(self) -> None:
        lease = decode_lease(self._written({**lease_body("a", "me", 15, "2001-01-01T00:00:00Z", None)}, "1"))
        observation = LeaseObservation(lease, 100.0)

        assert observed(observation, lease, 110.0) is observation
        assert (observation.left(114.0), observation.left(115.0)) == (1.0, 0.0)

    def test_a_reader_presumes_the_holder_by_its_renew_time(self) -> None:
        lease = decode_lease(self._written({**lease_body("a", "me", 15, "2026-01-01T00:00:00Z", None)}, "1"))
        renewed = datetime(2026, 1, 1, tzinfo=UTC).timestamp()

        assert seconds_presumed_held(LeaseObservation(lease, 100.0), 100.0, renewed) == 15.0
        assert seconds_presumed_held(LeaseObservation(lease, 100.0), 100.0, renewed + 44) == 1.0
        assert seconds_presumed_held(LeaseObservation(lease, 100.0), 100.0, renewed + 3600) < 0

    def test_an_observed_renewal_starts_the_duration_again(self) -> None:
        lease = decode_lease(self._written({**lease_body("a", "me", 15, "2001-01-01T00:00:00Z", None)}, "1"))
        renewed = decode_lease(self._written({**lease_body("a", "me", 15, "2001-01-01T00:00:00Z", lease)}, "2"))

        assert observed(LeaseObservation(lease, 100.0), renewed, 110.0).left(110.0) == 15.0


class TestEvents:
    def test_an_event_record_survives_its_event_and_is_counted(self) -> None:
        record = EventRecord(REF, "u", "Warning", "Failed", "no", "2026-01-01T00:00:00Z")
        queued = QueuedEvent.of(record, record.message)
        sent = json.decode(json.encode(event_for(queued, "v1beta1")), type=dict[str, Any])
        sent["metadata"]["resourceVersion"] = "5"
        event = decode_event(json.encode(sent))

        assert event_record(event).event == record
        assert count_patch(record, 2)["count"] == 2


class TestClusterAddress:
    @pytest.mark.parametrize(
        ("url", "place"),
        [
            ("kubernetes", ClusterAddress()),
            ("kubernetes://prod", ClusterAddress("prod")),
            (
                "kubernetes://arn:aws:eks:eu:1:cluster/a?namespace=team",
                ClusterAddress("arn:aws:eks:eu:1:cluster/a", "team"),
            ),
            ("kubernetes?namespace=team", ClusterAddress(None, "team")),
        ],
    )
    def test_an_address_names_a_context_and_a_namespace(self, url: str, place: ClusterAddress) -> None:
        assert parse_cluster_address(url) == place

    @pytest.mark.parametrize(
        "url", ["kubernetes://", "kubernetez", "kubernetes?ns=a", "kubernetes?namespace=", "kubernetes?"]
    )
    def test_a_wrong_address_says_what_to_write(self, url: str) -> None:
        with pytest.raises(ManifestInvalid, match="write kubernetes, kubernetes://CONTEXT"):
            parse_cluster_address(url)

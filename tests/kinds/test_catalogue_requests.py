"""The requests of the generic kind: what is sent at creation, in an update, and instead of a deletion."""

import asyncio
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.catalogue.index import kinds_by_group
from setpoint.catalogue.rows import KindFacts, facts_of
from setpoint.clients.google.client import GoogleAuth, GoogleClient, GoogleSettings
from setpoint.clients.http import HttpClient
from setpoint.core.decide import Decision
from setpoint.core.plan import plan_fields
from setpoint.engine.intent import intent_of
from setpoint.engine.kind import Absent, Location, Present, ResolvedReferences
from setpoint.engine.resource import Resource
from setpoint.kinds.gcp.generic.creating.creations import creation
from setpoint.kinds.gcp.generic.kind import GoogleKind
from setpoint.kinds.gcp.generic.part_requests import sending_of
from setpoint.kinds.gcp.generic.requests import (
    GoogleRequest,
    api_of,
    query_of,
    update,
    with_declared_lists,
)
from tests.kinds.effective_states import effective_over
from tests.kinds.lifecycle_google import held_cloud

PROJECT = {"cnrm.cloud.google.com/project-id": "acme"}
PLACE = "projects/acme/locations/eu"
MANAGED = {"managed-by-cnrm": "true"}


def row_of(kind: str) -> KindFacts:
    return facts_of(next(name for name in kinds_by_group() if name[1] == kind))


def kind_of(name: str, url: str = "") -> GoogleKind:
    settings = GoogleSettings(url, url, GoogleAuth.ANONYMOUS, base=url) if url else GoogleSettings()
    return GoogleKind.of(row_of(name), GoogleClient(HttpClient(), settings))


def resource(
    kind: GoogleKind,
    spec: dict[str, Any],
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
) -> Resource:
    about = {"annotations": {**PROJECT, **(annotations or {})}, "labels": labels or {}}
    metadata: dict[str, Any] = {"name": "one", "namespace": "team", **about}
    return Resource(
        {"apiVersion": f"{kind.group}/{kind.version}", "kind": kind.name, "metadata": metadata, "spec": spec}
    )


def created(name: str, spec: dict[str, Any], labels: dict[str, str] | None = None) -> Any:
    """The body of the creation."""
    kind = kind_of(name)
    intent = intent_of(resource(kind, spec, labels), kind, ResolvedReferences())
    wanted = effective_over(kind, intent).tree
    return creation(kind.row, intent.location, wanted, intent.resource.spec).body


def updates(
    name: str, spec: dict[str, Any], live: dict[str, Any], annotations: dict[str, str] | None = None
) -> list[GoogleRequest]:
    """The requests for a live object."""
    kind = kind_of(name)
    intent = intent_of(resource(kind, spec, annotations=annotations), kind, ResolvedReferences())
    before = kind.read_item(msgspec.json.encode(live), intent.location)
    assert before is not None
    effective = effective_over(kind, intent, kind.view(before.live))
    plan = plan_fields(Decision.INTENT_CHANGED, effective.declared, effective.live, sending_of(kind.row))
    return [update(kind.row, intent, effective.tree, write, live) for write in plan.writes]


# --- Creation ---------------------------------------------------------------------------------------------------------


def test_labels_of_the_spec_come_instead_of_those_of_the_metadata() -> None:
    spec = {"config": "regional-eu", "displayName": "d", "labels": {"a": "b"}}

    assert created("SpannerInstance", spec, {"c": "d"})["instance"]["labels"] == {"a": "b", **MANAGED}
    assert created("PubSubTopic", {}, {"c": "d"})["labels"] == {"c": "d", **MANAGED}


@pytest.mark.parametrize(
    ("capacity", "expected"),
    [({}, {"nodeCount": 1}), ({"numNodes": 3}, {"nodeCount": 3}), ({"processingUnits": 100}, {"processingUnits": 100})],
)
def test_a_constant_is_sent_unless_an_alternative_of_it_is(capacity: dict[str, int], expected: dict[str, int]) -> None:
    body = created("SpannerInstance", {"config": "regional-eu", "displayName": "d", **capacity})["instance"]

    assert {name: body[name] for name in ("nodeCount", "processingUnits") if name in body} == expected


def created_at(name: str, spec: dict[str, Any]) -> tuple[str, str, dict[str, str]]:
    """The collection, the custom method and the query of the creation."""
    kind = kind_of(name)
    intent = intent_of(resource(kind, spec), kind, ResolvedReferences())
    call = creation(kind.row, intent.location, intent.effective.over(Absent(), kind).tree, spec).call
    return "/".join(call.parts), call.method, dict(call.query)


def test_a_member_can_choose_the_method_that_creates_the_object() -> None:
    cluster = "projects/acme/locations/eu/clusters"
    primary = {"projectRef": {"external": "acme"}, "location": "eu"}
    secondary = {**primary, "secondaryConfig": {"primaryClusterNameRef": {"external": f"{cluster}/first"}}}
    instance = {"clusterRef": {"external": f"{cluster}/c"}, "instanceTypeRef": {"external": "SECONDARY"}}

    assert created_at("AlloyDBCluster", primary) == (cluster, "", {"clusterId": "one"})
    assert created_at("AlloyDBCluster", secondary) == (cluster, "createsecondary", {"clusterId": "one"})
    assert created_at("AlloyDBInstance", instance)[1] == "createsecondary"


def test_a_sink_of_a_folder_has_an_identity_of_its_own() -> None:
    sink = {"destination": {"storageBucketRef": {"external": "b"}}}

    assert created_at("LoggingLogSink", {**sink, "folderRef": {"external": "folders/7"}}) == (
        "folders/7/sinks",
        "",
        {"uniqueWriterIdentity": "true"},
    )
    assert created_at("LoggingLogSink", sink)[2] == {}


def test_a_zone_comes_before_the_region_where_the_name_has_one() -> None:
    spec = {"projectRef": {"external": "acme"}, "region": "eu", "zone": "eu-b", "topic": "t"}

    assert created_at("PubSubLiteSubscription", spec)[0] == "projects/acme/locations/eu-b/subscriptions"
    assert created("PubSubLiteSubscription", spec)["topic"] == "projects/acme/locations/eu-b/topics/t"


@pytest.mark.parametrize(
    ("kind", "name", "host"),
    [
        ("PubSubLiteTopic", "projects/p/locations/europe-west1-b/topics/t", "europe-west1-pubsublite.googleapis.com"),
        ("VertexAIDataset", "projects/p/locations/us-central1/datasets/7", "us-central1-aiplatform.googleapis.com"),
        ("VertexAIDataset", "projects/p/locations/us-central1/operations/7", "us-central1-aiplatform.googleapis.com"),
        ("PubSubTopic", "projects/p/topics/t", "pubsub.googleapis.com"),
        ("KMSKeyRing", "projects/p/locations/us-central1/keyRings/r", "cloudkms.googleapis.com"),
    ],
)
def test_a_service_with_a_host_for_each_region_is_asked_there(kind: str, name: str, host: str) -> None:
    assert api_of(row_of(kind), name).host == host


def test_the_organization_of_apigee_is_that_of_the_project() -> None:
    spec = {"projectRef": {"external": "acme"}, "analyticsRegion": "eu", "runtimeType": "CLOUD"}

    assert created_at("ApigeeOrganization", spec) == ("organizations", "", {"parent": "projects/acme"})


@pytest.mark.parametrize(
    ("kind", "spec", "collection"),
    [
        ("KMSImportJob", {"kmsKeyRingRef": {"external": f"{PLACE}/keyRings/r"}}, f"{PLACE}/keyRings/r/importJobs"),
        (
            "CertificateManagerCertificateMapEntry",
            {"mapRef": {"external": "m"}},
            "/certificateMaps/m/certificateMapEntries",
        ),
        ("FirestoreIndex", {"collection": "c", "fields": []}, "databases/(default)/collectionGroups/c/indexes"),
    ],
)
def test_the_parent_is_found_by_its_kind_or_has_a_default(kind: str, spec: dict[str, Any], collection: str) -> None:
    assert created_at(kind, spec)[0].endswith(collection)


# --- Updates ----------------------------------------------------------------------------------------------------------


def test_labels_of_the_spec_are_compared_without_the_one_that_marks_the_object_as_managed() -> None:
    spec = {"config": "regional-eu", "displayName": "d", "labels": {"a": "b"}}
    live = {"config": "projects/acme/instanceConfigs/regional-eu", "displayName": "d", "labels": {"a": "b", **MANAGED}}

    assert updates("SpannerInstance", spec, live) == []


def test_a_service_that_takes_one_member_at_a_time_gets_a_write_for_each() -> None:
    spec = {"region": "eu", "memorySizeGb": 2, "displayName": "new"}

    found = updates("RedisInstance", spec, {"memorySizeGb": 1, "displayName": "old"})

    assert [(one.call.query, one.body) for one in found] == [
        ({"updateMask": "displayName"}, {"displayName": "new"}),
        ({"updateMask": "memorySizeGb"}, {"memorySizeGb": 2}),
    ]


def test_a_patch_without_a_mask_has_the_whole_object_and_lists_as_declared() -> None:
    spec = {"location": "eu", "template": {"taskCount": 2, "template": {"containers": [{"image": "i"}]}}}
    filled = {"image": "i", "resources": {"limits": {"cpu": "1"}}}
    chosen = {"timeout": "600s", "maxRetries": 3}
    live = {"launchStage": "GA", "template": {"taskCount": 1, "template": {"containers": [filled], **chosen}}}

    (found,) = updates("RunJob", spec, {**live, "labels": MANAGED})

    assert found.verb == "PATCH"
    assert found.body == {
        "launchStage": "GA",
        "labels": MANAGED,
        "template": {"taskCount": 2, "template": {"containers": [{"image": "i"}], **chosen}},
    }


def test_what_the_service_makes_of_other_members_is_not_sent_back() -> None:
    spec = {"filter": "new", "metricDescriptor": {"unit": "s"}}
    descriptor = {"unit": "s", "description": "old", "name": "n", "type": "t"}
    view = {"query": "q", "useLegacySql": True}

    (metric,) = updates("LoggingLogMetric", spec, {"filter": "old", "metricDescriptor": descriptor})
    (table,) = updates(
        "BigQueryTable",
        {"datasetRef": {"external": "d"}, "friendlyName": "new", "view": view},
        {"friendlyName": "old", "view": view, "schema": {"fields": [{"name": "a"}]}, "labels": MANAGED},
    )

    assert metric.body == {"filter": "new", "metricDescriptor": {"unit": "s"}}
    assert table.body == {"friendlyName": "new", "view": view, "labels": MANAGED}


@pytest.mark.parametrize(
    ("declared", "sent"), [("STRING", []), ("DATE", [{"fields": [{"name": "a", "type": "DATE"}]}])]
)
def test_members_of_a_text_that_are_unmanaged_are_neither_compared_nor_sent(declared: str, sent: list[Any]) -> None:
    policy = {"cnrm.cloud.google.com/unmanaged": "spec.schema.fields.policyTags"}
    spec = {
        "datasetRef": {"external": "d"},
        "schema": json.dumps([{"name": "a", "type": declared, "policyTags": {"names": ["mine"]}}]),
    }
    live = {"labels": MANAGED, "schema": {"fields": [{"name": "a", "type": "STRING", "policyTags": {"names": ["x"]}}]}}

    found = updates("BigQueryTable", spec, live, policy)

    assert [one.body["schema"] for one in found] == sent  # type: ignore[call-overload, index]


def test_a_field_that_the_service_cannot_do_without_stays_when_it_is_taken_out() -> None:
    live = {"config": "projects/acme/instanceConfigs/regional-eu", "nodeCount": 2, "labels": MANAGED}

    (found,) = updates("SpannerInstance", {"config": "regional-eu", "displayName": "d"}, live)

    assert found.body["fieldMask"] == "displayName"  # type: ignore[call-overload, index]


def test_an_address_of_the_authors_own_is_no_link_to_an_object() -> None:
    endpoint = {"pushEndpoint": "https://new.example.com/push"}
    live = {"topic": "projects/acme/topics/t", "pushConfig": {"pushEndpoint": "https://example.com/push"}}

    (found,) = updates("PubSubSubscription", {"topicRef": {"external": "t"}, "pushConfig": endpoint}, live)

    assert found.body["subscription"]["pushConfig"] == endpoint  # type: ignore[call-overload, index]


trees = st.recursive(
    st.integers() | st.lists(st.integers(), max_size=2),
    lambda below: st.dictionaries(st.sampled_from("abc"), below, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from("abc"), trees), st.dictionaries(st.sampled_from("abc"), trees))
def test_lists_are_as_declared_and_all_else_as_wanted(wanted: dict[str, Any], declared: dict[str, Any]) -> None:
    found = with_declared_lists(wanted, declared)

    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        own = declared.get(name)
        if isinstance(value, dict) and isinstance(own, dict):
            assert found[name] == with_declared_lists(value, own)
        elif isinstance(value, list) and isinstance(own, list):
            assert found[name] == own
        else:
            assert found[name] == value


# --- Deletion ---------------------------------------------------------------------------------------------------------


def test_a_policy_is_emptied_before_it_is_deleted() -> None:
    location = Location("projects/acme/policies/one")
    path = f"/dns.googleapis.com/dns/v1/{location}"
    network = "https://www.googleapis.com/compute/v1/projects/acme/global/networks/n"

    async def writes() -> list[str]:
        async with held_cloud() as cloud:
            cloud.call("POST", path.rpartition("/")[0], {"name": "one", "networks": [{"networkUrl": network}]})
            kind = kind_of("DNSPolicy", cloud.url)
            before = await kind.observe(location)
            assert isinstance(before, Present)
            cloud.journal.clear()
            await kind.delete(location, before, resource(kind, {}))
            return [entry.method for entry in cloud.journal.entries]

    assert asyncio.run(writes()) == ["PATCH", "DELETE"]


def test_a_deletion_has_the_parameters_of_the_spec() -> None:
    row, location = row_of("AlloyDBCluster"), Location("projects/acme/locations/eu/clusters/one")

    assert query_of(row, row.methods["delete"], location, {"deletionPolicy": "FORCE"}) == {"force": "true"}
    assert query_of(row, row.methods["delete"], location, {"deletionPolicy": "DEFAULT"}) == {}


def test_a_key_is_retired_by_the_destruction_of_its_versions() -> None:
    ring = "projects/acme/locations/eu/keyRings/ring"
    body = {"purpose": "ENCRYPT_DECRYPT", "rotationPeriod": "86400s"}

    async def retired() -> tuple[list[str], dict[str, Any]]:
        async with held_cloud() as cloud:
            path = f"/cloudkms.googleapis.com/v1/{ring}"
            cloud.call("POST", path.replace("/ring", "?keyRingId=ring"), {})
            assert cloud.call("POST", f"{path}/cryptoKeys?cryptoKeyId=one", body).status == 200
            kind = kind_of("KMSCryptoKey", cloud.url)
            location = Location(f"{ring}/cryptoKeys/one")
            for _ in range(2):
                before = await kind.observe(location)
                assert isinstance(before, Present)
                await kind.delete(location, before, resource(kind, {}))
            versions: Any = cloud.call("GET", f"{path}/cryptoKeys/one/cryptoKeyVersions").body
            key: Any = cloud.call("GET", f"{path}/cryptoKeys/one").body
            return [one["state"] for one in versions["cryptoKeyVersions"]], key

    states, key = asyncio.run(retired())

    assert states == ["DESTROY_SCHEDULED"]
    assert "rotationPeriod" not in key
    assert kind_of("KMSCryptoKey").stays_when_deleted()
    assert kind_of("KMSKeyRing").abandons(resource(kind_of("KMSKeyRing"), {}))


def test_an_update_may_have_the_id_in_the_query() -> None:
    target = "https://www.googleapis.com/compute/v1/projects/acme/zones/eu-a/instanceGroupManagers/m"
    spec = {
        "zone": "eu-a",
        "projectRef": {"external": "projects/acme"},
        "targetRef": {"external": target},
        "autoscalingPolicy": {"minReplicas": 1, "maxReplicas": 3},
    }
    live = {"name": "one", "target": target, "autoscalingPolicy": {"minNumReplicas": 1, "maxNumReplicas": 2}}

    (sent,) = updates("ComputeAutoscaler", spec, live)

    assert sent.verb == "PATCH"
    assert sent.call.parts == ("projects", "acme", "zones", "eu-a", "autoscalers")
    assert sent.call.query == {"autoscaler": "one"}


@pytest.mark.parametrize(
    ("place", "scheme", "expected"),
    [
        ("global", "EXTERNAL", 1),
        ("us-west1", "INTERNAL_MANAGED", 1),
        ("us-west1", "INTERNAL", None),
    ],
)
def test_backends_have_a_capacity_unless_packets_are_passed_through(place: str, scheme: str, expected: Any) -> None:
    group = {"group": {"instanceGroupRef": {"external": "projects/acme/zones/eu-a/instanceGroups/g"}}}
    spec = {"location": place, "loadBalancingScheme": scheme, "backend": [group]}
    live = {"loadBalancingScheme": scheme, "backends": [], "connectionDraining": {"drainingTimeoutSec": 300}}

    (new,) = created("ComputeBackendService", spec)["backends"]
    (sent,) = updates("ComputeBackendService", spec, live)

    body: Any = sent.body
    assert [one.get("capacityScaler") for one in (new, body["backends"][0])] == [expected, expected]

"""What requests have beside the declared members: aliases written out, switches, what no answer tells, names."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.clients.google.client import GoogleAuth, GoogleClient, GoogleSettings
from setpoint.core.plan import Action, PlannedWrite
from setpoint.engine.intent import intent_of
from setpoint.engine.kind import Absent, Present, ResolvedReferences
from setpoint.kinds.gcp.generic.equivalence import fitted
from setpoint.kinds.gcp.generic.kind import GoogleKind
from setpoint.kinds.gcp.generic.members import from_members, to_members
from setpoint.kinds.gcp.shared.oauth_scopes import oauth_scope
from tests.catalogue_kinds.in_process import URL, InProcessClient, RecordingCloud
from tests.kinds.test_catalogue_requests import created, kind_of, resource, row_of, updates

SCOPES = "https://www.googleapis.com/auth/"
PARTS: Any = {"zone": "eu-b", "machineType": "n1-standard-1"}


@given(st.text())
def test_a_scope_that_is_written_out_stays_as_it_is(text: str) -> None:
    assert oauth_scope(oauth_scope(text)) == oauth_scope(text)


def test_an_alias_of_a_scope_is_written_out_and_means_the_same() -> None:
    fields = row_of("ComputeInstance").fields
    spec = {"serviceAccount": {"scopes": ["storage-ro", f"{SCOPES}trace.append", "another"]}}
    live = from_members(to_members(spec, fields), fields)

    assert live["serviceAccount"]["scopes"] == [f"{SCOPES}devstorage.read_only", f"{SCOPES}trace.append", "another"]
    assert fitted(spec, live, fields) == live


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("debian-cloud/debian-12", "projects/debian-cloud/global/images/family/debian-12"),
        (
            "debian-cloud/debian-12-bookworm-v20240110",
            "projects/debian-cloud/global/images/debian-12-bookworm-v20240110",
        ),
        ("projects/p/global/images/i", "projects/p/global/images/i"),
        ("image-one", "projects/acme/global/images/image-one"),
    ],
)
def test_an_image_is_named_by_project_and_family_or_in_full(image: str, expected: str) -> None:
    boot = {"initializeParams": {"sourceImageRef": {"external": image}}}

    disk = created("ComputeInstance", {**PARTS, "bootDisk": boot})["disks"][0]

    assert disk["initializeParams"]["sourceImage"] == expected


def test_the_boot_disk_is_the_first_and_goes_with_the_instance() -> None:
    attached = [{"sourceDiskRef": {"external": "projects/acme/zones/eu-b/disks/d"}}]

    disks = created("ComputeInstance", {**PARTS, "attachedDisk": attached, "bootDisk": {"deviceName": "boot"}})["disks"]

    assert disks == [
        {"deviceName": "boot", "autoDelete": True, "mode": "READ_WRITE", "boot": True},
        {"source": "projects/acme/zones/eu-b/disks/d", "mode": "READ_WRITE"},
    ]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"machineType": "m"}, {"automaticRestart": True}),
        ({"machineType": "m", "scheduling": {"preemptible": True}}, {"preemptible": True}),
        ({}, None),
    ],
)
def test_an_instance_restarts_by_itself_unless_its_spec_or_template_may_say_otherwise(spec: Any, expected: Any) -> None:
    assert created("ComputeInstance", {"zone": "eu-b", **spec}).get("scheduling") == expected


@pytest.mark.parametrize(("scopes", "count"), [(None, 6), (["pubsub"], 1)])
def test_nodes_have_the_scopes_of_gcloud_where_the_spec_names_none(scopes: Any, count: int) -> None:
    config: Any = {"machineType": "m", **({"oauthScopes": scopes} if scopes else {})}
    cluster = {"location": "eu", "initialNodeCount": 1}
    pool = {"location": "eu", "clusterRef": {"external": "projects/acme/locations/eu/clusters/c"}}

    pools = created("ContainerNodePool", {**pool, "nodeConfig": config})["nodePool"]["config"]["oauthScopes"]
    nodes = created("ContainerCluster", {**cluster, "nodeConfig": config})["cluster"]["nodeConfig"]["oauthScopes"]

    assert (len(pools), pools) == (count, nodes)
    assert "nodeConfig" not in created("ContainerCluster", cluster)["cluster"]


def test_a_scratch_disk_is_no_attached_disk() -> None:
    boot = {"type": "PERSISTENT", "boot": True, "source": "b"}
    attached, scratch = {"type": "PERSISTENT", "boot": False, "source": "d"}, {"type": "SCRATCH", "boot": False}

    live = from_members({"disks": [boot, attached, scratch]}, row_of("ComputeInstance").fields)

    assert live["attachedDisk"] == [{"sourceDiskRef": {"external": "d"}}]


@pytest.mark.parametrize(
    ("location", "declared", "expected"),
    [
        ("us-central1-a", ["us-central1-b"], ["us-central1-a", "us-central1-b"]),
        ("us-central1-a", ["us-central1-b", "us-central1-a"], ["us-central1-b", "us-central1-a"]),
        ("us-central1", ["us-central1-b"], ["us-central1-b"]),
        ("us-central1-a", [], []),
    ],
)
def test_the_zones_of_a_cluster_have_its_own_among_them(location: str, declared: list[str], expected: Any) -> None:
    body = created("ContainerCluster", {"location": location, "initialNodeCount": 1, "nodeLocations": declared})

    assert body["cluster"].get("locations") == expected


@pytest.mark.parametrize("region", [{}, {"region": "us-west1"}])
def test_an_instance_template_is_global_wherever_its_subnetworks_are(region: Any) -> None:
    kind = kind_of("ComputeInstanceTemplate")
    template = resource(kind, {"machineType": "m", "disk": [], **region})

    location = intent_of(template, kind, ResolvedReferences()).location

    assert location == f"projects/acme/global/instanceTemplates/{template.ref.name}"


@pytest.mark.parametrize(
    ("body", "expected"), [({"enabled": True, "maxNodeCount": 3}, {"maxNodeCount": 3}), ({}, None)]
)
def test_an_object_that_switches_something_on_is_there_when_it_is_on(body: Any, expected: Any) -> None:
    fields = row_of("ContainerNodePool").fields

    assert from_members({"autoscaling": body}, fields).get("autoscaling") == expected
    assert to_members({"autoscaling": {"maxNodeCount": 3}}, fields) == {
        "autoscaling": {"enabled": True, "maxNodeCount": 3}
    }


def test_a_request_that_replaces_the_object_has_what_no_answer_tells_and_no_outputs() -> None:
    descriptor = {"metricKind": "DELTA", "launchStage": "ALPHA"}
    spec = {"projectRef": {"external": "acme"}, "filter": "f", "description": "new", "metricDescriptor": descriptor}
    told = {"metricKind": "DELTA", "name": "projects/acme/metricDescriptors/x"}
    live = {"name": "one", "filter": "f", "description": "old", "createTime": "t", "metricDescriptor": told}

    (request,) = updates("LoggingLogMetric", spec, live)

    assert (request.verb, request.body) == (
        "PUT",
        {"name": "one", "filter": "f", "description": "new", "metricDescriptor": descriptor},
    )


def test_an_update_of_a_dashboard_has_the_whole_of_it() -> None:
    layout: Any = {"columns": [{"weight": 1, "widgets": [{"title": "t", "text": {"content": "c"}}]}]}
    filled: Any = {"columns": [{"weight": "1", "widgets": [{"title": "t", "text": {"content": "c", "style": {}}}]}]}
    live = {"name": "d", "etag": "e", "displayName": "old", "columnLayout": filled}

    (request,) = updates("MonitoringDashboard", {"displayName": "new", "columnLayout": layout}, live)

    body: Any = request.body
    assert (request.verb, request.call.query, body["displayName"], body["etag"]) == ("PATCH", {}, "new", "e")
    assert body["columnLayout"]["columns"][0]["widgets"][0]["text"]["content"] == "c"


def test_what_an_author_took_out_of_an_element_is_as_declared_when_it_is_gone() -> None:
    fields = row_of("MonitoringDashboard").fields
    chart: Any = {"dataSets": [{"plotType": "LINE"}], "timeshiftDuration": None}
    live: Any = {"columnLayout": {"columns": [{"widgets": [{"xyChart": {"dataSets": [{"plotType": "LINE"}]}}]}]}}
    spec: Any = {"columnLayout": {"columns": [{"widgets": [{"xyChart": chart}]}]}}

    assert fitted(spec, live, fields) == live
    live["columnLayout"]["columns"][0]["widgets"][0]["xyChart"]["timeshiftDuration"] = "60s"
    assert fitted(spec, live, fields) != live


def kind_on(cloud: RecordingCloud, name: str) -> GoogleKind:
    settings = GoogleSettings(URL, URL, GoogleAuth.ANONYMOUS, base=URL)
    return GoogleKind.of(row_of(name), GoogleClient(InProcessClient(cloud), settings))


@pytest.mark.parametrize("account", ["01-02", "billingAccounts/01-02"])
def test_the_billing_account_of_a_project_follows_its_creation(account: str) -> None:
    cloud = RecordingCloud()
    kind = kind_on(cloud, "Project")
    spec = {"name": "n", "folderRef": {"external": "7"}, "billingAccountRef": {"external": account}}
    intent = intent_of(resource(kind, spec), kind, ResolvedReferences())

    asyncio.run(kind.create(intent, intent.effective.over(Absent(), kind).tree))
    cloud.advance(60)
    before = asyncio.run(kind.observe(intent.location))
    assert isinstance(before, Present)
    follow_up = kind.sending(intent).follow_up
    assert follow_up is not None
    asyncio.run(kind.update(intent, {}, PlannedWrite(Action.UPDATE, follow_up, ()), before))

    assert cloud.written[0]["parent"] == {"id": "7", "type": "folder"}
    assert [one.get("billingAccountName") for one in cloud.written] == [None, "billingAccounts/01-02"]


def test_a_project_without_a_billing_account_in_its_spec_keeps_the_one_it_has() -> None:
    kind = kind_of("Project")
    intent = intent_of(resource(kind, {"name": "n"}), kind, ResolvedReferences())

    assert kind.sending(intent).follow_up is None


def test_a_notification_channel_is_shown_by_the_name_of_its_resource() -> None:
    cloud = RecordingCloud()
    kind = kind_on(cloud, "MonitoringNotificationChannel")
    intent = intent_of(resource(kind, {"type": "email"}), kind, ResolvedReferences())

    asyncio.run(kind.create(intent, intent.effective.over(Absent(), kind).tree))

    assert cloud.written[-1]["displayName"] == "one"


@pytest.mark.parametrize(
    ("name", "expected"), [("ServiceNetworkingConnection", False), ("KMSKeyRing", True), ("PubSubTopic", False)]
)
def test_what_no_method_deletes_is_abandoned_but_for_connections(name: str, expected: bool) -> None:
    kind = kind_of(name)

    assert kind.abandons(resource(kind, {})) is expected

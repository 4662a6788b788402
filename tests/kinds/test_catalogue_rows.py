"""The requests of single rows: where an object is, what is sent for odd fields, and by which method."""

from typing import Any

import pytest

from setpoint.catalogue.index import kinds_by_group
from setpoint.catalogue.rows import facts_of
from setpoint.clients.google.client import GoogleAuth, GoogleClient, GoogleSettings
from setpoint.clients.http import HttpClient
from setpoint.core.diff import FieldChange
from setpoint.core.overlay import Declared
from setpoint.core.plan import Action, PlannedWrite
from setpoint.core.schema.policy import FieldPolicy
from setpoint.core.schema.shape import shape_of
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path
from setpoint.engine.kind import Intent, Location, ResolvedReferences
from setpoint.engine.resource import Resource
from setpoint.errors import ImmutableFieldChanged, ManifestInvalid
from setpoint.kinds.gcp.generic.creating.creations import creation
from setpoint.kinds.gcp.generic.equivalence import fitted
from setpoint.kinds.gcp.generic.kind import GoogleKind
from setpoint.kinds.gcp.generic.members import from_members
from setpoint.kinds.gcp.generic.requests import GoogleRequest, update
from setpoint.kinds.gcp.generic.retirement import deletion

NOTHING = ResolvedReferences()


def kind_of(name: str) -> GoogleKind:
    key = next(one for one in kinds_by_group() if one[1] == name)
    return GoogleKind.of(facts_of(key), GoogleClient(HttpClient(), GoogleSettings(auth=GoogleAuth.ANONYMOUS)))


def resource_of(kind: GoogleKind, spec: dict[str, Any]) -> Resource:
    metadata: dict[str, Json] = {
        "name": "one",
        "namespace": "team",
        "annotations": {"cnrm.cloud.google.com/project-id": "some-project"},
        "labels": {"team": "a"},
    }
    version = f"{kind.group}/{kind.version}"
    return Resource({"apiVersion": version, "kind": kind.name, "metadata": metadata, "spec": spec})


def created(name: str, spec: dict[str, Any]) -> GoogleRequest:
    kind = kind_of(name)
    resource = resource_of(kind, spec)
    return creation(kind.row, kind.locate(resource, NOTHING), kind.declare(resource, NOTHING), resource.spec)


def updated(name: str, spec: dict[str, Any], changed: str, live: dict[str, Any]) -> GoogleRequest:
    kind = kind_of(name)
    resource = resource_of(kind, spec)
    tree = kind.declare(resource, NOTHING)
    declared = Declared(tree, shape_of(kind.tree_type), FieldPolicy())
    intent = Intent(resource, kind.locate(resource, NOTHING), lambda: declared, NOTHING, "")
    write = PlannedWrite(Action.UPDATE, "update", (FieldChange(Path.parse(changed), None, None),))
    return update(kind.row, intent, tree, write, live)


# --- Where an object is -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "spec", "location"),
    [
        (
            "Workstation",
            {"parentRef": {"external": "projects/p/locations/l/workstationClusters/a/workstationConfigs/b"}},
            "projects/p/locations/l/workstationClusters/a/workstationConfigs/b/workstations/one",
        ),
        (
            "BigLakeDatabase",
            {"parentCatalogRef": {"external": "projects/p/locations/l/catalogs/c"}},
            "projects/p/locations/l/catalogs/c/databases/one",
        ),
        (
            "ApigeeEnvironment",
            {"apigeeOrganizationRef": {"external": "organizations/o"}},
            "organizations/o/environments/one",
        ),
        (
            "MetastoreBackup",
            {"serviceRef": {"external": "projects/p/locations/l/services/s"}},
            "projects/p/locations/l/services/s/backups/one",
        ),
        (
            "PubSubLiteTopic",
            {"region": "europe-west1", "zone": "europe-west1-b"},
            "projects/some-project/locations/europe-west1-b/topics/one",
        ),
        ("GKEHubFleet", {"location": "global"}, "projects/some-project/locations/global/fleets/default"),
        ("ApigeeOrganization", {"resourceID": "other"}, "organizations/some-project"),
    ],
)
def test_an_object_is_in_what_its_one_parent_names(name: str, spec: dict[str, Any], location: str) -> None:
    kind = kind_of(name)

    assert kind.locate(resource_of(kind, spec), NOTHING) == location


# --- What is sent -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "field", "value", "member"),
    [
        ("ApigeeEnvironment", "properties", {"a": "b"}, {"property": [{"name": "a", "value": "b"}]}),
        ("BillingBudgetsBudget", "budgetFilter", {"labels": {"a": {"values": ["b"]}}}, {"labels": {"a": ["b"]}}),
        ("MetastoreService", "maintenanceWindow", {"hourOfDay": {"value": 3}}, {"hourOfDay": 3}),
        ("CloudFunctionsFunction", "eventTrigger", {"failurePolicy": True}, {"failurePolicy": {"retry": {}}}),
        (
            "GKEHubMembership",
            "endpoint",
            {"gkeCluster": {"resourceRef": {"external": "projects/p/locations/l/clusters/c"}}},
            {"gkeCluster": {"resourceLink": "//container.googleapis.com/projects/p/locations/l/clusters/c"}},
        ),
        (
            "BatchJob",
            "allocationPolicy",
            {"serviceAccountRef": {"external": "sa@p.iam.gserviceaccount.com"}},
            {"serviceAccount": {"email": "sa@p.iam.gserviceaccount.com"}},
        ),
        (
            "ComposerEnvironment",
            "config",
            {"workloadsConfig": {"scheduler": {"cpu": "0.5"}}},
            {"workloadsConfig": {"scheduler": {"cpu": 0.5}}},
        ),
    ],
)
def test_what_is_sent_for_an_odd_field_is_no_change_when_it_comes_back(
    name: str, field: str, value: dict[str, Any], member: dict[str, Any]
) -> None:
    row = kind_of(name).row
    spec = {"location": "l", "region": "r", field: value}
    parents = {one: {"external": "organizations/o"} for one in ("apigeeOrganizationRef", "billingAccountRef")}

    body = created(name, {**parents, **spec}).body

    assert isinstance(body, dict)
    assert body[field] == member
    read = from_members(body, row.fields)
    assert fitted({field: read[field]}, read, row.fields)[field] == read[field]


@pytest.mark.parametrize("environment", ["organizations/o/environments/e", "e"])
def test_a_service_that_knows_its_objects_by_their_ids_gets_the_id(environment: str) -> None:
    spec = {"envgroupRef": {"external": "organizations/o/envgroups/g"}, "environmentRef": {"external": environment}}

    assert created("ApigeeEnvgroupAttachment", spec).body == {"environment": "e"}


def test_an_object_around_another_is_not_sent() -> None:
    parent = {"dataExchangeRef": {"external": "projects/p/locations/l/dataExchanges/x"}}
    source = {"bigQueryDatasetSource": {"datasetRef": {"external": "projects/p/datasets/d"}}}
    row = kind_of("BigQueryAnalyticsHubListing").row

    body = created("BigQueryAnalyticsHubListing", {**parent, "displayName": "n", "source": source}).body

    assert body == {"displayName": "n", "bigqueryDataset": {"dataset": "projects/p/datasets/d"}}
    assert from_members(body, row.fields)["source"] == source


@pytest.mark.parametrize("project", ["p", "projects/p"])
def test_a_project_gets_the_prefix_that_the_service_wants(project: str) -> None:
    budget = {"billingAccountRef": {"external": "b"}, "budgetFilter": {"projects": [{"external": project}]}}

    assert created("BillingBudgetsBudget", budget).body == {"budgetFilter": {"projects": ["projects/p"]}}


def test_a_change_that_no_method_sends_is_refused() -> None:
    spec = {"location": "l", "channelRef": {"external": "projects/p/locations/l/channels/c"}}

    with pytest.raises(ImmutableFieldChanged, match=r"metadata\.labels\.team cannot change: eventarc"):
        updated("EventarcChannelConnection", spec, "metadata.labels.team", {})


def test_a_path_length_of_zero_has_a_field_of_its_own() -> None:
    parents = {"location": "l"}
    options = "issuancePolicy", "baselineValues", "caOptions"

    def sent(given: dict[str, Any]) -> Any:
        body: Any = created(
            "PrivateCACAPool", {**parents, "issuancePolicy": {"baselineValues": {"caOptions": given}}}
        ).body
        for step in options:
            body = body[step]
        return body

    assert sent({"zeroMaxIssuerPathLength": True}) == {"maxIssuerPathLength": 0}
    assert sent({"maxIssuerPathLength": 3, "zeroMaxIssuerPathLength": False}) == {"maxIssuerPathLength": 3}
    assert from_members({"maxIssuerPathLength": 3}, _inner("PrivateCACAPool", *options)) == {"maxIssuerPathLength": 3}


def _inner(name: str, *steps: str) -> Any:
    fields = kind_of(name).row.fields
    for step in steps:
        fields = fields[step].fields
    return fields


def test_labels_that_a_spec_lists_are_sent_as_a_map() -> None:
    spec = {"projectRef": {"external": "p"}, "location": "l", "labels": [{"key": "own", "value": "b"}]}

    assert created("WorkstationCluster", spec).body == {"labels": {"own": "b"}}


def test_the_metadata_of_a_service_is_its_labels() -> None:
    spec = {"namespaceRef": {"external": "projects/p/locations/l/namespaces/n"}}

    assert created("ServiceDirectoryService", spec).body == {"metadata": {"team": "a", "managed-by-cnrm": "true"}}


def test_parameters_of_the_query_are_those_of_the_method() -> None:
    row = kind_of("BackupDRBackupVault").row
    location = Location("projects/p/locations/l/backupVaults/v")

    assert deletion(row, location, {"ignoreInactiveDatasources": True}).call.query == {"force": "true"}
    assert created("CloudIdentityGroup", {}).call.query == {"initialGroupConfig": "EMPTY"}
    assert created("ApigeeOrganization", {}).call.query == {"parent": "projects/some-project"}


def test_a_patch_without_a_mask_sends_the_whole_object() -> None:
    spec = {"organizationRef": {"external": "organizations/1"}, "condition": "new"}
    live = {"name": "organizations/1/customConstraints/one", "condition": "old", "methodTypes": ["CREATE"]}

    request = updated("OrgPolicyCustomConstraint", spec, "spec.condition", live)

    assert (request.verb, request.call.query) == ("PATCH", {})
    assert request.body == {**live, "condition": "new"}


def test_a_mask_of_paths_names_what_changes_inside_an_object() -> None:
    config = {"workerConfig": {"numInstances": 3, "machineType": "m"}}
    live: Any = {"config": {"workerConfig": {"numInstances": 2, "machineTypeUri": "m"}}}

    request = updated(
        "DataprocCluster", {"location": "l", "config": config}, "spec.config.workerConfig.numInstances", live
    )

    assert request.call.query == {"updateMask": "config.workerConfig.numInstances"}
    assert request.body == {"config": {"workerConfig": {"numInstances": 3, "machineTypeUri": "m"}}}


def test_a_text_that_is_no_number_is_refused_where_one_is_needed() -> None:
    kind = kind_of("ComposerEnvironment")
    spec = {"location": "l", "config": {"workloadsConfig": {"scheduler": {"cpu": "half"}}}}

    with pytest.raises(ManifestInvalid, match=r"spec\.config\.workloadsConfig\.scheduler\.cpu is no number: write one"):
        kind.check(resource_of(kind, spec))


# --- Members that hold nothing but one other --------------------------------------------------------------------------


def test_tags_and_the_most_pods_of_a_network_are_the_only_member_of_an_object() -> None:
    network = {"networkRef": {"external": "n"}, "maxPodsPerNode": 8}
    spec = {
        "location": "eu",
        "clusterRef": {"external": "c"},
        "nodeConfig": {"resourceManagerTags": {"tagKeys/1": "tagValues/2"}},
        "networkConfig": {"additionalPodNetworkConfigs": [network]},
    }

    body: Any = created("ContainerNodePool", spec).body

    pool = body["nodePool"]
    assert pool["config"]["resourceManagerTags"] == {"tags": {"tagKeys/1": "tagValues/2"}}
    assert pool["networkConfig"]["additionalPodNetworkConfigs"][0]["maxPodsPerNode"] == {"maxPodsPerNode": "8"}


def test_projects_that_a_reservation_is_shared_with_are_the_keys_of_a_map_and_read_back() -> None:
    shared = {"keyRef": {"external": "projects/other"}, "value": {"projectIDRef": {"external": "other"}}}
    spec = {"zone": "eu-a", "shareSettings": {"shareType": "SPECIFIC_PROJECTS", "projectMap": [shared]}}

    body: Any = created("ComputeReservation", spec).body

    assert body["shareSettings"]["projectMap"] == {"other": {"projectId": "other"}}
    read = from_members(body, kind_of("ComputeReservation").row.fields)
    assert read["shareSettings"]["projectMap"] == [
        {"keyRef": {"external": "other"}, "value": {"projectIDRef": {"external": "other"}}}
    ]


# --- Elements and members that the spec says in another way -----------------------------------------------------------


def test_a_scratch_disk_is_sent_with_its_type_and_read_back_beside_other_disks() -> None:
    spec: dict[str, Any] = {
        "zone": "eu-a",
        "machineType": "n2-standard-4",
        "bootDisk": {"sourceDiskRef": {"external": "boot"}},
        "scratchDisk": [{"interface": "NVME"}, {"interface": "SCSI"}],
        "attachedDisk": [{"sourceDiskRef": {"external": "data"}}],
    }

    body: Any = created("ComputeInstance", spec).body

    disks = body["disks"]
    local = {"diskType": "projects/some-project/zones/eu-a/diskTypes/local-ssd"}
    scratch = {"type": "SCRATCH", "autoDelete": True, "initializeParams": local}
    assert [one for one in disks if one.get("type") == "SCRATCH"] == [
        {**scratch, "interface": "NVME"},
        {**scratch, "interface": "SCSI"},
    ]
    assert len(disks) == 4
    read = from_members({"disks": disks}, kind_of("ComputeInstance").row.fields)
    assert read["scratchDisk"] == spec["scratchDisk"]
    assert [one["sourceDiskRef"] for one in read["attachedDisk"]] == [
        {"external": "projects/some-project/zones/eu-a/disks/data"}
    ]


@pytest.mark.parametrize("kind", ["ComputeInstance", "ComputeInstanceTemplate"])
def test_a_specific_reservation_is_sent_beside_the_sort_of_reservation(kind: str) -> None:
    specific = {"key": "compute.googleapis.com/reservation-name", "values": ["r"]}
    spec: dict[str, Any] = {
        "zone": "eu-a",
        "reservationAffinity": {"type": "SPECIFIC_RESERVATION", "specificReservation": specific},
    }

    body: Any = created(kind, spec).body

    sent = body.get("properties", body)["reservationAffinity"]
    assert sent == {"consumeReservationType": "SPECIFIC_RESERVATION", **specific}
    read = from_members(body, kind_of(kind).row.fields)
    assert read["reservationAffinity"] == spec["reservationAffinity"]


def test_a_field_without_a_member_is_refused_with_its_reason() -> None:
    kind = kind_of("ContainerCluster")

    with pytest.raises(ManifestInvalid, match=r"spec\.nodeVersion cannot be set: that of the nodes of a pool is in"):
        kind.check(resource_of(kind, {"location": "eu", "nodeVersion": "1.30"}))

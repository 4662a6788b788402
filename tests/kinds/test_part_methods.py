"""Methods that set a part of an object: which fields they cover, in every row, and the requests that they get."""

from typing import Any

import pytest

from setpoint.catalogue.index import kinds_by_group
from setpoint.catalogue.parts import part_methods, settable_paths
from setpoint.catalogue.rows import KindFacts, facts_of
from setpoint.core.diff import FieldChange
from setpoint.core.overlay import Declared
from setpoint.core.plan import Action, PlannedWrite
from setpoint.core.schema.shape import ObjectShape, field_below, shape_of
from setpoint.core.values.paths import Path
from setpoint.engine.kind import Intent, Location, ResolvedReferences
from setpoint.engine.resource import Resource
from setpoint.kinds.gcp.generic.part_requests import request_of, sending_of
from setpoint.kinds.gcp.generic.spec_types import tree_type_of

ROWS = [facts_of(name) for name in kinds_by_group()]
BY_PARTS = [row for row in ROWS if settable_paths(row) is not None]
ZONE = "projects/p/zones/europe-west1-b"
INSTANCE = Location(f"{ZONE}/instances/i")


def row_of(kind: str) -> KindFacts:
    return facts_of(next(name for name in kinds_by_group() if name[1] == kind))


# --- Every row --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.kind)
def test_each_stage_is_for_fields_that_are_there(row: KindFacts) -> None:
    whole = shape_of(tree_type_of(row)).as_field

    for stage in sending_of(row).stages:
        for path in stage.paths:
            field = whole
            for step in path.steps:
                below = field_below(field, step)
                assert below is not None, f"{stage.name}: there is no {path}"
                field = below


@pytest.mark.parametrize("row", BY_PARTS, ids=lambda row: row.kind)
def test_without_an_update_only_what_a_method_sets_can_change(row: KindFacts) -> None:
    spec = shape_of(tree_type_of(row)).fields["spec"].entries
    assert isinstance(spec, ObjectShape)
    settable = {path.steps[1] for path in settable_paths(row) or () if path.steps[0] == "spec"}

    for name, field in spec.fields.items():
        facts = row.fields[name]
        is_free = facts.output_only or facts.query or facts.secret or facts.input_only
        assert field.immutable or is_free or name in settable, name


def test_a_method_sets_each_part_of_a_member_or_all_of_it() -> None:
    methods = {one.name: one for one in part_methods(row_of("ContainerNodePool"))}

    assert methods["machineType"].paths == (Path.parse("spec.nodeConfig.machineType"),)
    assert methods["setAutoscaling"].paths == (Path.parse("spec.autoscaling"),)


# --- Requests ---------------------------------------------------------------------------------------------------------


def sent(kind: str, location: str, spec: dict[str, Any], field: str, live: dict[str, Any]) -> tuple[str, str, Any]:
    """The verb, the path and the body of the write that sets one field."""
    row = row_of(kind)
    path = Path.parse(field)
    stage = next((one.name for one in sending_of(row).stages if any(at.covers(path) for at in one.paths)), "update")
    write = PlannedWrite(Action.UPDATE, stage, (FieldChange(path, None, None),))
    tree: dict[str, Any] = {"spec": spec}
    declared = Declared(tree, shape_of(tree_type_of(row)))
    intent = Intent(Resource(tree), Location(location), lambda: declared, ResolvedReferences(), "")
    request = request_of(row, intent, tree, write, live)
    return request.verb, request.call.path.removesuffix("alt=json&prettyPrint=false").rstrip("?&"), request.body


@pytest.mark.parametrize(
    ("field", "spec", "live", "expected"),
    [
        (
            "spec.tags",
            {"tags": ["b"]},
            {"tags": {"items": ["a"], "fingerprint": "f"}},
            ("setTags", {"items": ["b"], "fingerprint": "f"}),
        ),
        (
            "spec.metadataStartupScript",
            {"metadata": [{"key": "k", "value": "v"}], "metadataStartupScript": "echo"},
            {"metadata": {"items": [{"key": "k", "value": "v"}], "fingerprint": "f"}},
            (
                "setMetadata",
                {
                    "items": [{"key": "k", "value": "v"}, {"key": "startup-script", "value": "echo"}],
                    "fingerprint": "f",
                },
            ),
        ),
        (
            "spec.serviceAccount",
            {"serviceAccount": {"serviceAccountRef": {"external": "a@b"}, "scopes": ["cloud-platform"]}},
            {},
            ("setServiceAccount", {"email": "a@b", "scopes": ["https://www.googleapis.com/auth/cloud-platform"]}),
        ),
        (
            "spec.deletionProtection",
            {"deletionProtection": True},
            {},
            ("setDeletionProtection?deletionProtection=true", {}),
        ),
        ("spec.desiredStatus", {"desiredStatus": "SUSPENDED"}, {"status": "RUNNING"}, ("suspend", {})),
        (
            "spec.scheduling",
            {"scheduling": {"automaticRestart": False}},
            {"scheduling": {"automaticRestart": True, "hostErrorTimeoutSeconds": 90}},
            ("setScheduling", {"automaticRestart": False, "hostErrorTimeoutSeconds": 90}),
        ),
    ],
)
def test_a_part_of_an_instance_is_sent_by_its_method(
    field: str, spec: dict[str, Any], live: dict[str, Any], expected: tuple[str, Any]
) -> None:
    verb, path, body = sent("ComputeInstance", INSTANCE, spec, field, live)

    assert (verb, path, body) == ("POST", f"/compute/v1/{INSTANCE}/{expected[0]}", expected[1])


def test_a_method_of_compute_may_leave_global_out_of_its_path() -> None:
    spec = {"urlMapRef": {"external": "projects/p/global/urlMaps/m"}}

    _, path, body = sent("ComputeTargetHTTPProxy", "projects/p/global/targetHttpProxies/t", spec, "spec.urlMapRef", {})

    assert path == "/compute/v1/projects/p/targetHttpProxies/t/setUrlMap"
    assert body == {"urlMap": "projects/p/global/urlMaps/m"}


def test_a_member_that_the_method_names_otherwise_is_sent_so() -> None:
    spec = {"edgeSecurityPolicyRef": {"external": "projects/p/global/securityPolicies/s"}}

    location = "projects/p/global/backendServices/b"
    _, path, body = sent("ComputeBackendService", location, spec, "spec.edgeSecurityPolicyRef", {})

    assert path == f"/compute/v1/{location}/setEdgeSecurityPolicy"
    assert body == {"securityPolicy": "projects/p/global/securityPolicies/s"}


def test_of_two_fields_for_one_member_the_one_that_changes_is_sent() -> None:
    spec = {"securityPolicy": "new", "securityPolicyRef": {"external": "old"}}

    _, _, body = sent("ComputeBackendService", "projects/p/global/backendServices/b", spec, "spec.securityPolicy", {})

    assert body == {"securityPolicy": "new"}


# --- GKE --------------------------------------------------------------------------------------------------------------

CLUSTER = "projects/p/locations/europe-west1/clusters/c"


@pytest.mark.parametrize(
    ("field", "spec", "live", "expected"),
    [
        ("spec.nodeLocations", {"nodeLocations": ["a"]}, {}, {"desiredLocations": ["a"]}),
        (
            "spec.enableIntranodeVisibility",
            {"enableIntranodeVisibility": True, "enableL4IlbSubsetting": True},
            {},
            {"desiredIntraNodeVisibilityConfig": {"enabled": True}},
        ),
        (
            "spec.clusterAutoscaling.autoscalingProfile",
            {"clusterAutoscaling": {"autoscalingProfile": "BALANCED"}},
            {"autoscaling": {"autoprovisioningLocations": ["a"]}},
            {"desiredClusterAutoscaling": {"autoscalingProfile": "BALANCED", "autoprovisioningLocations": ["a"]}},
        ),
        (
            "spec.enableShieldedNodes",
            {"enableShieldedNodes": False},
            {},
            {"desiredShieldedNodes": {"enabled": False}},
        ),
    ],
)
def test_a_cluster_is_updated_one_desired_field_at_a_time(
    field: str, spec: dict[str, Any], live: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert sent("ContainerCluster", CLUSTER, spec, field, live) == (
        "PUT",
        f"/v1beta1/{CLUSTER}",
        {"update": expected},
    )


@pytest.mark.parametrize(
    ("field", "spec", "expected"),
    [
        ("spec.enableLegacyAbac", {"enableLegacyAbac": True}, ("setLegacyAbac", {"enabled": True})),
        (
            "spec.networkPolicy.enabled",
            {"networkPolicy": {"enabled": True}},
            ("setNetworkPolicy", {"networkPolicy": {"enabled": True}}),
        ),
    ],
)
def test_what_no_desired_field_sets_of_a_cluster_has_its_method(
    field: str, spec: dict[str, Any], expected: tuple[str, Any]
) -> None:
    assert sent("ContainerCluster", CLUSTER, spec, field, {}) == (
        "POST",
        f"/v1beta1/{CLUSTER}:{expected[0]}",
        expected[1],
    )


def test_labels_of_a_cluster_go_with_their_fingerprint() -> None:
    row = row_of("ContainerCluster")
    method = next(one for one in part_methods(row) if one.paths == (Path.parse("metadata.labels"),))

    assert (method.name, method.parts) == ("setResourceLabels", {"resourceLabels": "resourceLabels"})


@pytest.mark.parametrize(
    ("field", "spec", "expected"),
    [
        ("spec.nodeConfig.tags", {"nodeConfig": {"tags": ["a"], "spot": True}}, {"tags": {"tags": ["a"]}}),
        ("spec.version", {"version": "1.30"}, {"nodeVersion": "1.30"}),
        ("spec.upgradeSettings.maxSurge", {"upgradeSettings": {"maxSurge": 2}}, {"upgradeSettings": {"maxSurge": 2}}),
    ],
)
def test_a_node_pool_is_updated_by_a_request_of_its_own(
    field: str, spec: dict[str, Any], expected: dict[str, Any]
) -> None:
    pool = f"{CLUSTER}/nodePools/n"

    assert sent("ContainerNodePool", pool, spec, field, {}) == ("PUT", f"/v1beta1/{pool}", expected)


def test_a_node_pool_is_resized_by_its_method() -> None:
    pool = f"{CLUSTER}/nodePools/n"

    found = sent("ContainerNodePool", pool, {"nodeCount": 3, "initialNodeCount": 1}, "spec.nodeCount", {})

    assert found == ("POST", f"/v1beta1/{pool}:setSize", {"nodeCount": 3})

"""Kinds of Compute Engine: what is sent at creation by place, lists without an order, and lists that fields share."""

import asyncio
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.catalogue.index import kinds_by_group
from setpoint.catalogue.rows import FieldFacts, KindFacts, ReferenceFacts, facts_of
from setpoint.core.schema.shape import ObjectShape, shape_of
from setpoint.core.values.json_types import Json
from setpoint.engine.kind import Location
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.outcomes import Settled, Stopped
from setpoint.kinds.gcp.generic.creating.creations import creation
from setpoint.kinds.gcp.generic.equivalence import fitted
from setpoint.kinds.gcp.generic.members import from_members, to_members
from setpoint.kinds.gcp.generic.spec_types import tree_type_of
from setpoint.testing import Spec, SpecifiedField, contract_harness
from tests.kinds.lifecycle_catalogue import NAME
from tests.kinds.lifecycle_compute import COMPUTE, ZONE, ComputeFixture
from tests.kinds.lifecycle_google import NAMESPACE

REFERENCES = {"targets": FieldFacts("list", ref=ReferenceFacts(("ComputeNetwork",)))}
references = st.lists(st.text("abc", min_size=1, max_size=3).map(lambda text: {"external": f"projects/p/{text}"}))
CERTIFICATE_MANAGER = "//certificatemanager.googleapis.com/projects/p/locations/global/certificates/c"


def row_of(kind: str) -> KindFacts:
    return facts_of(next(name for name in kinds_by_group() if name[1] == kind))


@given(references, st.randoms(use_true_random=False))
def test_references_in_another_order_or_twice_are_no_change(live: list[Any], random: Any) -> None:
    declared = [*live, *live[:1]]
    random.shuffle(declared)

    assert fitted({"targets": declared}, {"targets": live}, REFERENCES) == {"targets": live}


@given(references, references)
def test_other_references_are_the_declared_ones(declared: list[Any], live: list[Any]) -> None:
    found = fitted({"targets": declared}, {"targets": live}, REFERENCES)["targets"]

    assert {one["external"] for one in found} == {one["external"] for one in declared}


@pytest.mark.parametrize(
    ("place", "spec", "expected"),
    [
        ("global", {}, {"loadBalancingScheme": "EXTERNAL", "connectionDraining": {"drainingTimeoutSec": 300}}),
        (
            "regions/europe-west1",
            {},
            {
                "loadBalancingScheme": "INTERNAL",
                "connectionDraining": {"drainingTimeoutSec": 0},
                "subsetting": {"policy": "NONE"},
            },
        ),
        (
            "regions/europe-west1",
            {"loadBalancingScheme": "EXTERNAL_MANAGED", "connectionDrainingTimeoutSec": 10},
            {"loadBalancingScheme": "EXTERNAL_MANAGED", "connectionDraining": {"drainingTimeoutSec": 10}},
        ),
        (
            "global",
            {"backend": [{"balancingMode": "RATE"}, {"capacityScaler": 0.5}]},
            {
                "loadBalancingScheme": "EXTERNAL",
                "connectionDraining": {"drainingTimeoutSec": 300},
                "backends": [{"balancingMode": "RATE", "capacityScaler": 1}, {"capacityScaler": 0.5}],
            },
        ),
    ],
)
def test_a_backend_service_is_created_with_the_defaults_of_its_place(
    place: str, spec: dict[str, Any], expected: dict[str, Any]
) -> None:
    location = Location(f"projects/p/{place}/backendServices/b")

    request = creation(row_of("ComputeBackendService"), location, {"spec": spec}, spec)

    assert request.body == {"name": "b", **expected}


def test_the_live_target_gives_way_to_a_declared_one_of_another_kind() -> None:
    row = row_of("ComputeForwardingRule")
    live = from_members({"target": "projects/p/global/targetHttpProxies/a"}, row.fields)
    declared = {"target": {"targetVPNGatewayRef": {"external": "projects/p/regions/r/targetVpnGateways/b"}}}

    found = fitted(declared, live, row.fields)

    assert to_members(found, row.fields) == {"target": "projects/p/regions/r/targetVpnGateways/b"}
    assert found["target"].keys() == declared["target"].keys() | live["target"].keys()


@pytest.mark.parametrize(("declared", "live"), [("80", "80-80"), ("80-80", "80"), ("80-90", "80-90")])
def test_a_range_of_one_port_is_that_port(declared: str, live: str) -> None:
    fields = row_of("ComputeForwardingRule").fields

    assert fitted({"portRange": declared}, {"portRange": live}, fields) == {"portRange": live}


def test_certificates_of_two_services_in_one_list_are_two_fields() -> None:
    fields = row_of("ComputeTargetHTTPSProxy").fields
    body = {"sslCertificates": ["projects/p/global/sslCertificates/s", CERTIFICATE_MANAGER]}

    found = from_members(body, fields)

    assert found["sslCertificates"] == [{"external": "projects/p/global/sslCertificates/s"}]
    assert found["certificateManagerCertificates"] == [{"external": CERTIFICATE_MANAGER}]
    assert sorted(to_members(found, fields)["sslCertificates"]) == sorted(body["sslCertificates"])


def test_a_list_of_one_service_alone_is_no_field_of_the_other() -> None:
    found = from_members({"sslCertificates": [CERTIFICATE_MANAGER]}, row_of("ComputeTargetHTTPSProxy").fields)

    assert "sslCertificates" not in found


def test_labels_of_a_template_are_among_its_properties_and_cannot_change() -> None:
    row = row_of("ComputeInstanceTemplate")
    spec = {"machineType": "e2-small", "metadataStartupScript": "echo"}
    tree: dict[str, Any] = {"spec": spec, "metadata": {"labels": {"a": "b"}}}

    request = creation(row, Location("projects/p/global/instanceTemplates/t"), tree, spec)

    script = {"items": [{"key": "startup-script", "value": "echo"}]}
    properties = {"machineType": "e2-small", "metadata": script, "labels": {"a": "b"}}
    assert request.body == {"name": "t", "properties": properties}
    metadata = shape_of(tree_type_of(row)).fields["metadata"].entries
    assert isinstance(metadata, ObjectShape)
    assert metadata.fields["labels"].immutable


# --- Disks ------------------------------------------------------------------------------------------------------------


class DiskFixture(ComputeFixture):
    """A disk, which is resized by a method and never made smaller."""

    kind_name = "ComputeDisk"
    location = f"{ZONE}/disks/{NAME}"
    path = f"/compute.googleapis.com/compute/v1/{location}"
    api_kind = "ComputeDisk"
    routes: ClassVar[Mapping[str, tuple[str, str]]] = {
        "get": ("GET", ""),
        "create": ("POST", "/disks$"),
        "update": ("POST|PATCH", f"/disks/{NAME}"),
        "delete": ("DELETE", ""),
    }
    ref = ResourceRef(COMPUTE, kind_name, NAMESPACE, NAME)
    minimal: ClassVar[Spec] = {"location": "europe-west1-b"}
    field = SpecifiedField("spec.size", 10, 20, 40, "sizeGb")

    def create_outside(self, value: Json) -> None:
        raise NotImplementedError


def test_a_disk_that_has_grown_is_left_alone_until_the_author_changes_its_size() -> None:
    async def run() -> None:
        fixture = DiskFixture()
        async with contract_harness(fixture) as harness:
            await harness.settle({**fixture.minimal, "size": 10})
            fixture.drift("sizeGb", "40")
            fixture.cloud.journal.clear()

            assert isinstance(await harness.go_on(requested=True), Settled)
            assert fixture.calls == ["get"]

            await harness.settle({**fixture.minimal, "size": 50})
            assert fixture.read("sizeGb") == "50"

            await harness.apply({**fixture.minimal, "size": 30})
            outcome = await harness.go_on()
            assert isinstance(outcome, Stopped)
            assert "cannot be smaller than current size" in str(outcome.error)
            assert fixture.read("sizeGb") == "50"

    asyncio.run(run())

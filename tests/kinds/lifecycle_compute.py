"""The lifecycle fixtures of kinds whose parts are set by methods of their own, in the local cloud."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from setpoint.core.values.json_types import Json
from setpoint.engine.resource import ResourceRef
from setpoint.testing import (
    CallFault,
    ImmutableChange,
    MovedObject,
    Part,
    ReferringSpec,
    Spec,
    SpecifiedField,
    UnspecifiedField,
)
from setpoint.testing.faults import EVERY_VERB, FOR_EVER
from tests.kinds.lifecycle_catalogue import NAME, CatalogueFixture
from tests.kinds.lifecycle_google import NAMESPACE, OPERATION_SECONDS, PROJECT, TOLD, injected_fault

COMPUTE: Final = "compute.cnrm.cloud.google.com"
ZONE: Final = f"projects/{PROJECT}/zones/europe-west1-b"
CLUSTER: Final = f"projects/{PROJECT}/locations/europe-west1/clusters/some-cluster"
_NO_ABANDON: Final = "the spec does not speak of deletion"
_FILLED: Final = "the service fills in what the spec never had"


def _reference(kind: str, name: str) -> Mapping[str, Any]:
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": f"{COMPUTE}/v1beta1", "kind": kind, "metadata": metadata, "spec": {}}


class ComputeFixture(CatalogueFixture):
    """An object of which some calls differ in their paths alone: a creation and a method of the object are a POST."""

    group = COMPUTE
    host = "compute.googleapis.com"
    prefix = "compute/v1"
    # The HTTP methods and the path of each verb, as patterns.
    routes: ClassVar[Mapping[str, tuple[str, str]]]
    without: ClassVar[Mapping[Part, str]] = {
        **TOLD,
        Part.OWN_ABANDON: _NO_ABANDON,
        Part.SECRET: "nothing in it is secret",
        Part.STATELESS: "it keeps a cookie",
        Part.PROTECTION: "no field of it is protected",
        Part.PRUNING: _FILLED,
        Part.MOVING_OUTPUT: "it has no output that moves by itself",
    }

    @property
    def calls(self) -> list[str]:
        return [self._verb(entry.method, entry.path) for entry in self.cloud.journal.entries]

    def _verb(self, method: str, path: str) -> str:
        return next(
            verb
            for verb, (methods, pattern) in self.routes.items()
            if re.fullmatch(methods, method) and re.search(pattern, path)
        )

    def fail_next_calls(self, fault: CallFault, verbs: Sequence[str] = EVERY_VERB, times: int = FOR_EVER) -> None:
        for verb in verbs:
            methods, pattern = self.routes[verb]
            self.cloud.inject(injected_fault(fault, methods, times, pattern))


class ComputeInstanceFixture(ComputeFixture):
    """An instance: each part by a method of its own, with a fingerprint of the part."""

    kind_name = "ComputeInstance"
    location = f"{ZONE}/instances/{NAME}"
    path = f"/compute.googleapis.com/compute/v1/{location}"
    api_kind = "ComputeInstance"
    routes: ClassVar[Mapping[str, tuple[str, str]]] = {
        "get": ("GET", ""),
        "create": ("POST", "/instances$"),
        "update": ("POST", f"/instances/{NAME}/"),
        "delete": ("DELETE", ""),
    }
    ref = ResourceRef(COMPUTE, kind_name, NAMESPACE, NAME)
    minimal: ClassVar[Spec] = {"zone": "europe-west1-b", "machineType": "e2-small"}
    field = SpecifiedField("spec.tags", ["one"], ["two"], ["three"], "tags.items")
    labels_member = "labels"
    moved = MovedObject({**minimal, "resourceID": "another-instance"}, "another-instance")
    immutable = ImmutableChange(
        {**minimal, "hostname": "a.example.com"},
        {**minimal, "hostname": "b.example.com"},
        'spec.hostname cannot change from "a.example.com" to "b.example.com"',
    )
    unspecified = UnspecifiedField("spec.scheduling", {"automaticRestart": True})
    outputs: ClassVar[Mapping[str, Json]] = {"externalRef": location}
    referring = ReferringSpec(
        {**minimal, "resourcePolicies": [{"name": "policy"}]},
        _reference("ComputeResourcePolicy", "policy"),
        "reference ComputeResourcePolicy team/policy",
        {"setpoint": {"location": f"projects/{PROJECT}/regions/europe-west1/resourcePolicies/policy"}},
    )

    def create_outside(self, value: Json) -> None:
        machine = f"{ZONE}/machineTypes/e2-small"
        body = {"name": NAME, "machineType": machine, "tags": {"items": value}, "labels": {"managed-by-cnrm": "true"}}
        assert self.cloud.call("POST", self.path.rpartition("/")[0], body).status == 200
        self.cloud.advance(OPERATION_SECONDS)
        self.cloud.journal.clear()


class BackendServiceFixture(ComputeFixture):
    """A backend service: a PATCH with a fingerprint."""

    kind_name = "ComputeBackendService"
    location = f"projects/{PROJECT}/global/backendServices/{NAME}"
    path = f"/compute.googleapis.com/compute/v1/{location}"
    api_kind = "ComputeBackendService"
    routes: ClassVar[Mapping[str, tuple[str, str]]] = {
        "get": ("GET", ""),
        "create": ("POST", "/backendServices$"),
        "update": ("POST|PATCH", f"/backendServices/{NAME}"),
        "delete": ("DELETE", ""),
    }
    without: ClassVar[Mapping[Part, str]] = {
        **ComputeFixture.without,
        Part.LABELS: "it has no labels",
        Part.IMMUTABLE: "what cannot change of it is its place, and that names another object",
    }
    ref = ResourceRef(COMPUTE, kind_name, NAMESPACE, NAME)
    minimal: ClassVar[Spec] = {"location": "global"}
    field = SpecifiedField("spec.timeoutSec", 10, 20, 40)
    moved = MovedObject({**minimal, "resourceID": "another-service"}, "another-service")
    unspecified = UnspecifiedField("spec.portName", "http-alt")
    outputs: ClassVar[Mapping[str, Json]] = {"externalRef": location}
    referring = ReferringSpec(
        {"location": "global", "healthChecks": [{"healthCheckRef": {"name": "check"}}]},
        _reference("ComputeHealthCheck", "check"),
        "reference ComputeHealthCheck team/check",
        {"setpoint": {"location": f"projects/{PROJECT}/global/healthChecks/check"}},
    )

    def create_outside(self, value: Json) -> None:
        assert self.cloud.call("POST", self.path.rpartition("/")[0], {"name": NAME, "timeoutSec": value}).status == 200
        self.cloud.advance(OPERATION_SECONDS)
        self.cloud.journal.clear()


class GuardedServiceFixture(BackendServiceFixture):
    """A backend service with a policy, which a method sets once the object is there."""

    minimal: ClassVar[Spec] = {
        "location": "global",
        "securityPolicyRef": {"external": f"projects/{PROJECT}/global/securityPolicies/policy"},
    }


class NodePoolFixture(ComputeFixture):
    """A node pool of GKE: a PUT with a request of its own, and methods for size, autoscaling and management."""

    group = "container.cnrm.cloud.google.com"
    kind_name = "ContainerNodePool"
    host = "container.googleapis.com"
    prefix = "v1beta1"
    location = f"{CLUSTER}/nodePools/{NAME}"
    path = f"/container.googleapis.com/v1beta1/{location}"
    api_kind = "ContainerNodePool"
    routes: ClassVar[Mapping[str, tuple[str, str]]] = {
        "get": ("GET", ""),
        "create": ("POST", "/nodePools$"),
        "update": ("PUT|POST", f"/nodePools/{NAME}"),
        "delete": ("DELETE", ""),
    }
    without: ClassVar[Mapping[Part, str]] = {**ComputeFixture.without, Part.LABELS: "it has no labels of its own"}
    ref = ResourceRef(group, kind_name, NAMESPACE, NAME)
    bare: ClassVar[Spec] = {"location": "europe-west1", "clusterRef": {"external": CLUSTER}}
    minimal: ClassVar[Spec] = {**bare, "nodeCount": 1}
    field = SpecifiedField(
        "spec.nodeConfig.imageType", "COS_CONTAINERD", "UBUNTU_CONTAINERD", "UBUNTU", "config.imageType"
    )
    moved = MovedObject({**minimal, "resourceID": "another-pool"}, "another-pool")
    immutable = ImmutableChange(
        {**minimal, "maxPodsPerNode": 32},
        {**minimal, "maxPodsPerNode": 64},
        "spec.maxPodsPerNode cannot change from 32 to 64",
    )
    unspecified = UnspecifiedField("spec.management", {"autoRepair": True})
    outputs: ClassVar[Mapping[str, Json]] = {"externalRef": location}
    referring = ReferringSpec(
        {**minimal, "clusterRef": {"name": "cluster"}},
        {**_reference("ContainerCluster", "cluster"), "apiVersion": f"{group}/v1beta1"},
        "reference ContainerCluster team/cluster",
        {"setpoint": {"location": CLUSTER}},
    )

    async def set_up(self) -> None:
        await super().set_up()
        cluster = {"cluster": {"name": CLUSTER.rpartition("/")[2]}}
        clusters = f"/container.googleapis.com/{self.prefix}/{CLUSTER.rpartition('/')[0]}"
        assert self.cloud.call("POST", clusters, cluster).status == 200
        self.cloud.advance(OPERATION_SECONDS)
        # The one that a cluster is made with is not what this is about.
        assert self.cloud.call("DELETE", f"{self.path.rpartition('/')[0]}/default-pool").status == 200
        self.cloud.advance(OPERATION_SECONDS)
        self.cloud.journal.clear()

    def create_outside(self, value: Json) -> None:
        body = {"nodePool": {"name": NAME, "initialNodeCount": 1, "config": {"imageType": value}}}
        assert self.cloud.call("POST", self.path.rpartition("/")[0], body).status == 200
        self.cloud.advance(OPERATION_SECONDS)
        self.cloud.journal.clear()


class StoppedInstanceFixture(ComputeInstanceFixture):
    """An instance with a field that can only change while it is stopped, and leave to stop it for that."""

    annotations: ClassVar[Mapping[str, str]] = {
        **ComputeInstanceFixture.annotations,
        "cnrm.cloud.google.com/allow-stopping-for-update": "true",
    }
    field = SpecifiedField("spec.minCpuPlatform", "Intel Skylake", "Intel Ice Lake", "Intel Haswell", "minCpuPlatform")

    @property
    def methods_called(self) -> list[str]:
        """The methods of the object that were called, in order."""
        return [
            one.path.rpartition("/")[2]
            for one in self.cloud.journal.entries
            if self._verb(one.method, one.path) == "update"
        ]

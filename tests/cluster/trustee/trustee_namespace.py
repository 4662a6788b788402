"""Objects of Trustee in one namespace: changes by kubectl, and waits for the results."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from tests.cluster.polling import until
from tests.cluster.running.kubectl import Kubectl

# By kind: the path of its API version, and its plural.
_ENDPOINTS: Final[Mapping[str, tuple[str, str]]] = {
    "configmap": ("/api/v1", "configmaps"),
    "secret": ("/api/v1", "secrets"),
    "service": ("/api/v1", "services"),
    "persistentvolumeclaim": ("/api/v1", "persistentvolumeclaims"),
    "deployment": ("/apis/apps/v1", "deployments"),
    "kbsconfig": ("/apis/confidentialcontainers.org/v1alpha1", "kbsconfigs"),
    "trusteeconfig": ("/apis/confidentialcontainers.org/v1alpha1", "trusteeconfigs"),
}
TRUSTEE: Final = "trusteeconfig/tc"
KBS: Final = "kbsconfig/tc-kbs-config"
DEPLOYMENT: Final = "deployment/trustee-deployment"
SERVICE: Final = "service/kbs-service"
VERSIONS_ANNOTATION: Final = "kbs.confidentialcontainers.org/configmap-versions"


class Version(NamedTuple):
    """Identity and resource version of an object; `-` when there is none."""

    target: str
    uid: str
    version: str


class Condition(NamedTuple):
    """One condition."""

    status: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class TrusteeNamespace:
    """A namespace. Objects are named as in kubectl: `kind/name`."""

    kubectl: Kubectl

    @property
    def namespace(self) -> str:
        """Its name."""
        return self.kubectl.namespace

    # --- Changes ------------------------------------------------------------------------------------------------------

    def apply(self, *manifests: Any) -> None:
        """`kubectl apply`."""
        self.kubectl.apply(*manifests)

    def patch(self, target: str, **members: Any) -> None:
        """A merge patch."""
        self.kubectl("patch", target, "--type=merge", "-p", json.dumps(members))

    def edit(self, target: str, op: str, path: str, value: Any = None) -> None:
        """A JSON patch of one operation."""
        body = {"op": op, "path": path} | ({} if value is None else {"value": value})
        self.kubectl("patch", target, "--type=json", "-p", json.dumps([body]))

    def delete(self, target: str) -> None:
        """`kubectl delete`, which does not wait."""
        self.kubectl("delete", target, "--wait=false")

    def patch_status(self, target: str, **status: Any) -> None:
        """Patches members of the status."""
        self.kubectl("patch", target, "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))

    def report_replicas(self, up: int | None = None) -> None:
        """Reports `up` ready replicas in the status of the Deployment; by default, all of them."""
        found = self.get(DEPLOYMENT)
        wanted = found["spec"]["replicas"]
        ready = wanted if up is None else up
        counts = {"replicas": wanted, "updatedReplicas": wanted, "readyReplicas": ready, "availableReplicas": ready}
        self.patch_status(DEPLOYMENT, **counts, observedGeneration=found["metadata"]["generation"])

    # --- Observed state -----------------------------------------------------------------------------------------------

    def get(self, target: str) -> Any:
        """The object; None when there is none."""
        answer = self.kubectl.access.call("GET", self.path(target))
        assert answer.status in (200, 404), answer
        return answer.body if answer.status == 200 else None

    def path(self, target: str) -> str:
        """The API path of an object."""
        kind, name = target.split("/")
        version, plural = _ENDPOINTS[kind]
        return f"{version}/namespaces/{self.namespace}/{plural}/{name}"

    def version(self, target: str) -> Version:
        """The present version of an object."""
        found = self.get(target)
        return Version(target, *((found["metadata"][name] for name in ("uid", "resourceVersion")) if found else "--"))

    def until(self, target: str, holds: Callable[[Any], bool]) -> Any:
        """The object, once it exists and `holds`; AssertionError with the object after the deadline."""
        seen: list[Any] = [None]

        def does() -> bool:
            seen[0] = self.get(target)
            return seen[0] is not None and holds(seen[0])

        try:
            until(does)
        except TimeoutError as error:
            raise AssertionError(json.dumps(seen[0], indent=1)) from error
        return seen[0]

    def until_recreated(self, before: Version) -> Any:
        """The object that was created in place of this one."""
        return self.until(before.target, lambda found: found["metadata"]["uid"] != before.uid)

    def until_condition(self, target: str, type_: str, reason: str) -> Condition:
        """The condition, once it has this reason."""
        return condition_of(self.until(target, lambda found: condition_of(found, type_).reason == reason), type_)

    def until_event(self, target: str, reason: str) -> Any:
        """The Event about the object with this reason, once there is one."""
        kind, name = target.split("/")
        found: list[Any] = []

        def is_there() -> bool:
            found[:] = [one for one in self.events(kind, name) if one["reason"] == reason]
            return bool(found)

        until(is_there)
        return found[-1]

    def events(self, kind: str, name: str) -> list[Any]:
        """The Events about an object."""
        items = self.kubectl.access.call("GET", f"/api/v1/namespaces/{self.namespace}/events").body["items"]
        about = ((one["involvedObject"]["kind"].lower(), one["involvedObject"]["name"], one) for one in items)
        return [one for its_kind, its_name, one in about if (its_kind, its_name) == (kind, name)]

    # --- Settled state ------------------------------------------------------------------------------------------------

    def settle(self, *manifests: Any) -> None:
        """Applies the manifests, with the TrusteeConfig `tc`, and waits until only the pods are missing."""
        self.apply(*manifests)
        self.until_rolling_out()

    def settle_ready(self, *manifests: Any) -> None:
        """Applies the manifests, with the TrusteeConfig `tc`, reports its pods as ready, and waits until it is."""
        self.settle(*manifests)
        self.report_replicas()
        self.until(TRUSTEE, lambda found: found["status"].get("isReady") is True)
        self.until_event(TRUSTEE, "UpToDate")

    def until_rolling_out(self) -> None:
        """Returns when both statuses are current and report the same progress of the rollout."""
        kbs = self.until(KBS, lambda found: condition_of(found, "Ready").reason == "RollingOut" and is_current(found))
        message = condition_of(kbs, "Ready").message
        self.until(TRUSTEE, lambda found: message in condition_of(found, "Ready").message and is_current(found))

    def env(self) -> dict[str, str]:
        """The environment variables of the container."""
        (container,) = self.get(DEPLOYMENT)["spec"]["template"]["spec"]["containers"]
        return {one["name"]: one["value"] for one in container.get("env", ())}

    def config_versions(self) -> str:
        """The annotation of the pod template that changes with every configuration."""
        annotations = self.get(DEPLOYMENT)["spec"]["template"]["metadata"]["annotations"]
        return str(annotations[VERSIONS_ANNOTATION])


def condition_of(object_: Any, type_: str) -> Condition:
    """The condition of that type; empty when there is none."""
    for one in object_.get("status", {}).get("conditions", ()):
        if one["type"] == type_:
            return Condition(one["status"], one["reason"], one["message"])
    return Condition("", "", "")


def is_current(object_: Any) -> bool:
    """Whether its status is about its newest generation."""
    return bool(object_["status"].get("observedGeneration") == object_["metadata"]["generation"])

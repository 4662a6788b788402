"""One namespace of a cluster: kubectl as a person's hand, and an eye on what becomes of it."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from tests.cluster.patience import until
from tests.cluster.running.kubectl import Kubectl

# Where the objects of a kind are: the address of its version, and their plural.
_PLACES: Final[Mapping[str, tuple[str, str]]] = {
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
ROLLED_BY: Final = "kbs.confidentialcontainers.org/configmap-versions"


class Version(NamedTuple):
    """One state of one object."""

    target: str
    uid: str
    version: str


class Told(NamedTuple):
    """One condition."""

    status: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Plot:
    """Objects are named as kubectl names them: `kind/name`."""

    kubectl: Kubectl

    @property
    def namespace(self) -> str:
        """Its name."""
        return self.kubectl.namespace

    # --- A person's hand ----------------------------------------------------------------------------------------------

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

    def report(self, target: str, **status: Any) -> None:
        """Members of the status, as whoever looks after the object writes them."""
        self.kubectl("patch", target, "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))

    def bring_up(self, up: int | None = None) -> None:
        """What the controller of Deployments says when `up` of the wanted pods run; all of them when not said."""
        found = self.see(DEPLOYMENT)
        wanted = found["spec"]["replicas"]
        ready = wanted if up is None else up
        counts = {"replicas": wanted, "updatedReplicas": wanted, "readyReplicas": ready, "availableReplicas": ready}
        self.report(DEPLOYMENT, **counts, observedGeneration=found["metadata"]["generation"])

    # --- What there is to see -----------------------------------------------------------------------------------------

    def see(self, target: str) -> Any:
        """The object as it is; None when it is not there."""
        answer = self.kubectl.access.call("GET", self.path(target))
        assert answer.status in (200, 404), answer
        return answer.body if answer.status == 200 else None

    def path(self, target: str) -> str:
        """Where the API server has it."""
        kind, name = target.split("/")
        version, plural = _PLACES[kind]
        return f"{version}/namespaces/{self.namespace}/{plural}/{name}"

    def version(self, target: str) -> Version:
        """The state that it is in."""
        found = self.see(target)
        return Version(target, *((found["metadata"][name] for name in ("uid", "resourceVersion")) if found else "--"))

    def until(self, target: str, holds: Callable[[Any], bool]) -> Any:
        """The object as soon as it is there and `holds`; AssertionError with the object when that takes too long."""
        seen: list[Any] = [None]

        def does() -> bool:
            seen[0] = self.see(target)
            return seen[0] is not None and holds(seen[0])

        try:
            until(does)
        except TimeoutError as error:
            raise AssertionError(json.dumps(seen[0], indent=1)) from error
        return seen[0]

    def until_made_anew(self, before: Version) -> Any:
        """The object that is there in the place of another."""
        return self.until(before.target, lambda found: found["metadata"]["uid"] != before.uid)

    def until_told(self, target: str, type_: str, reason: str) -> Told:
        """The condition, as soon as that is its reason."""
        return told(self.until(target, lambda found: told(found, type_).reason == reason), type_)

    def until_noted(self, target: str, reason: str) -> Any:
        """The Event about the object, as soon as there is one for that reason."""
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

    # --- Where most stories begin -------------------------------------------------------------------------------------

    def settle(self, *manifests: Any) -> None:
        """Declares them, among them the TrusteeConfig `tc`; returns when there is nothing to do but wait for pods."""
        self.apply(*manifests)
        self.until_rolling_out()

    def until_rolling_out(self) -> None:
        """Returns when both statuses speak of the newest specs, and in the same words of a Deployment that is there."""
        kbs = self.until(KBS, lambda found: told(found, "Ready").reason == "RollingOut" and is_current(found))
        message = told(kbs, "Ready").message
        self.until(TRUSTEE, lambda found: message in told(found, "Ready").message and is_current(found))

    def env(self) -> dict[str, str]:
        """The environment of the container."""
        (container,) = self.see(DEPLOYMENT)["spec"]["template"]["spec"]["containers"]
        return {one["name"]: one["value"] for one in container.get("env", ())}

    def trace(self) -> str:
        """What another one of makes other pods."""
        annotations = self.see(DEPLOYMENT)["spec"]["template"]["metadata"]["annotations"]
        return str(annotations[ROLLED_BY])


def told(object_: Any, type_: str) -> Told:
    """The condition of that type; empty when there is none."""
    for one in object_.get("status", {}).get("conditions", ()):
        if one["type"] == type_:
            return Told(one["status"], one["reason"], one["message"])
    return Told("", "", "")


def is_current(object_: Any) -> bool:
    """Whether its status speaks of its newest spec."""
    return bool(object_["status"].get("observedGeneration") == object_["metadata"]["generation"])

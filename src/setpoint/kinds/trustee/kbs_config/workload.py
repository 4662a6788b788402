"""The Deployment and the Service of a KbsConfig."""

from typing import Final

from setpoint.core.children import Child, Contents, Fields
from setpoint.core.owners import owner_reference
from setpoint.core.paths import Path
from setpoint.core.values import Json
from setpoint.engine.resource import Resource, Tree
from setpoint.kinds.trustee.kbs_config.containers import Images, containers, first_containers
from setpoint.kinds.trustee.kbs_config.contents import VERSIONS
from setpoint.kinds.trustee.kbs_config.spec import KbsConfigSpec
from setpoint.kinds.trustee.kbs_config.volumes import volumes
from setpoint.kinds.trustee_places import PORT

# Held until the Deployment is gone; on the object before there is one.
FINALIZER: Final = "kbsconfig.confidentialcontainers.org/finalizer"
DEPLOYMENT: Final = "trustee-deployment"
SERVICE: Final = "kbs-service"
_APP: Final = {"app": "kbs"}
_SPEC: Final = Fields((Path(("spec",)),))
_SELECTOR: Final = Path(("spec", "selector"))


def workload(resource: Resource, spec: KbsConfigSpec, chosen: Images, trace: str) -> tuple[Child, Child]:
    """Both as children: what a server, or somebody, adds to them is no reason to write them, and stays.

    Errors as for `deployment`.
    """
    pods = deployment(resource, spec, chosen, trace)
    return (
        Child(pods, Contents.COVERED, _SPEC, {}, fixed=(_SELECTOR,)),
        Child(service(resource, spec), Contents.COVERED, _SPEC, {}),
    )


def deployment(resource: Resource, spec: KbsConfigSpec, chosen: Images, trace: str) -> Tree:
    """The pods; `trace` is `versions(…)`. ManifestInvalid for a spec that no pod can have."""
    mounted = volumes(spec)
    pod: Tree = {
        "initContainers": first_containers(chosen, mounted),
        "containers": containers(spec, chosen, mounted),
        "volumes": [one.volume for one in mounted],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(resource, DEPLOYMENT),
        "spec": {
            "replicas": spec.replicas,
            "selector": {"matchLabels": dict(_APP)},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
            "template": {"metadata": {"labels": dict(_APP), "annotations": {VERSIONS: trace}}, "spec": pod},
        },
    }


def service(resource: Resource, spec: KbsConfigSpec) -> Tree:
    """How clients reach the pods."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(resource, SERVICE),
        "spec": {
            "type": spec.kbsServiceType or "ClusterIP",
            "selector": dict(_APP),
            "ports": [{"name": "kbs-port", "port": PORT, "targetPort": PORT, "protocol": "TCP"}],
        },
    }


def _metadata(resource: Resource, name: str) -> dict[str, Json]:
    return {
        "name": name,
        "namespace": resource.ref.namespace,
        "labels": dict(_APP),
        "ownerReferences": [owner_reference(resource.document)],
    }

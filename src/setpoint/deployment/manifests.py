"""All objects of an installation, in the order in which they are applied."""

from collections.abc import Sequence
from typing import Final

from setpoint.deployment.installation import Installation
from setpoint.deployment.naming import of_cluster
from setpoint.deployment.reachable import metrics_service, network_policy
from setpoint.deployment.rights import NO_OBJECTS, Objects, Served, of_controller, of_people, served_by
from setpoint.deployment.workload import deployment, disruption_budget, service_account
from setpoint.engine.resource import Tree

_CLUSTERS_OWN: Final = ("default", "kube-system", "kube-public", "kube-node-lease")


def of_types(definitions: Sequence[Tree]) -> list[Tree]:
    """What a cluster has once for all: the kinds, and what people may do with them. It stays when a controller goes."""
    return [*definitions, *of_people(served_by(definitions))]


def of_process(installation: Installation, kinds: Sequence[Served], objects: Objects = NO_OBJECTS) -> list[Tree]:
    """What keeps the resources as they were declared. All of it can be removed, and no resource is."""
    return [
        *namespace(installation),
        service_account(installation),
        *of_controller(installation, kinds, objects),
        metrics_service(installation),
        network_policy(installation),
        disruption_budget(installation),
        deployment(installation),
    ]


def namespace(installation: Installation) -> list[Tree]:
    """The home of the pods, which lets in none but harmless ones. One that others live in is left as it is."""
    name = installation.namespace
    if name == installation.watch_namespace or name in _CLUSTERS_OWN:
        return []
    level = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": of_cluster(name, level)}]

"""The program as pods: how it is started, asked how it is, spread, and kept from doing harm."""

from typing import Final

from setpoint.core.values import Json
from setpoint.deployment.installation import Installation
from setpoint.deployment.naming import LABELS, NAME, SELECTED, in_namespace
from setpoint.engine.resource import Tree

PORT: Final = 8080
# The user of the image, by number: a cluster cannot tell from a name that it is not root.
USER: Final = 65532
GRACE_SECONDS: Final = 25
# A little more: leases are given back, and who reads a page has a second.
_TERMINATION_SECONDS: Final = 35


def service_account(installation: Installation) -> Tree:
    """Who the pods are. Its token is mounted where a pod asks for it, and nowhere else."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": in_namespace(installation.namespace),
        "automountServiceAccountToken": False,
    }


def deployment(installation: Installation) -> Tree:
    """A new pod is ready before an old one goes: a shard is never without somebody who could take it."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": in_namespace(installation.namespace),
        "spec": {
            "replicas": installation.replicas,
            "selector": {"matchLabels": dict(SELECTED)},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {"metadata": {"labels": dict(LABELS)}, "spec": pod_spec(installation)},
        },
    }


def disruption_budget(installation: Installation) -> Tree:
    """Nodes are drained of one pod at a time: of two, one stays; and a single one does not keep its node from it."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": in_namespace(installation.namespace),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": dict(SELECTED)}},
    }


def pod_spec(installation: Installation) -> Tree:
    """A pod that the strictest of the pod security standards, `restricted`, lets in."""
    return {
        "serviceAccountName": NAME,
        "automountServiceAccountToken": True,
        "terminationGracePeriodSeconds": _TERMINATION_SECONDS,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [_spread("kubernetes.io/hostname"), _spread("topology.kubernetes.io/zone")],
        "containers": [_container(installation)],
    }


def _spread(topology: str) -> Tree:
    return {
        "maxSkew": 1,
        "topologyKey": topology,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": dict(SELECTED)},
    }


def _container(installation: Installation) -> Tree:
    return {
        "name": NAME,
        "image": installation.image,
        "args": arguments(installation),
        "env": [
            {"name": "SETPOINT_STORE", "value": store(installation)},
            _downward("POD_NAME", "metadata.name"),
            _downward("POD_NAMESPACE", "metadata.namespace"),
            *({"name": name, "value": value} for name, value in installation.environment),
        ],
        "ports": [{"name": "metrics", "containerPort": PORT, "protocol": "TCP"}],
        # Two minutes to begin, half a minute to come back.
        "startupProbe": _probe("/healthz", period=2, failures=60),
        "livenessProbe": _probe("/healthz", period=10, failures=3),
        "readinessProbe": _probe("/readyz", period=5, failures=2),
        # No limit on CPU: who is kept waiting for it loses its leases.
        "resources": {"requests": {"cpu": "100m", "memory": "192Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }


def arguments(installation: Installation) -> list[Json]:
    """The command line of the program in a pod, without its name; the cluster fills in `$(POD_NAME)`."""
    return [
        "run",
        f"--shards={installation.shards}",
        "--identity=$(POD_NAME)",
        f"--metrics=:{PORT}",
        "--log-format=json",
        f"--grace={GRACE_SECONDS}s",
        *([f"--kinds={','.join(installation.kinds)}"] if installation.kinds else []),
    ]


def store(installation: Installation) -> str:
    """Where the resources are: in this cluster, or in one namespace of it."""
    watched = installation.watch_namespace
    return "kubernetes" if watched is None else f"kubernetes?namespace={watched}"


def _downward(name: str, path: str) -> Tree:
    # With the version that a cluster would add: else whoever applies the same with another tool is told of a conflict.
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}


def _probe(path: str, *, period: int, failures: int) -> Tree:
    return {
        "httpGet": {"path": path, "port": "metrics"},
        "periodSeconds": period,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    }

"""Manifests of an installation, in the order in which they are applied: namespace, pods, metrics, network policy."""

from collections.abc import Sequence
from typing import Final

from setpoint.core.values.json_types import Json, JsonObject
from setpoint.deployment.installation import (
    LABELS,
    NAME,
    SELECTOR_LABELS,
    Installation,
    cluster_metadata,
    namespaced_metadata,
)
from setpoint.deployment.rbac import KindAccess, controller_rbac, resources_of, user_rbac, write_policy
from setpoint.engine.management import CookieLocation
from setpoint.engine.tenancy.tenants import TenancyMode

_SYSTEM_NAMESPACES: Final = ("default", "kube-system", "kube-public", "kube-node-lease")


def type_manifests(
    definitions: Sequence[JsonObject], policies: Sequence[JsonObject], *, objects_too: bool = False
) -> list[JsonObject]:
    """What a cluster has once: the CRDs, policies and roles for users. It stays when the controller is removed."""
    return [*definitions, *policies, *user_rbac(resources_of(definitions), objects_too=objects_too)]


def controller_manifests(installation: Installation, access: KindAccess) -> list[JsonObject]:
    """The controller. All of it can be removed, and resources stay."""
    return [
        *namespace_manifest(installation),
        service_account(installation),
        *controller_rbac(installation, access),
        *write_policy(installation, access.kinds),
        metrics_service(installation),
        *([dashboard_service(installation)] if installation.dashboard else ()),
        network_policy(installation),
        disruption_budget(installation),
        deployment(installation),
    ]


def namespace_manifest(installation: Installation) -> list[JsonObject]:
    """The namespace of the pods, at the pod security level `restricted`; nothing for one that other workloads share."""
    name = installation.namespace
    if name == installation.watch_namespace or name in _SYSTEM_NAMESPACES:
        return []
    level = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": cluster_metadata(name, level)}]


METRICS_PORT: Final = 8080
DASHBOARD_PORT: Final = 8081
# The user of the image, by number: runAsNonRoot cannot be verified for a name.
USER_ID: Final = 65532
GRACE_SECONDS: Final = 25
# A little more than the grace: to release leases, and to finish responses to watches and scrapes.
_TERMINATION_SECONDS: Final = 35


def service_account(installation: Installation) -> JsonObject:
    """The identity of the pods. Its token is mounted only into pods that ask for it."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": namespaced_metadata(installation.namespace, installation.account),
        "automountServiceAccountToken": False,
    }


def deployment(installation: Installation) -> JsonObject:
    """The pods. A new one is ready before an old one ends: there is always a replica that can take a shard."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": namespaced_metadata(installation.namespace),
        "spec": {
            "replicas": installation.replicas,
            "selector": {"matchLabels": dict(SELECTOR_LABELS)},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {"metadata": {"labels": dict(LABELS)}, "spec": pod_spec(installation)},
        },
    }


def disruption_budget(installation: Installation) -> JsonObject:
    """One pod at a time may be evicted: of two, one stays; a single one does not block the drain of its node."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": namespaced_metadata(installation.namespace),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": dict(SELECTOR_LABELS)}},
    }


def pod_spec(installation: Installation) -> JsonObject:
    """A pod within the pod security standard `restricted`."""
    return {
        "serviceAccountName": installation.account,
        "automountServiceAccountToken": True,
        "terminationGracePeriodSeconds": _TERMINATION_SECONDS,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER_ID,
            "runAsGroup": USER_ID,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [_spread("kubernetes.io/hostname"), _spread("topology.kubernetes.io/zone")],
        "containers": [_container(installation)],
    }


def _spread(topology: str) -> JsonObject:
    return {
        "maxSkew": 1,
        "topologyKey": topology,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": dict(SELECTOR_LABELS)},
    }


def _container(installation: Installation) -> JsonObject:
    return {
        "name": NAME,
        "image": installation.image,
        "args": container_arguments(installation),
        "env": [
            {"name": "SETPOINT_STORE", "value": store_url(installation)},
            _downward_variable("POD_NAME", "metadata.name"),
            _downward_variable("POD_NAMESPACE", "metadata.namespace"),
            *_cookie_variables(installation),
            *_notification_variables(installation),
            *({"name": name, "value": value} for name, value in installation.environment),
        ],
        "ports": [
            {"name": name, "containerPort": port, "protocol": "TCP"} for name, port in _ports(installation).items()
        ],
        # Two minutes to start, half a minute without an answer before a restart.
        "startupProbe": _probe("/healthz", period=2, failures=60),
        "livenessProbe": _probe("/healthz", period=10, failures=3),
        "readinessProbe": _probe("/readyz", period=5, failures=2),
        # No CPU limit: a throttled process would lose its leases.
        "resources": {"requests": {"cpu": "100m", "memory": "192Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }


# The variables of `setpoint run`, and the keys of the Secret that have them.
_NOTIFICATION_KEYS: Final = (("SETPOINT_NOTIFY", "addresses", False), ("SETPOINT_NOTIFY_SECRET", "secret", True))


def _notification_variables(installation: Installation) -> list[JsonObject]:
    """Addresses hold tokens: a pod has them from a Secret, and does not start without it."""
    if not installation.notify_secret:
        return []
    return [
        {
            "name": name,
            "valueFrom": {
                "secretKeyRef": {
                    "name": installation.notify_secret,
                    "key": key,
                    **({"optional": True} if is_optional else {}),
                }
            },
        }
        for name, key, is_optional in _NOTIFICATION_KEYS
    ]


def container_arguments(installation: Installation) -> list[Json]:
    """The arguments of the program in a pod; the cluster fills in `$(POD_NAME)`."""
    return [
        "run",
        f"--shards={installation.shards}",
        "--identity=$(POD_NAME)",
        f"--metrics=:{METRICS_PORT}",
        "--log-format=json",
        f"--grace={GRACE_SECONDS}s",
        f"--kinds={','.join(installation.kinds)}",
        *(_dashboard_arguments() if installation.dashboard else []),
        *([f"--tenancy={installation.tenancy.value}"] if installation.tenancy is not TenancyMode.STRICT else []),
    ]


def _dashboard_arguments() -> list[Json]:
    # The Service of the metrics has the address of each pod, which the others ask for what it alone knows.
    peers = f"{METRICS_SERVICE}.$(POD_NAMESPACE).svc:{DASHBOARD_PORT}"
    return [f"--dashboard=:{DASHBOARD_PORT}", f"--dashboard-peers={peers}"]


def _ports(installation: Installation) -> dict[str, int]:
    """The ports of a pod, by name."""
    return {"metrics": METRICS_PORT, **({"dashboard": DASHBOARD_PORT} if installation.dashboard else {})}


def _cookie_variables(installation: Installation) -> list[JsonObject]:
    """The variable that says where cookies are kept, if that is not the status."""
    if installation.cookies is CookieLocation.STATUS:
        return []
    return [{"name": "SETPOINT_COOKIE_LOCATION", "value": installation.cookies.value}]


def store_url(installation: Installation) -> str:
    """The store: this cluster, or one namespace of it."""
    watched = installation.watch_namespace
    return "kubernetes" if watched is None else f"kubernetes?namespace={watched}"


def _downward_variable(name: str, path: str) -> JsonObject:
    # With the apiVersion that the cluster defaults: otherwise another tool that applies the same would get a conflict.
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}


def _probe(path: str, *, period: int, failures: int) -> JsonObject:
    return {
        "httpGet": {"path": path, "port": "metrics"},
        "periodSeconds": period,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    }


METRICS_SERVICE: Final = f"{NAME}-metrics"


def metrics_service(installation: Installation) -> JsonObject:
    """Headless: Prometheus scrapes every pod."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": namespaced_metadata(installation.namespace, METRICS_SERVICE),
        "spec": {
            "clusterIP": "None",
            "selector": dict(SELECTOR_LABELS),
            "ports": [{"name": "metrics", "port": METRICS_PORT, "targetPort": "metrics", "protocol": "TCP"}],
        },
    }


DASHBOARD_SERVICE: Final = f"{NAME}-dashboard"


def dashboard_service(installation: Installation) -> JsonObject:
    """One pod for each client: a session is in the memory of the pod that opened it."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": namespaced_metadata(installation.namespace, DASHBOARD_SERVICE),
        "spec": {
            "sessionAffinity": "ClientIP",
            "selector": dict(SELECTOR_LABELS),
            "ports": [{"name": "dashboard", "port": 80, "targetPort": "dashboard", "protocol": "TCP"}],
        },
    }


def network_policy(installation: Installation) -> JsonObject:
    """Ingress to the ports of the pods only. Egress is not limited: addresses of cloud services change."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": namespaced_metadata(installation.namespace),
        "spec": {
            "podSelector": {"matchLabels": dict(SELECTOR_LABELS)},
            "policyTypes": ["Ingress"],
            "ingress": [{"ports": [{"port": name, "protocol": "TCP"} for name in _ports(installation)]}],
        },
    }


def service_monitor(installation: Installation) -> JsonObject:
    """For clusters with the Prometheus operator."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": namespaced_metadata(installation.namespace),
        "spec": {
            "selector": {"matchLabels": dict(SELECTOR_LABELS)},
            "namespaceSelector": {"matchNames": [installation.namespace]},
            "endpoints": [{"port": "metrics", "path": "/metrics", "interval": "30s"}],
        },
    }

"""The kinds of Kubernetes itself in their stable versions: plural and scope, which no release changes.

To reach an object of one of them takes no discovery. A cluster that does not serve one says so, and is then asked.
"""

from collections.abc import Mapping
from functools import cache
from typing import Final

from setpoint.clients.kubernetes.discovery import ApiResource

_VERBS: Final = frozenset(("create", "delete", "get", "list", "patch", "update", "watch"))
# By apiVersion: kinds with their plurals, in a namespace and without one.
_NAMESPACED: Final = {
    "v1": {
        "ConfigMap": "configmaps",
        "Endpoints": "endpoints",
        "LimitRange": "limitranges",
        "PersistentVolumeClaim": "persistentvolumeclaims",
        "Pod": "pods",
        "PodTemplate": "podtemplates",
        "ReplicationController": "replicationcontrollers",
        "ResourceQuota": "resourcequotas",
        "Secret": "secrets",
        "Service": "services",
        "ServiceAccount": "serviceaccounts",
    },
    "apps/v1": {
        "DaemonSet": "daemonsets",
        "Deployment": "deployments",
        "ReplicaSet": "replicasets",
        "StatefulSet": "statefulsets",
    },
    "autoscaling/v2": {"HorizontalPodAutoscaler": "horizontalpodautoscalers"},
    "batch/v1": {"CronJob": "cronjobs", "Job": "jobs"},
    "coordination.k8s.io/v1": {"Lease": "leases"},
    "networking.k8s.io/v1": {"Ingress": "ingresses", "NetworkPolicy": "networkpolicies"},
    "policy/v1": {"PodDisruptionBudget": "poddisruptionbudgets"},
    "rbac.authorization.k8s.io/v1": {"Role": "roles", "RoleBinding": "rolebindings"},
}
_CLUSTER_SCOPED: Final = {
    "v1": {"Namespace": "namespaces", "Node": "nodes", "PersistentVolume": "persistentvolumes"},
    "admissionregistration.k8s.io/v1": {
        "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
        "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
    },
    "apiextensions.k8s.io/v1": {"CustomResourceDefinition": "customresourcedefinitions"},
    "networking.k8s.io/v1": {"IngressClass": "ingressclasses"},
    "rbac.authorization.k8s.io/v1": {"ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings"},
    "scheduling.k8s.io/v1": {"PriorityClass": "priorityclasses"},
    "storage.k8s.io/v1": {"CSIDriver": "csidrivers", "StorageClass": "storageclasses"},
}


@cache
def builtin_kinds() -> Mapping[tuple[str, str], ApiResource]:
    """The kinds, by apiVersion and kind."""
    return {
        (api_version, kind): api_resource(api_version, kind, plural, namespaced=namespaced)
        for table, namespaced in ((_NAMESPACED, True), (_CLUSTER_SCOPED, False))
        for api_version, kinds in table.items()
        for kind, plural in kinds.items()
    }


def api_resource(api_version: str, kind: str, plural: str, *, namespaced: bool) -> ApiResource:
    """A kind that is known by these alone: it is taken to have the verbs of a stored object."""
    group, _, version = api_version.rpartition("/")
    return ApiResource(group, version, kind, plural, namespaced, _VERBS)

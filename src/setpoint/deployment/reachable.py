"""How the metrics are reached, and nothing else is."""

from typing import Final

from setpoint.deployment.installation import Installation
from setpoint.deployment.naming import NAME, SELECTED, in_namespace
from setpoint.deployment.workload import PORT
from setpoint.engine.resource import Tree

METRICS: Final = f"{NAME}-metrics"


def metrics_service(installation: Installation) -> Tree:
    """Every pod of its own: whoever reads metrics wants those of each."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": in_namespace(installation.namespace, METRICS),
        "spec": {
            "clusterIP": "None",
            "selector": dict(SELECTED),
            "ports": [{"name": "metrics", "port": PORT, "targetPort": "metrics", "protocol": "TCP"}],
        },
    }


def network_policy(installation: Installation) -> Tree:
    """Only the port of the metrics is reached. What the pods reach is not limited: addresses of clouds move."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": in_namespace(installation.namespace),
        "spec": {
            "podSelector": {"matchLabels": dict(SELECTED)},
            "policyTypes": ["Ingress"],
            "ingress": [{"ports": [{"port": "metrics", "protocol": "TCP"}]}],
        },
    }


def service_monitor(installation: Installation) -> Tree:
    """For clusters with the Prometheus operator, which brings this kind."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": in_namespace(installation.namespace),
        "spec": {
            "selector": {"matchLabels": dict(SELECTED)},
            "namespaceSelector": {"matchNames": [installation.namespace]},
            "endpoints": [{"port": "metrics", "path": "/metrics", "interval": "30s"}],
        },
    }

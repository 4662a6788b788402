"""The kopf peer, `python -m benchmarks.peers.kopf_controller`: each KubernetesObject owns the ConfigMap in its spec.

This module imports nothing of setpoint, so that it adds nothing to the memory of the process.
"""

import argparse
from collections.abc import Callable, Mapping
from typing import Any, Final

import kopf

from benchmarks.peers.kopf_operators import DocumentedOperator, TunedOperator

_RESOURCES: Final = ("setpoint.dev", "v1alpha1", "kubernetesobjects")
_LABEL: Final = "app.kubernetes.io/part-of"


def _index_resources(name: str, body: kopf.Body, **_: object) -> Mapping[str, kopf.Body]:
    return {name: body}


def _index_config_maps(name: str, body: kopf.Body, **_: object) -> Mapping[str, Any]:
    return {name: dict(body.get("data", {}))}


def _registry(operator: DocumentedOperator | TunedOperator, resync: float | None) -> kopf.OperatorRegistry:
    registry = kopf.OperatorRegistry()
    kopf.on.login(registry=registry)(kopf.login_with_kubeconfig)
    kopf.on.startup(registry=registry)(operator.start)
    kopf.on.cleanup(registry=registry)(operator.stop)
    kopf.index(*_RESOURCES, id="resources", registry=registry)(_index_resources)
    labels = {_LABEL: "benchmark"}
    kopf.index("configmaps", labels=labels, id="config_maps", registry=registry)(_index_config_maps)
    decorators: tuple[Callable[..., Any], ...] = (kopf.on.create, kopf.on.resume)
    for decorator in decorators:
        decorator(*_RESOURCES, registry=registry)(operator.reconcile)
    kopf.on.update(*_RESOURCES, field="spec", registry=registry)(operator.reconcile)
    kopf.on.event("configmaps", labels=labels, registry=registry)(operator.repair)
    if resync is not None:
        kopf.timer(*_RESOURCES, interval=resync, initial_delay=resync, registry=registry)(operator.resync)
    return registry


def main() -> None:
    """Runs the operator until SIGTERM."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--resync", type=float)
    parser.add_argument("--tuned", action="store_true")
    options = parser.parse_args()
    kopf.configure()
    operator = TunedOperator if options.tuned else DocumentedOperator
    registry = _registry(operator(options.namespace), options.resync)
    kopf.run(registry=registry, standalone=True, namespaces=[options.namespace])


if __name__ == "__main__":
    main()

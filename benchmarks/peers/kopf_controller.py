"""The kopf peer, `python -m benchmarks.peers.kopf_controller`: each KubernetesObject owns the ConfigMap in its spec.

This module imports nothing of setpoint, so that it adds nothing to the memory of the process.
"""

import argparse
import base64
import os
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import aiohttp
import kopf
import yaml

_RESOURCES: Final = ("setpoint.dev", "v1alpha1", "kubernetesobjects")
_LABEL: Final = "app.kubernetes.io/part-of"
_APPLY: Final = {"Content-Type": "application/apply-patch+yaml"}


@dataclass(slots=True)
class _Operator:
    """The handlers of the operator, and its client for ConfigMaps."""

    namespace: str
    session: aiohttp.ClientSession | None = field(default=None, init=False)

    async def start(self, settings: kopf.OperatorSettings, **_: object) -> None:
        """Opens the client."""
        settings.posting.enabled = False
        settings.scanning.disabled = True
        config = yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text(encoding="utf-8"))
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cadata=authority))
        headers = {"Authorization": f"Bearer {user['token']}", "User-Agent": "kopf-controller"}
        self.session = aiohttp.ClientSession(cluster["server"], headers=headers, connector=connector)

    async def stop(self, **_: object) -> None:
        """Closes the client."""
        if self.session is not None:
            await self.session.close()

    async def reconcile(self, body: kopf.Body, patch: kopf.Patch, config_maps: Any, **_: object) -> None:  # noqa: ANN401 - an index of kopf
        """Writes the ConfigMap if it differs, and the status."""
        await self._write(body, config_maps.get(body.metadata.name))
        if body.status.get("observedGeneration") != body.metadata["generation"]:
            patch.status["observedGeneration"] = body.metadata["generation"]
            patch.status["conditions"] = [_ready(body)]

    async def resync(self, body: kopf.Body, config_maps: Any, **_: object) -> None:  # noqa: ANN401 - an index of kopf
        """Writes the ConfigMap if it differs."""
        await self._write(body, config_maps.get(body.metadata.name))

    async def repair(self, name: str, resources: Any, config_maps: Any, **_: object) -> None:  # noqa: ANN401 - indices of kopf
        """After a change of a ConfigMap: writes it if it differs."""
        for body in resources.get(name, ()):
            await self._write(body, config_maps.get(name))

    async def _write(self, body: kopf.Body, live: Any) -> None:  # noqa: ANN401 - a collection of kopf
        manifest = body.spec["manifest"]
        if live is not None and any(one == manifest["data"] for one in live):
            return
        assert self.session is not None
        name = manifest["metadata"]["name"]
        owned = {**manifest, "metadata": {**manifest["metadata"], "ownerReferences": [_owner_reference(body)]}}
        path = f"/api/v1/namespaces/{self.namespace}/configmaps/{name}?fieldManager=kopf-controller&force=true"
        async with self.session.patch(path, json=owned, headers=_APPLY) as response:
            response.raise_for_status()


def _owner_reference(body: kopf.Body) -> Mapping[str, Any]:
    return {**kopf.build_owner_reference(body), "controller": True}


def _ready(body: kopf.Body) -> Mapping[str, Any]:
    return {
        "type": "Ready",
        "status": "True",
        "reason": "UpToDate",
        "message": "The object is as declared",
        "observedGeneration": body.metadata["generation"],
        "lastTransitionTime": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _index_resources(name: str, body: kopf.Body, **_: object) -> Mapping[str, kopf.Body]:
    return {name: body}


def _index_config_maps(name: str, body: kopf.Body, **_: object) -> Mapping[str, Any]:
    return {name: dict(body.get("data", {}))}


def _registry(operator: _Operator, resync: float | None) -> kopf.OperatorRegistry:
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
    options = parser.parse_args()
    kopf.configure()
    registry = _registry(_Operator(options.namespace), options.resync)
    kopf.run(registry=registry, standalone=True, namespaces=[options.namespace])


if __name__ == "__main__":
    main()

"""The two operators of the kopf peer: one as kopf's documentation has it, and one that is tuned.

They differ in how they write the ConfigMap, and in what of kopf is turned off. This module imports nothing of setpoint,
so that it adds nothing to the memory of the process.
"""

import base64
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import aiohttp
import kopf
import yaml

_USER_AGENT: Final = "kopf-controller"
_APPLY: Final = {"Content-Type": "application/apply-patch+yaml"}


@dataclass(slots=True)
class DocumentedOperator:
    """Handlers as in the walkthrough of kopf's documentation: functions that use the official client for Python.

    Each setting of kopf has its default. What handlers log is no Event then, since kopf 1.45.
    """

    namespace: str
    api: Any = field(default=None, init=False)

    async def start(self, **_: object) -> None:
        """Opens the client."""
        import kubernetes

        kubernetes.config.load_kube_config(os.environ["KUBECONFIG"])
        self.api = kubernetes.client.CoreV1Api()
        self.api.api_client.user_agent = _USER_AGENT

    async def stop(self, **_: object) -> None:
        """Closes the client."""
        self.api.api_client.close()

    def reconcile(self, body: kopf.Body, patch: kopf.Patch, config_maps: Any, **_: object) -> None:  # noqa: ANN401 - an index of kopf
        """Writes the ConfigMap if it differs, and the status."""
        self._write(body, config_maps.get(body.metadata.name))
        report(body, patch)

    def resync(self, body: kopf.Body, config_maps: Any, **_: object) -> None:  # noqa: ANN401 - an index of kopf
        """Writes the ConfigMap if it differs."""
        self._write(body, config_maps.get(body.metadata.name))

    def repair(self, name: str, resources: Any, config_maps: Any, **_: object) -> None:  # noqa: ANN401 - indices of kopf
        """After a change of a ConfigMap: writes it if it differs."""
        for body in resources.get(name, ()):
            self._write(body, config_maps.get(name))

    def _write(self, body: kopf.Body, live: Any) -> None:  # noqa: ANN401 - a collection of kopf
        if is_as_specified(body, live):
            return
        owned = owned_manifest(body)
        if live is None:
            self.api.create_namespaced_config_map(self.namespace, owned)
        else:
            self.api.patch_namespaced_config_map(owned["metadata"]["name"], self.namespace, owned)


@dataclass(slots=True)
class TunedOperator:
    """Coroutines with the cheapest client there is, a bare request of aiohttp; the scan of CRDs is off."""

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
        headers = {"Authorization": f"Bearer {user['token']}", "User-Agent": _USER_AGENT}
        self.session = aiohttp.ClientSession(cluster["server"], headers=headers, connector=connector)

    async def stop(self, **_: object) -> None:
        """Closes the client."""
        if self.session is not None:
            await self.session.close()

    async def reconcile(self, body: kopf.Body, patch: kopf.Patch, config_maps: Any, **_: object) -> None:  # noqa: ANN401 - an index of kopf
        """Writes the ConfigMap if it differs, and the status."""
        await self._write(body, config_maps.get(body.metadata.name))
        report(body, patch)

    async def resync(self, body: kopf.Body, config_maps: Any, **_: object) -> None:  # noqa: ANN401 - an index of kopf
        """Writes the ConfigMap if it differs."""
        await self._write(body, config_maps.get(body.metadata.name))

    async def repair(self, name: str, resources: Any, config_maps: Any, **_: object) -> None:  # noqa: ANN401 - indices of kopf
        """After a change of a ConfigMap: writes it if it differs."""
        for body in resources.get(name, ()):
            await self._write(body, config_maps.get(name))

    async def _write(self, body: kopf.Body, live: Any) -> None:  # noqa: ANN401 - a collection of kopf
        if is_as_specified(body, live):
            return
        assert self.session is not None
        name = body.spec["manifest"]["metadata"]["name"]
        path = f"/api/v1/namespaces/{self.namespace}/configmaps/{name}?fieldManager=kopf-controller&force=true"
        async with self.session.patch(path, json=owned_manifest(body), headers=_APPLY) as response:
            response.raise_for_status()


def is_as_specified(body: kopf.Body, live: Any) -> bool:  # noqa: ANN401 - a collection of kopf
    """Whether the index has the ConfigMap as the resource says."""
    return live is not None and any(one == body.spec["manifest"]["data"] for one in live)


def owned_manifest(body: kopf.Body) -> dict[str, Any]:
    """The manifest of the ConfigMap, with the resource as its owner."""
    manifest = body.spec["manifest"]
    owner = {**kopf.build_owner_reference(body), "controller": True}
    return {**manifest, "metadata": {**manifest["metadata"], "ownerReferences": [owner]}}


def report(body: kopf.Body, patch: kopf.Patch) -> None:
    """Writes the observed generation and the condition Ready into the status, unless it has them."""
    generation = body.metadata["generation"]
    if body.status.get("observedGeneration") != generation:
        patch.status["observedGeneration"] = generation
        patch.status["conditions"] = [_ready(generation)]


def _ready(generation: int) -> Mapping[str, Any]:
    return {
        "type": "Ready",
        "status": "True",
        "reason": "UpToDate",
        "message": "The object is as declared",
        "observedGeneration": generation,
        "lastTransitionTime": datetime.now(UTC).isoformat(timespec="seconds"),
    }

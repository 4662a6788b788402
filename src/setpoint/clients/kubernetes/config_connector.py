"""Config Connector's controller in a cluster: whether it reconciles a namespace, and how to pause it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec

from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.requests import Endpoint, PatchType
from setpoint.errors import KindNotServed

_GROUP, _VERSION = "core.cnrm.cloud.google.com", "v1beta1"
# One for each namespace that a controller of its own looks after, and one for the cluster.
_CONTEXTS: Final = Endpoint(_GROUP, _VERSION, "configconnectorcontexts")
_CONTEXT: Final = f"configconnectorcontext.{_GROUP}"
_INSTALLATION: Final = Endpoint(_GROUP, _VERSION, "configconnectors", name=f"configconnector.{_GROUP}")
_PAUSED: Final = "Paused"
_CRDS: Final = Endpoint("apiextensions.k8s.io", "v1", "customresourcedefinitions")


class ConfigConnectorMode(StrEnum):
    """What their controller does in a namespace."""

    WORKS = "works"
    PAUSED = "paused"
    # One controller for the whole cluster, which cannot be paused for one namespace.
    CLUSTER_WIDE = "works everywhere"
    NOBODY = "is not there"


class _Spec(msgspec.Struct, frozen=True):
    actuation_mode: str = msgspec.field(default="", name="actuationMode")
    mode: str = ""


class _Config(msgspec.Struct, frozen=True):
    spec: _Spec = _Spec()


class _Metadata(msgspec.Struct, frozen=True):
    deletion: str = msgspec.field(default="", name="deletionTimestamp")


class _Crd(msgspec.Struct, frozen=True):
    metadata: _Metadata


@dataclass(frozen=True, slots=True)
class ConfigConnector:
    """Config Connector in one cluster."""

    client: KubernetesClient

    async def controller(self, namespace: str) -> ConfigConnectorMode:
        """What its controller does in the namespace, by its switches."""
        context = await self._switch(_CONTEXTS.named(_CONTEXT, namespace))
        if context is not None:
            return ConfigConnectorMode.PAUSED if context.spec.actuation_mode == _PAUSED else ConfigConnectorMode.WORKS
        whole = await self._switch(_INSTALLATION)
        if whole is None or whole.spec.mode == "namespaced":
            # Where nothing names the namespace, nobody is assigned to it.
            return ConfigConnectorMode.NOBODY
        return ConfigConnectorMode.PAUSED if whole.spec.actuation_mode == _PAUSED else ConfigConnectorMode.CLUSTER_WIDE

    async def pause(self, namespace: str) -> None:
        """Has the controller of the namespace do nothing any more; it keeps its resources."""
        endpoint = _CONTEXTS.named(_CONTEXT, namespace)
        await self.client.patch(endpoint, {"spec": {"actuationMode": _PAUSED}}, PatchType.MERGE)

    async def is_leaving(self, definition: str) -> bool:
        """Whether a kind is being deleted, by the name of its definition: with it go all resources of the kind."""
        found = await self.client.get(_CRDS.named(definition))
        return found is not None and bool(msgspec.json.decode(found, type=_Crd).metadata.deletion)

    async def _switch(self, endpoint: Endpoint) -> _Config | None:
        try:
            found = await self.client.get(endpoint)
        except KindNotServed:
            return None
        return None if found is None else msgspec.json.decode(found, type=_Config)

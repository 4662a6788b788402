"""Config Connector's controller in a cluster: whether it reconciles a namespace, and how to pause it."""

from enum import StrEnum
from typing import Final

import msgspec

from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.requests import Endpoint, PatchType
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.errors import KindNotServed

_GROUP, _VERSION = "core.cnrm.cloud.google.com", "v1beta1"
# One ConfigConnectorContext per namespace in namespaced mode, and one ConfigConnector per cluster.
_CONTEXTS: Final = Endpoint(_GROUP, _VERSION, "configconnectorcontexts")
_CONTEXT: Final = f"configconnectorcontext.{_GROUP}"
_INSTALLATION: Final = Endpoint(_GROUP, _VERSION, "configconnectors", name=f"configconnector.{_GROUP}")
_PAUSED: Final = "Paused"
_CRDS: Final = Endpoint("apiextensions.k8s.io", "v1", "customresourcedefinitions")


class ConfigConnectorMode(StrEnum):
    """What Config Connector's controller does in a namespace."""

    WORKS = "works"
    PAUSED = "paused"
    # Cluster mode: one controller, which cannot be paused for one namespace.
    CLUSTER_WIDE = "works everywhere"
    ABSENT = "is not there"


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
        """What its controller does in the namespace, by its configuration."""
        context = await self._config(_CONTEXTS.named(_CONTEXT, namespace))
        if context is not None:
            return ConfigConnectorMode.PAUSED if context.spec.actuation_mode == _PAUSED else ConfigConnectorMode.WORKS
        cluster_config = await self._config(_INSTALLATION)
        if cluster_config is None or cluster_config.spec.mode == "namespaced":
            # In namespaced mode, a namespace without a context has no controller.
            return ConfigConnectorMode.ABSENT
        return (
            ConfigConnectorMode.PAUSED
            if cluster_config.spec.actuation_mode == _PAUSED
            else ConfigConnectorMode.CLUSTER_WIDE
        )

    async def pause(self, namespace: str) -> None:
        """Pauses the controller of the namespace; its resources stay."""
        endpoint = _CONTEXTS.named(_CONTEXT, namespace)
        await self.client.patch(endpoint, {"spec": {"actuationMode": _PAUSED}}, PatchType.MERGE)

    async def is_being_deleted(self, crd: str) -> bool:
        """Whether the CRD of this name is being deleted, and with it all resources of its kind."""
        found = await self.client.get(_CRDS.named(crd))
        return found is not None and bool(msgspec.json.decode(found, type=_Crd).metadata.deletion)

    async def _config(self, endpoint: Endpoint) -> _Config | None:
        try:
            found = await self.client.get(endpoint)
        except KindNotServed:
            return None
        return None if found is None else msgspec.json.decode(found, type=_Config)

"""Where the requests for an object go: the client of its cluster, and how its kind is served there."""

from dataclasses import dataclass

from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.discovery import ApiResource
from setpoint.clients.kubernetes.requests import ApiWriteOptions, Endpoint
from setpoint.core.values.json_types import Json
from setpoint.errors import (
    KindNotServed,
    OperationRunning,
    RemoteInvalid,
    RemoteRefused,
    RemoteUnavailable,
    SetpointError,
)
from setpoint.kinds.kubernetes_object.apply_result import unknown_fields_of
from setpoint.kinds.kubernetes_object.clusters import Clusters
from setpoint.kinds.kubernetes_object.field_schemas import is_defined
from setpoint.kinds.kubernetes_object.location import ObjectLocation
from setpoint.kinds.kubernetes_object.tenant_clusters import TenantClusters


@dataclass(frozen=True, slots=True)
class ApplyTarget:
    """An object, and how it is reached."""

    location: ObjectLocation
    client: KubernetesClient
    served: ApiResource

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint of the object."""
        return self.served.endpoint(self.location.namespace, self.location.name)


@dataclass(frozen=True, slots=True)
class TargetFinder:
    """Finds the targets of requests by the discovery of each cluster."""

    clusters: Clusters | TenantClusters

    async def read(self, location: ObjectLocation) -> bytes | None:
        """The object as the API server sends it; None when there is none, or its kind is not served in any version."""
        try:
            return await self._get(location)
        except KindNotServed:
            # The kind may have been added or removed since the last discovery.
            access = await self.clusters.connect(location.cluster)
            access.discovery.forget(location.api_version)
        return await self._get(location)

    async def _get(self, location: ObjectLocation) -> bytes | None:
        target = await self.find_any(location)
        return None if target is None else await target.client.get(target.endpoint)

    async def find(self, location: ObjectLocation) -> ApplyTarget:
        """The target in its own version; KindNotServed if that is not served."""
        access = await self.clusters.connect(location.cluster)
        return ApplyTarget(location, access.client, await access.discovery.find(location.api_version, location.kind))

    async def find_any(self, location: ObjectLocation) -> ApplyTarget | None:
        """The target, in another version if its own is no longer served; None if the kind is not served at all."""
        try:
            return await self.find(location)
        except KindNotServed as error:
            served = await self._served_versions(location)
            if any(one.api_version == location.api_version for one in served):
                raise OperationRunning(
                    f"{location.title} waits for its kind, which the cluster begins to serve", after=1
                ) from error
        access = await self.clusters.connect(location.cluster)
        return ApplyTarget(location, access.client, served[0]) if served else None

    async def _served_versions(self, location: ObjectLocation) -> list[ApiResource]:
        """The kind in all served versions; RemoteUnavailable if a server that may serve it does not answer."""
        discovery = (await self.clusters.connect(location.cluster)).discovery
        try:
            everything, silent = await discovery.all_resources()
        except KindNotServed as nothing:
            raise RemoteUnavailable(f"{location.title}: this is no API server: {nothing}") from nothing
        group = location.api_version.rpartition("/")[0]
        if group in silent:
            raise RemoteUnavailable(f"{location.title}: no server answers for {group}")
        return [one for one in everything if (one.group, one.kind) == (group, location.kind)]

    async def find_writable(self, location: ObjectLocation) -> ApplyTarget:
        """The target of a write: in the version of the manifest only."""
        try:
            return await self.find(location)
        except KindNotServed as error:
            other = await self.find_any(location)
            if other is None:
                raise OperationRunning(f"{location.title} waits for its kind: {error}", after=1) from error
            if other.served.api_version == location.api_version:
                # The kind has been added meanwhile.
                return other
            if await is_defined(other.client, other.served, location.api_version.rpartition("/")[2]):
                raise OperationRunning(
                    f"{location.title} waits for its version, which the cluster begins to serve", after=1
                ) from error
            raise KindNotServed(
                f"{location.title}: the cluster serves {location.kind} in {other.served.api_version}, and no longer in "
                f"{location.api_version}: change apiVersion in the manifest"
            ) from error


async def with_all_unknown_fields(error: RemoteInvalid, target: ApplyTarget, body: Json) -> RemoteRefused:
    """The error with all unknown fields: an apply names only the first one, a dry-run create names all."""
    if not unknown_fields_of(error):
        return error
    try:
        await target.client.create(target.endpoint, body, ApiWriteOptions(dry_run=True))
    except RemoteRefused as refused:
        return refused if refused.unknown_fields else error
    except SetpointError:
        return error
    return error

"""The status of a SQLInstance: its fields, and their values from the API's response."""

from collections.abc import Sequence

import msgspec
from msgspec import UNSET, Struct, UnsetType

from setpoint.core.values.json_types import Json, JsonObject
from setpoint.kinds.gcp.sql_instance.live import LiveIpAddress, SqlInstanceOutputs


class InstanceAddress(Struct, frozen=True):
    ipAddress: str | UnsetType = UNSET
    """The address."""
    timeToRetire: str | UnsetType = UNSET
    """When the address is retired."""
    type: str | UnsetType = UNSET
    """PRIMARY: public, for incoming connections; OUTGOING: public, for outgoing ones; PRIVATE: in the network."""


class ObservedReplicationCluster(Struct, frozen=True):
    drReplica: bool | UnsetType = UNSET
    """Whether this is the disaster recovery replica."""
    psaWriteEndpoint: str | UnsetType = UNSET
    """The DNS name of the instance that accepts writes."""


class InstanceObservedState(Struct, frozen=True):
    replicationCluster: ObservedReplicationCluster | UnsetType = UNSET
    """Its replication cluster, if it is in one."""


class ServerCertificate(Struct, frozen=True):
    cert: str | UnsetType = UNSET
    """The certificate, in PEM."""
    commonName: str | UnsetType = UNSET
    """The common name of its subject."""
    createTime: str | UnsetType = UNSET
    """When it was created."""
    expirationTime: str | UnsetType = UNSET
    """When it expires."""
    sha1Fingerprint: str | UnsetType = UNSET
    """Its fingerprint."""


class SqlInstanceStatus(Struct, frozen=True):
    """The status: what the service reports beside the spec."""

    availableMaintenanceVersions: list[str] | UnsetType = UNSET
    """The possible values of `spec.maintenanceVersion`."""
    connectionName: str | UnsetType = UNSET
    """`PROJECT:REGION:NAME`, for connectors."""
    dnsName: str | UnsetType = UNSET
    """The name that clients connect to."""
    firstIpAddress: str | UnsetType = UNSET
    """The first of the addresses."""
    instanceType: str | UnsetType = UNSET
    """CLOUD_SQL_INSTANCE, or READ_REPLICA_INSTANCE for a replica."""
    ipAddress: list[InstanceAddress] | UnsetType = UNSET
    """All addresses, each with its type."""
    observedState: InstanceObservedState | UnsetType = UNSET
    """Its role in a replication cluster."""
    privateIpAddress: str | UnsetType = UNSET
    """The first private address."""
    pscServiceAttachmentLink: str | UnsetType = UNSET
    """The service attachment for Private Service Connect."""
    publicIpAddress: str | UnsetType = UNSET
    """The first public address."""
    selfLink: str | UnsetType = UNSET
    """The address of the instance in the API."""
    serverCaCert: ServerCertificate | UnsetType = UNSET
    """The CA certificate that clients verify the server with."""
    serviceAccountEmailAddress: str | UnsetType = UNSET
    """The account that the instance acts as."""


def instance_outputs(reported: SqlInstanceOutputs) -> JsonObject:
    """The status of an instance from the output-only fields of the response."""
    addresses = reported.ipAddresses or []
    found: dict[str, Json] = {
        "availableMaintenanceVersions": reported.availableMaintenanceVersions,
        "connectionName": reported.connectionName,
        "dnsName": reported.dnsName,
        "firstIpAddress": addresses[0].ipAddress if addresses else None,
        "instanceType": reported.instanceType,
        "ipAddress": [msgspec.to_builtins(one) for one in addresses],
        "observedState": _observed(reported),
        "privateIpAddress": _first("PRIVATE", addresses),
        "pscServiceAttachmentLink": reported.pscServiceAttachmentLink,
        "publicIpAddress": _first("PRIMARY", addresses),
        "selfLink": reported.selfLink,
        "serverCaCert": None if reported.serverCaCert is None else msgspec.to_builtins(reported.serverCaCert),
        "serviceAccountEmailAddress": reported.serviceAccountEmailAddress,
    }
    return {name: value for name, value in found.items() if value}


def _first(type_: str, addresses: Sequence[LiveIpAddress]) -> str | None:
    return next((one.ipAddress for one in addresses if one.type == type_), None)


def _observed(reported: SqlInstanceOutputs) -> Json:
    cluster = reported.replicationCluster
    shown = {} if cluster is None else msgspec.to_builtins(cluster)
    return {"replicationCluster": shown} if shown else {}

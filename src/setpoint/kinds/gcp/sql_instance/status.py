"""What the status shows of an instance, field by field."""

from msgspec import UNSET, Struct, UnsetType


class InstanceAddress(Struct, frozen=True):
    ipAddress: str | UnsetType = UNSET
    """The address."""
    timeToRetire: str | UnsetType = UNSET
    """When it stops being the instance's."""
    type: str | UnsetType = UNSET
    """PRIMARY is public and comes in, OUTGOING is public and goes out, PRIVATE is in the network."""


class ObservedCluster(Struct, frozen=True):
    drReplica: bool | UnsetType = UNSET
    """Whether this is the replica for disasters."""
    psaWriteEndpoint: str | UnsetType = UNSET
    """The name that leads to the instance that takes writes."""


class ObservedState(Struct, frozen=True):
    replicationCluster: ObservedCluster | UnsetType = UNSET
    """The replication cluster, as far as it is in one."""


class ServerCertificate(Struct, frozen=True):
    cert: str | UnsetType = UNSET
    """The certificate, in PEM."""
    commonName: str | UnsetType = UNSET
    """Whose it is."""
    createTime: str | UnsetType = UNSET
    """When it was made."""
    expirationTime: str | UnsetType = UNSET
    """When it stops being good."""
    sha1Fingerprint: str | UnsetType = UNSET
    """Its fingerprint."""


class SqlInstanceStatus(Struct, frozen=True):
    """What comes with a live instance and nobody asks for."""

    availableMaintenanceVersions: list[str] | UnsetType = UNSET
    """What `spec.maintenanceVersion` could be."""
    connectionName: str | UnsetType = UNSET
    """`PROJECT:REGION:NAME`, for connectors."""
    dnsName: str | UnsetType = UNSET
    """The name that clients connect to."""
    firstIpAddress: str | UnsetType = UNSET
    """The first of the addresses."""
    instanceType: str | UnsetType = UNSET
    """Whether it is a replica."""
    ipAddress: list[InstanceAddress] | UnsetType = UNSET
    """All addresses, each with its type."""
    observedState: ObservedState | UnsetType = UNSET
    """Its part in a replication cluster."""
    privateIpAddress: str | UnsetType = UNSET
    """The first private address."""
    pscServiceAttachmentLink: str | UnsetType = UNSET
    """Where Private Service Connect finds it."""
    publicIpAddress: str | UnsetType = UNSET
    """The first public address."""
    selfLink: str | UnsetType = UNSET
    """The address of the instance in the API."""
    serverCaCert: ServerCertificate | UnsetType = UNSET
    """The certificate that clients check the server by."""
    serviceAccountEmailAddress: str | UnsetType = UNSET
    """The account that the instance acts as."""

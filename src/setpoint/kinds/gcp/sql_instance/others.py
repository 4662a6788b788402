"""Settings that the spec has no word for. A whole instance that is sent without them would put them out of use."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct

from setpoint.clients.google import decoded
from setpoint.kinds.spec_parts import Maybe


class _OtherPsc(Struct, frozen=True):
    networkAttachmentUri: Maybe[Any] = UNSET
    pscAutoConnections: Maybe[Any] = UNSET


class _OtherNetwork(Struct, frozen=True):
    customSubjectAlternativeNames: Maybe[Any] = UNSET
    pscConfig: Maybe[_OtherPsc] = UNSET
    serverCaMode: Maybe[Any] = UNSET
    serverCaPool: Maybe[Any] = UNSET
    serverCertificateRotationMode: Maybe[Any] = UNSET


class _OtherDirectory(Struct, frozen=True):
    adminCredentialSecretName: Maybe[Any] = UNSET
    dnsServers: Maybe[Any] = UNSET
    mode: Maybe[Any] = UNSET
    organizationalUnit: Maybe[Any] = UNSET


class _OtherInsights(Struct, frozen=True):
    enhancedQueryInsightsEnabled: Maybe[Any] = UNSET


class _OtherPasswordPolicy(Struct, frozen=True):
    disallowCompromisedCredentials: Maybe[Any] = UNSET


class _OtherSettings(Struct, frozen=True):
    activeDirectoryConfig: Maybe[_OtherDirectory] = UNSET
    connectionPoolConfig: Maybe[Any] = UNSET
    dataApiAccess: Maybe[Any] = UNSET
    dataDiskProvisionedIops: Maybe[Any] = UNSET
    dataDiskProvisionedThroughput: Maybe[Any] = UNSET
    databaseReplicationEnabled: Maybe[Any] = UNSET
    enableDataplexIntegration: Maybe[Any] = UNSET
    enableGoogleMlIntegration: Maybe[Any] = UNSET
    finalBackupConfig: Maybe[Any] = UNSET
    insightsConfig: Maybe[_OtherInsights] = UNSET
    ipConfiguration: Maybe[_OtherNetwork] = UNSET
    passwordValidationPolicy: Maybe[_OtherPasswordPolicy] = UNSET
    replicationLagMaxSeconds: Maybe[Any] = UNSET
    retainBackupsOnDelete: Maybe[Any] = UNSET


class _OtherReplica(Struct, frozen=True):
    cascadableReplica: Maybe[Any] = UNSET


class _OtherFailover(Struct, frozen=True):
    name: Maybe[Any] = UNSET


class _Others(Struct, frozen=True):
    failoverReplica: Maybe[_OtherFailover] = UNSET
    includeReplicasForMajorVersionUpgrade: Maybe[Any] = UNSET
    onPremisesConfiguration: Maybe[Any] = UNSET
    replicaConfiguration: Maybe[_OtherReplica] = UNSET
    settings: Maybe[_OtherSettings] = UNSET
    switchTransactionLogsToCloudStorageEnabled: Maybe[Any] = UNSET


_decoder: Final = msgspec.json.Decoder(_Others)
# What the service itself puts where nobody says anything.
_ITS_OWN: Final[Mapping[str, object]] = {
    "settings.activeDirectoryConfig.mode": "MANAGED_ACTIVE_DIRECTORY",
    "settings.dataApiAccess": "DISALLOW_DATA_API",
    "settings.databaseReplicationEnabled": True,
    "settings.ipConfiguration.serverCaMode": "GOOGLE_MANAGED_INTERNAL_CA",
    "settings.ipConfiguration.serverCertificateRotationMode": "NO_AUTOMATIC_ROTATION",
    "settings.replicationLagMaxSeconds": 31536000,
}


def others_in(body: bytes, what: str) -> list[str]:
    """The paths of those that say something, in an instance as it came."""
    found = msgspec.to_builtins(decoded(_decoder, body, what))
    return [path for path, value in _leaves(found, "") if value != _ITS_OWN.get(path)]


def _leaves(value: object, at: str) -> Iterator[tuple[str, Any]]:
    """Every value that is not empty, under its path."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield from _leaves(one, f"{at}.{name}".lstrip("."))
    elif (value is False and _ITS_OWN.get(at) is True) or _says_something(value):
        yield at, value


def _says_something(value: object) -> bool:
    return value not in (None, False, 0, "", "0", []) and not str(value).endswith("_UNSPECIFIED")

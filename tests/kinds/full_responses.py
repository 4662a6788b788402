"""The status of each kind when its service reports every field."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from setpoint.core.values.json_types import JsonObject
from setpoint.engine.kind import AnyKind, Location, Present
from setpoint.kinds.gcp.sql_database import SqlDatabaseKind
from setpoint.kinds.gcp.sql_instance.kind import SqlInstanceKind
from setpoint.kinds.gcp.sql_user import SqlUserKind
from setpoint.kinds.gcp.storage_bucket.kind import StorageBucketKind

_TIME: Final = "2026-01-02T03:04:05.678Z"
_LINK: Final = {"name": "one", "selfLink": "https://one"}
_ADDRESSES: Final = [
    {"ipAddress": "192.0.2.1", "type": "PRIMARY", "timeToRetire": _TIME},
    {"ipAddress": "10.0.0.1", "type": "PRIVATE"},
]
_CERTIFICATE: Final = {
    **{"cert": "…", "commonName": "one", "createTime": _TIME, "expirationTime": _TIME, "sha1Fingerprint": "ab"},
}
_INSTANCE: Final = {
    **_LINK,
    "databaseVersion": "POSTGRES_16",
    "settings": {"tier": "small"},
    "availableMaintenanceVersions": ["2"],
    "connectionName": "p:r:one",
    "dnsName": "one.example",
    "instanceType": "CLOUD_SQL_INSTANCE",
    "ipAddresses": _ADDRESSES,
    "pscServiceAttachmentLink": "link",
    "replicationCluster": {"drReplica": True, "psaWriteEndpoint": "write.example"},
    "serverCaCert": _CERTIFICATE,
    "serviceAccountEmailAddress": "one@example.com",
}
_BUCKET: Final = {
    **_LINK,
    "storageClass": "STANDARD",
    "softDeletePolicy": {"retentionDurationSeconds": "604800", "effectiveTime": _TIME},
}
_DETAILS: Final = {"disabled": True, "serverRoles": ["reader"]}
_USERS: Final = {"kind": "sql#usersList", "items": [{"name": "one", "sqlserverUserDetails": _DETAILS}]}
_PLACE: Final = "projects/p/instances/one"


@dataclass(frozen=True, slots=True)
class _OneResponse:
    """A client with one response to every request."""

    answer: Mapping[str, object]

    async def get(self, _: object) -> bytes:
        return msgspec.json.encode(self.answer)


# By the name of the page in the docs: the kind, the full response of its service, and the location.
_KINDS: Final[Mapping[str, tuple[Callable[[Any], AnyKind], Mapping[str, object], str]]] = {
    "storage-bucket": (StorageBucketKind, _BUCKET, "projects/p/buckets/one"),
    "sql-instance": (SqlInstanceKind, _INSTANCE, _PLACE),
    "sql-database": (SqlDatabaseKind, _LINK, f"{_PLACE}/databases/one"),
    "sql-user": (SqlUserKind, _USERS, f"{_PLACE}/users/one"),
}
PAGES: Final = tuple(_KINDS)


def kind_of(page: str) -> AnyKind:
    """The kind that the page is about."""
    make, answer, _ = _KINDS[page]
    return make(_OneResponse(answer))


def outputs_of(page: str) -> JsonObject:
    """The outputs of an object with every field."""
    seen = asyncio.run(kind_of(page).observe(Location(_KINDS[page][2])))
    assert isinstance(seen, Present)
    return seen.outputs

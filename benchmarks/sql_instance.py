"""A database instance as its REST API returns it, in three sizes, and the kind that models it.

The types are an allow-list: etag, settingsVersion, timestamps, certificate and addresses are in the body alone.
"""

import base64
import hashlib
from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

import msgspec
import orjson
from msgspec import UNSET, Struct, UnsetType

from setpoint.core.overlay import Declared
from setpoint.core.schema.policy import FieldPolicy, Rule
from setpoint.core.schema.shape import Default, Keyed, Mark, ObjectShape, shape_of
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.paths import Path, Selector

# --- The kind --------------------------------------------------------------------------------------------------------

Text: TypeAlias = str | UnsetType
Switch: TypeAlias = bool | UnsetType
Number: TypeAlias = int | UnsetType


class Flag(Struct):
    name: str
    value: Text = UNSET


class Network(Struct):
    value: str
    name: Text = UNSET
    kind: Annotated[Text, Default("sql#aclEntry")] = UNSET


class IpConfiguration(Struct):
    ipv4Enabled: Annotated[Switch, Default(True)] = UNSET
    sslMode: Annotated[Text, Default("ALLOW_UNENCRYPTED_AND_ENCRYPTED")] = UNSET
    privateNetwork: Annotated[Text, Mark.PROTECTED] = UNSET
    enablePrivatePathForGoogleCloudServices: Annotated[Switch, Default(False)] = UNSET
    serverCaMode: Annotated[Text, Default("GOOGLE_MANAGED_INTERNAL_CA")] = UNSET
    authorizedNetworks: Annotated[list[Network] | UnsetType, Keyed("value")] = UNSET


class BackupRetention(Struct):
    retentionUnit: Annotated[Text, Default("COUNT")] = UNSET
    retainedBackups: Annotated[Number, Default(7)] = UNSET


class BackupConfiguration(Struct):
    enabled: Annotated[Switch, Mark.PROTECTED] = UNSET
    binaryLogEnabled: Annotated[Switch, Mark.PROTECTED] = UNSET
    startTime: Annotated[Text, Mark.PROTECTED] = UNSET
    location: Text = UNSET
    transactionLogRetentionDays: Annotated[Number, Default(7)] = UNSET
    backupRetentionSettings: BackupRetention | UnsetType = UNSET


class MaintenanceWindow(Struct):
    day: Annotated[Number, Default(0)] = UNSET
    hour: Annotated[Number, Default(0)] = UNSET
    updateTrack: Annotated[Text, Default("stable")] = UNSET


class Insights(Struct):
    queryInsightsEnabled: Switch = UNSET
    queryPlansPerMinute: Annotated[Number, Default(5)] = UNSET
    queryStringLength: Annotated[Number, Default(1024)] = UNSET
    recordApplicationTags: Annotated[Switch, Default(False)] = UNSET
    recordClientAddress: Annotated[Switch, Default(False)] = UNSET


class PasswordPolicy(Struct):
    enablePasswordPolicy: Switch = UNSET
    minLength: Number = UNSET
    complexity: Text = UNSET
    reuseInterval: Annotated[Number, Default(0)] = UNSET
    disallowUsernameSubstring: Annotated[Switch, Default(False)] = UNSET


class LocationPreference(Struct):
    zone: Annotated[Text, Mark.PROTECTED] = UNSET
    secondaryZone: Text = UNSET


class Settings(Struct):
    tier: str
    edition: Annotated[Text, Mark.PROTECTED] = UNSET
    activationPolicy: Annotated[Text, Default("ALWAYS")] = UNSET
    availabilityType: Annotated[Text, Default("ZONAL")] = UNSET
    pricingPlan: Annotated[Text, Default("PER_USE")] = UNSET
    connectorEnforcement: Annotated[Text, Default("NOT_REQUIRED")] = UNSET
    dataDiskType: Annotated[Text, Default("PD_SSD"), Mark.IMMUTABLE] = UNSET
    dataDiskSizeGb: Text = UNSET
    storageAutoResize: Annotated[Switch, Default(True)] = UNSET
    storageAutoResizeLimit: Annotated[Text, Default("0")] = UNSET
    # How much of the disk may fill up before it grows: the one number that may have a fraction.
    storageAutoResizeRatio: float | UnsetType = UNSET
    deletionProtectionEnabled: Annotated[Switch, Mark.PROTECTED] = UNSET
    timeZone: Text = UNSET
    collation: Annotated[Text, Mark.IMMUTABLE] = UNSET
    userLabels: dict[str, str] | UnsetType = UNSET
    databaseFlags: Annotated[list[Flag] | UnsetType, Keyed("name")] = UNSET
    ipConfiguration: IpConfiguration | UnsetType = UNSET
    backupConfiguration: BackupConfiguration | UnsetType = UNSET
    maintenanceWindow: MaintenanceWindow | UnsetType = UNSET
    insightsConfig: Insights | UnsetType = UNSET
    passwordValidationPolicy: PasswordPolicy | UnsetType = UNSET
    locationPreference: LocationPreference | UnsetType = UNSET


class Instance(Struct):
    """The fields of an instance that count as live, and those an author may write."""

    name: str
    region: Annotated[Text, Mark.IMMUTABLE] = UNSET
    databaseVersion: Text = UNSET
    instanceType: Annotated[Text, Default("CLOUD_SQL_INSTANCE")] = UNSET
    rootPassword: Annotated[Text, Mark.WRITE_ONLY] = UNSET
    settings: Settings | UnsetType = UNSET


SHAPE: Final[ObjectShape] = shape_of(Instance)
decode: Final = msgspec.json.Decoder(Instance).decode

# --- The body --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Size:
    """The size of an instance; a bare one has none of the optional sections."""

    label: str
    flags: int
    labels: int
    networks: int
    is_bare: bool = False


SIZES: Final = (
    Size("1 KB", flags=3, labels=2, networks=1, is_bare=True),
    Size("6 KB", flags=25, labels=22, networks=14),
    Size("60 KB", flags=430, labels=400, networks=330),
)
_FLAGS: Final = ("max_connections", "innodb_buffer_pool_size", "long_query_time", "slow_query_log", "wait_timeout")
_LABELS: Final = ("team", "cost-centre", "environment", "managed-by", "data-class")
_VALUES: Final = ("platform-engineering", "emea-4711", "production", "setpoint", "confidential")


def body_of(size: Size) -> bytes:
    """The response to a GET of the instance."""
    return orjson.dumps(_instance(size))


def modelled_bytes(size: Size) -> int:
    """The size of the modelled fields as JSON."""
    return len(msgspec.json.encode(decode(body_of(size))))


def with_float_and_astral_keys(body: bytes) -> Json:
    """The object of `body` with a fraction, and label keys that UTF-8 and UTF-16 sort differently."""
    tree = orjson.loads(body)
    tree["settings"]["storageAutoResizeRatio"] = 0.85
    tree["settings"]["userLabels"] |= {"\N{ROCKET} stage": "launch", "\N{FULLWIDTH TILDE} region": "emea"}
    changed: Json = tree
    return changed


def _instance(size: Size) -> dict[str, Json]:
    return {
        "kind": "sql#instance",
        "name": "orders-primary",
        "project": "acme-orders-prod",
        "state": "RUNNABLE",
        "region": "europe-west4",
        "databaseVersion": "MYSQL_8_0",
        "instanceType": "CLOUD_SQL_INSTANCE",
        "etag": _noise("etag", 40),
        "createTime": "2031-03-14T09:26:53.589Z",
        "settings": _settings(size) | ({} if size.is_bare else _more_settings()),
        **({} if size.is_bare else _outputs()),
    }


def _settings(size: Size) -> dict[str, Json]:
    return {
        "kind": "sql#settings",
        "settingsVersion": "41",
        "tier": "db-custom-4-15360",
        "edition": "ENTERPRISE",
        "activationPolicy": "ALWAYS",
        "availabilityType": "REGIONAL",
        "dataDiskType": "PD_SSD",
        "dataDiskSizeGb": "250",
        "userLabels": {f"{_LABELS[n % 5]}-{n}": f"{_VALUES[n % 5]}-{n}" for n in range(size.labels)},
        "databaseFlags": [{"name": f"{_FLAGS[n % 5]}_{n}", "value": str(1024 * (n + 1))} for n in range(size.flags)],
        "ipConfiguration": {
            "ipv4Enabled": True,
            "sslMode": "ENCRYPTED_ONLY",
            "authorizedNetworks": [
                {"kind": "sql#aclEntry", "name": f"office-{n}", "value": f"10.{n // 256}.{n % 256}.0/24"}
                for n in range(size.networks)
            ],
        },
        "backupConfiguration": {
            "kind": "sql#backupConfiguration",
            "enabled": True,
            "binaryLogEnabled": True,
            "startTime": "02:00",
        },
    }


def _more_settings() -> dict[str, Json]:
    return {
        "pricingPlan": "PER_USE",
        "connectorEnforcement": "NOT_REQUIRED",
        "storageAutoResize": True,
        "storageAutoResizeLimit": "0",
        "deletionProtectionEnabled": True,
        "timeZone": "Europe/Amsterdam",
        "maintenanceWindow": {"kind": "sql#maintenanceWindow", "day": 7, "hour": 3, "updateTrack": "stable"},
        "insightsConfig": {
            "queryInsightsEnabled": True,
            "queryPlansPerMinute": 5,
            "queryStringLength": 1024,
            "recordApplicationTags": False,
            "recordClientAddress": False,
        },
        "passwordValidationPolicy": {
            "enablePasswordPolicy": True,
            "minLength": 16,
            "complexity": "COMPLEXITY_DEFAULT",
            "reuseInterval": 0,
            "disallowUsernameSubstring": False,
        },
        "locationPreference": {"kind": "sql#locationPreference", "zone": "europe-west4-a"},
        "replicationType": "SYNCHRONOUS",
    }


def _outputs() -> dict[str, Json]:
    """Outputs of the service: none of them is modelled."""
    link = "https://sqladmin.example.com/v1/projects/acme-orders-prod/instances/orders-primary"
    return {
        "selfLink": link,
        "connectionName": "acme-orders-prod:europe-west4:orders-primary",
        "serviceAccountEmailAddress": "p802701-x7k2@gcp-sa-cloud-sql.iam.example.com",
        "gceZone": "europe-west4-a",
        "backendType": "SECOND_GEN",
        "maintenanceVersion": "MYSQL_8_0_41.R20310301.00_04",
        "databaseInstalledVersion": "MYSQL_8_0_41",
        "ipAddresses": [
            {"type": "PRIMARY", "ipAddress": "203.0.113.17"},
            {"type": "OUTGOING", "ipAddress": "203.0.113.94"},
            {"type": "PRIVATE", "ipAddress": "10.128.0.5"},
        ],
        "serverCaCert": {
            "kind": "sql#sslCert",
            "certSerialNumber": "0",
            "commonName": "C=NL,O=Acme,CN=Server CA",
            "createTime": "2031-03-14T09:29:11.004Z",
            "expirationTime": "2041-03-11T09:30:11.004Z",
            "sha1Fingerprint": hashlib.sha256(b"fingerprint").hexdigest()[:40],
            "instance": "orders-primary",
            "cert": _certificate(),
        },
    }


def _certificate() -> str:
    lines = [_noise(f"certificate line {n}", 64) for n in range(18)]
    return "\n".join(("-----BEGIN CERTIFICATE-----", *lines, "-----END CERTIFICATE-----"))


def _noise(seed: str, length: int) -> str:
    """Text as random as a certificate's, and the same on every run."""
    return base64.b64encode(hashlib.sha512(seed.encode()).digest()).decode()[:length]


# --- The author ------------------------------------------------------------------------------------------------------

# Fields that the author leaves to defaults and to the protection rules: an absent field has to stay as it is.
_UNDECLARED: Final = {
    "": ("instanceType",),
    "settings": (
        "edition",
        "activationPolicy",
        "dataDiskType",
        "pricingPlan",
        "connectorEnforcement",
        "storageAutoResize",
        "storageAutoResizeLimit",
        "deletionProtectionEnabled",
        "backupConfiguration",
        "locationPreference",
    ),
    "settings.ipConfiguration": ("ipv4Enabled",),
    "settings.maintenanceWindow": ("updateTrack",),
    "settings.insightsConfig": ("queryPlansPerMinute", "queryStringLength", "recordApplicationTags"),
    "settings.passwordValidationPolicy": ("reuseInterval", "disallowUsernameSubstring"),
}


def live_tree(body: bytes) -> JsonObject:
    """The modelled part of `body` as the overlay takes it."""
    tree: JsonObject = msgspec.to_builtins(decode(body))
    return tree


def declared_of(body: bytes, policy: FieldPolicy) -> Declared:
    """A declaration of about half of the fields, with which the live object of `body` is in sync.

    Where unspecified fields are ignored, every other label is left out: it belongs to another writer.
    """
    tree = msgspec.to_builtins(decode(body))
    for parent, names in _UNDECLARED.items():
        node = tree
        for step in filter(None, parent.split(".")):
            node = node.get(step, {})
        for name in names:
            node.pop(name, None)
    for network in tree["settings"]["ipConfiguration"]["authorizedNetworks"]:
        del network["kind"]
    if policy.unspecified is Rule.IGNORED:
        labels = tree["settings"]["userLabels"]
        tree["settings"]["userLabels"] = dict(list(labels.items())[::2])
    tree["rootPassword"] = "correct horse battery staple"
    return Declared(tree, SHAPE, policy)


@dataclass(frozen=True, slots=True)
class Change:
    """A live object with another value of its middle flag, and the location of the flag: by index, and by key."""

    body: bytes
    index_path: tuple[str | int, ...]
    path: Path


def with_other_flag(size: Size) -> Change:
    """The one change that the benchmarks have to find."""
    tree = orjson.loads(body_of(size))
    index = size.flags // 2
    flag = tree["settings"]["databaseFlags"][index]
    flag["value"] = "7"
    key = Selector((("name", flag["name"]),))
    return Change(
        orjson.dumps(tree),
        ("settings", "databaseFlags", index, "value"),
        Path(("settings", "databaseFlags", key, "value")),
    )

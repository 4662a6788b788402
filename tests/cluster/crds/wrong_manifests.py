"""Wrong manifests of every kind, one mistake each, and the words that name the field."""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from setpoint.core.values.paths import Path, set_at
from tests.cluster.crds.resources import manifest

LONG: Final = "a" * 260
CONFIG_MAP: Final = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}
DELETE: Final = {"action": {"type": "Delete"}, "condition": {"age": 1}}
# The least that each kind takes, and what the mistakes below need around them.
RIGHT: Final[dict[str, Any]] = {
    "StorageBucket": {
        "location": "EU",
        "lifecycleRule": [DELETE],
        "cors": [{"method": ["GET"]}],
        "ipFilter": {"mode": "Disabled", "publicNetworkSource": {"allowedIpCidrRanges": ["10.0.0.0/8"]}},
    },
    "SQLInstance": {
        "databaseVersion": "POSTGRES_16",
        "region": "europe-west1",
        "settings": {
            "tier": "db-custom-2-8192",
            "databaseFlags": [{"name": "max_connections", "value": "10"}],
            "ipConfiguration": {"authorizedNetworks": [{"name": "office", "value": "10.0.0.0/8"}]},
            "denyMaintenancePeriod": {"startDate": "12-01", "endDate": "12-31", "time": "00:00:00"},
            "passwordValidationPolicy": {"enablePasswordPolicy": True},
            "backupConfiguration": {"backupRetentionSettings": {"retainedBackups": 7}},
        },
    },
    "SQLDatabase": {"instanceRef": {"external": "main"}},
    "IAMPartialPolicy": {"resourceRef": {"kind": "Project", "external": "projects/p"}, "bindings": []},
    "IAMPolicy": {"resourceRef": {"kind": "Project", "external": "projects/p"}, "bindings": []},
    "IAMPolicyMember": {
        "resourceRef": {"kind": "Project", "external": "projects/p"},
        "role": "roles/viewer",
        "member": "user:a@example.com",
    },
    "IAMServiceAccountKey": {"serviceAccountRef": {"external": "app@p.iam.gserviceaccount.com"}},
    "SQLUser": {"instanceRef": {"external": "main"}, "passwordPolicy": {"enableFailedAttemptsCheck": True}},
    "KubernetesObject": {"manifest": CONFIG_MAP, "ignoreFields": ["data"], "deletion": {"propagation": "Orphan"}},
    "TrusteeConfig": {"profileType": "Permissive", "tlsConfig": {"profile": "custom", "ciphers": ["ECDHE-A"]}},
    "KbsConfig": {
        "kbsSecretResources": ["one"],
        "kbsLocalCertCacheSpec": {"secrets": [{"secretName": "one"}]},
        "KbsEnvVars": {"RUST_LOG": "info"},
    },
    "ReferenceGrant": {
        "from": [{"group": "sql.cnrm.cloud.google.com", "kind": "SQLUser", "namespace": "one"}],
        "to": [{"group": "", "kind": "Secret"}],
    },
}


@dataclass(frozen=True, slots=True)
class WrongManifest:
    """A manifest that is right but for one value; `at` is the field that the refusal names."""

    kind: str
    path: str
    value: Any
    # A part of the API server's refusal.
    words: str
    at: str = ""
    name: str = "one"

    @property
    def field(self) -> str:
        """The field that the refusal names."""
        return self.at or self.path

    @property
    def document(self) -> Any:
        """The manifest."""
        right = manifest(self.kind, deepcopy(RIGHT[self.kind]), self.name)
        return set_at(right, Path.parse(self.path), self.value)

    def __str__(self) -> str:
        return f"{self.kind}-{self.path}-{str(self.value)[:20]}"


def _of(kind: str, *mistakes: tuple[str, Any, str] | tuple[str, Any, str, str]) -> list[WrongManifest]:
    return [WrongManifest(kind, path, value, words, *at) for path, value, words, *at in mistakes]


_SETTINGS: Final = "spec.settings"
_BACKUPS: Final = f"{_SETTINGS}.backupConfiguration"
_NETWORK: Final = f"{_SETTINGS}.ipConfiguration"
_NAME_OR_EXTERNAL: Final = "write name or external, and not both"
_CIDR: Final = "in CIDR notation, such as 10.0.0.0/8"
_CLASSES: Final = "write STANDARD, NEARLINE, COLDLINE, ARCHIVE"

BUCKETS: Final = _of(
    "StorageBucket",
    ("spec.storageClass", "COLD", _CLASSES),
    ("spec.location", "europe west", "write the name of a place"),
    ("spec.resourceID", "Upper", "write the name of a bucket"),
    ("spec.resourceID", LONG, "Too long: may not be more than 222"),
    ("spec.resourceID", "a..b", "write the name of a bucket"),
    ("spec.resourceID", "ab", "write the name of a bucket"),
    ("spec.resourceID", "b" * 64, "write the name of a bucket"),
    ("spec.resourceID", "10.0.0.1", "write the name of a bucket"),
    ("spec.resourceID", "my-google-bucket", "write the name of a bucket"),
    ("spec.publicAccessPrevention", "on", "write enforced, inherited or unspecified"),
    (
        "spec.autoclass",
        {"enabled": True, "terminalStorageClass": "COLDLINE"},
        "write NEARLINE or ARCHIVE",
        "spec.autoclass.terminalStorageClass",
    ),
    ("spec.lifecycleRule[0].action.type", "Remove", "write Delete, SetStorageClass or AbortIncompleteMultipartUpload"),
    ("spec.lifecycleRule[0].action.storageClass", "NEARLINE", "write the class of SetStorageClass"),
    (
        "spec.lifecycleRule[0].action",
        {"type": "SetStorageClass"},
        "write the class of SetStorageClass",
        "spec.lifecycleRule[0].action.storageClass",
    ),
    ("spec.lifecycleRule[0].condition.age", -1, "should be greater than or equal to 0"),
    ("spec.lifecycleRule[0].condition.numNewerVersions", -1, "should be greater than or equal to 0"),
    ("spec.lifecycleRule[0].condition.createdBefore", "yesterday", "write a day, such as 2026-12-31"),
    ("spec.lifecycleRule[0].condition.withState", "DEAD", '"LIVE"'),
    (
        "spec.lifecycleRule[0].condition.matchesStorageClass",
        ["COLD"],
        _CLASSES,
        "spec.lifecycleRule[0].condition.matchesStorageClass[0]",
    ),
    ("spec.lifecycleRule[0].condition", {}, "write age: 0 if that is meant"),
    (
        "spec.softDeletePolicy",
        {"retentionDurationSeconds": 60},
        "write 0, or 604800 to 7776000",
        "spec.softDeletePolicy.retentionDurationSeconds",
    ),
    (
        "spec.retentionPolicy",
        {"retentionPeriod": 0},
        "should be greater than or equal to 1",
        "spec.retentionPolicy.retentionPeriod",
    ),
    ("spec.cors[0].maxAgeSeconds", -1, "should be greater than or equal to 0"),
    ("spec.cors[0].method[0]", "GET POST", "write an HTTP method"),
    ("spec.logging", {"logBucket": "gs://logs"}, "write the name of a bucket", "spec.logging.logBucket"),
    ("spec.encryption", {"kmsKeyRef": {}}, _NAME_OR_EXTERNAL, "spec.encryption.kmsKeyRef"),
    ("spec.ipFilter.mode", "On", "Unsupported value"),
    ("spec.ipFilter.publicNetworkSource.allowedIpCidrRanges[0]", "10.0.0.0/33", _CIDR),
    (
        "spec.customPlacementConfig",
        {"dataLocations": ["EUROPE-WEST1"]},
        "has to name two regions",
        "spec.customPlacementConfig.dataLocations",
    ),
)
KEYS: Final = _of(
    "IAMServiceAccountKey",
    ("spec.serviceAccountRef", {"name": "a", "external": "b"}, _NAME_OR_EXTERNAL),
    ("spec.keyAlgorithm", "RSA", 'write "KEY_ALG_RSA_1024", "KEY_ALG_RSA_2048" or "KEY_ALG_UNSPECIFIED"'),
    ("spec.publicKeyData", "", "write a certificate (X.509, PEM) in base64"),
    ("spec.resourceID", "main", "write the id of a key"),
)
INSTANCES: Final = _of(
    "SQLInstance",
    ("spec.databaseVersion", "ORACLE_19", "write one such as POSTGRES_16"),
    ("spec.instanceType", "replica", "write CLOUD_SQL_INSTANCE or READ_REPLICA_INSTANCE"),
    ("spec.region", "europe_west1", "write the name of a place"),
    ("spec.resourceID", "Main", "write the name of an instance"),
    ("spec.resourceID", "a" * 99, "Too long: may not be more than 98"),
    ("spec.rootPassword", {"value": "a", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}, "and not both"),
    (
        "spec.rootPassword",
        {"valueFrom": {"secretKeyRef": {"name": "A b", "key": "b"}}},
        "write the name of an object",
        "spec.rootPassword.valueFrom.secretKeyRef.name",
    ),
    ("spec.masterInstanceRef", {"name": "a", "external": "b"}, _NAME_OR_EXTERNAL),
    ("spec.masterInstanceRef", {"name": "Main Instance"}, "write the name of an object", "spec.masterInstanceRef.name"),
    (
        "spec.cloneSource",
        {"sqlInstanceRef": {"name": "a"}, "pointInTime": "noon"},
        "write a time such as",
        "spec.cloneSource.pointInTime",
    ),
    (f"{_SETTINGS}.tier", "", "write a machine, such as db-custom-2-8192"),
    (f"{_SETTINGS}.edition", "ULTIMATE", "write ENTERPRISE or ENTERPRISE_PLUS"),
    (f"{_SETTINGS}.activationPolicy", "SOMETIMES", "write ALWAYS, NEVER or ON_DEMAND"),
    (f"{_SETTINGS}.availabilityType", "GLOBAL", "write ZONAL or REGIONAL"),
    (f"{_SETTINGS}.connectorEnforcement", "YES", "write REQUIRED or NOT_REQUIRED"),
    (f"{_SETTINGS}.pricingPlan", "FREE", "write PER_USE or PACKAGE"),
    (f"{_SETTINGS}.replicationType", "NONE", "write SYNCHRONOUS or ASYNCHRONOUS"),
    (f"{_SETTINGS}.diskType", "ssd", "write PD_SSD or PD_HDD"),
    (f"{_SETTINGS}.diskSize", 5, "write 0, or 10 or more"),
    (f"{_SETTINGS}.diskAutoresizeLimit", -1, "should be greater than or equal to 0"),
    (f"{_SETTINGS}.databaseFlags[0].name", "", "write the name of a flag"),
    (f"{_SETTINGS}.denyMaintenancePeriod.startDate", "tomorrow", "write a day, such as 2026-12-31"),
    (f"{_SETTINGS}.denyMaintenancePeriod.time", "midnight", "write a time of day, such as 03:00:00"),
    (
        f"{_SETTINGS}.advancedMachineFeatures",
        {"threadsPerCore": 3},
        "should be less than or equal to 2",
        f"{_SETTINGS}.advancedMachineFeatures.threadsPerCore",
    ),
    (f"{_BACKUPS}.startTime", "25:00", "write a time of day, such as 03:00"),
    (f"{_BACKUPS}.transactionLogRetentionDays", 36, "should be less than or equal to 35"),
    (f"{_BACKUPS}.backupRetentionSettings.retainedBackups", 366, "should be less than or equal to 365"),
    (f"{_BACKUPS}.backupRetentionSettings.retentionUnit", "DAYS", "write COUNT"),
    (
        f"{_SETTINGS}.insightsConfig",
        {"queryPlansPerMinute": 21},
        "should be less than or equal to 20",
        f"{_SETTINGS}.insightsConfig.queryPlansPerMinute",
    ),
    (
        f"{_SETTINGS}.insightsConfig",
        {"queryStringLength": 100},
        "write 0, or 256 to 1048576",
        f"{_SETTINGS}.insightsConfig.queryStringLength",
    ),
    (f"{_SETTINGS}.maintenanceWindow", {"day": 8}, "less than or equal to 7", f"{_SETTINGS}.maintenanceWindow.day"),
    (f"{_SETTINGS}.maintenanceWindow", {"hour": 24}, "less than or equal to 23", f"{_SETTINGS}.maintenanceWindow.hour"),
    (
        f"{_SETTINGS}.maintenanceWindow",
        {"updateTrack": "week9"},
        "write canary, stable or week5",
        f"{_SETTINGS}.maintenanceWindow.updateTrack",
    ),
    (f"{_SETTINGS}.passwordValidationPolicy.complexity", "HIGH", "write COMPLEXITY_DEFAULT"),
    (f"{_SETTINGS}.passwordValidationPolicy.passwordChangeInterval", "1h", "write it in seconds, as 2592000s"),
    (f"{_NETWORK}.sslMode", "ALWAYS", "write ALLOW_UNENCRYPTED_AND_ENCRYPTED, ENCRYPTED_ONLY or"),
    (f"{_NETWORK}.authorizedNetworks[0].value", "10.0.0.300/8", _CIDR),
    (f"{_NETWORK}.authorizedNetworks[0].expirationTime", "soon", "write a time such as 2026-01-31T15:00:00Z"),
    (f"{_NETWORK}.pscConfig", [{}, {}], "keep one"),
)
DATABASES_AND_USERS: Final = [
    *_of(
        "SQLDatabase",
        ("spec.instanceRef", {}, _NAME_OR_EXTERNAL),
        ("spec.instanceRef", {"name": LONG}, "Too long: may not be more than 253", "spec.instanceRef.name"),
        ("spec.deletionPolicy", "KEEP", '"ABANDON" or "DELETE"'),
        ("spec.charset", "UTF 8", "write a character set"),
        ("spec.collation", "en US", "write a collation"),
        ("spec.resourceID", "", "or leave it out"),
        ("spec.resourceID", "a\nb", "write a name without control characters"),
    ),
    *_of(
        "SQLUser",
        ("spec.type", "ROBOT", '"BUILT_IN"'),
        ("spec.host", "a\tb", "write a name without control characters"),
        ("spec.password", {}, "write value or valueFrom, and not both"),
        (
            "spec.password",
            {"valueFrom": {"secretKeyRef": {"name": "a", "key": "a b"}}},
            "write a key of a Secret",
            "spec.password.valueFrom.secretKeyRef.key",
        ),
        ("spec.passwordPolicy.passwordExpirationDuration", "30d", "write it in seconds, as 2592000s"),
        ("spec.passwordPolicy.allowedFailedAttempts", -1, "should be greater than or equal to 0"),
    ),
]
OBJECTS: Final = _of(
    "KubernetesObject",
    ("spec.waitFor", {}, "must validate one and only one schema (oneOf). Found none valid"),
    ("spec.waitFor", {"rollout": True, "field": "status"}, "one and only one schema (oneOf). Found 2 valid"),
    ("spec.waitFor", {"rollout": False}, "write true, or leave it out", "spec.waitFor.rollout"),
    ("spec.waitFor", {"fieldValue": {}}, "should have at least 1 properties", "spec.waitFor.fieldValue"),
    ("spec.waitFor", {"field": "status..phase"}, "write a path such as", "spec.waitFor.field"),
    ("spec.waitFor", {"rollout": True, "timeout": "soon"}, "write 1h30m, 90s, 500ms", "spec.waitFor.timeout"),
    ("spec.waitFor", {"rollout": True, "timeout": -1}, "write 1h30m, 90s, 500ms", "spec.waitFor.timeout"),
    ("spec.deletion.timeout", "0s", "write 1h30m, 90s, 500ms"),
    ("spec.deletion.propagation", "Sideways", '"Background"'),
    ("spec.ignoreFields[0]", "metadata.name", "one that does cannot be ignored"),
    ("spec.ignoreFields[0]", "", "write a path such as spec.replicas"),
    ("spec.serviceAccountName", "Not A Name", "write the name of an object"),
    ("spec.cluster", {"inCluster": True, "context": "prod"}, "write inCluster alone", "spec.cluster.inCluster"),
)
TRUSTEES: Final = [
    *_of(
        "TrusteeConfig",
        ("spec.profileType", "restricted", "write Permissive or Restricted"),
        ("spec.kbsServiceType", "ExternalName", "write ClusterIP, NodePort or LoadBalancer"),
        ("spec.httpsSpec", {"tlsSecretName": "A B"}, "write the name of an object", "spec.httpsSpec.tlsSecretName"),
        ("spec.ibmSE", {"pvName": ""}, "write the name of an object", "spec.ibmSE.pvName"),
        ("spec.tlsConfig.profile", "none", "Unsupported value"),
        ("spec.tlsConfig.minVersion", "1.4", "should match"),
        ("spec.tlsConfig", {"minVersion": "1.3", "maxVersion": "1.2"}, "minVersion must not be greater"),
        ("spec.tlsConfig.ciphers[0]", "A:B", "write the name of one cipher suite or group"),
    ),
    *_of(
        "KbsConfig",
        ("spec.kbsServiceType", "Cluster", "write ClusterIP, NodePort or LoadBalancer"),
        ("spec.kbsDeploymentType", "Other", "Unsupported value"),
        (
            "spec.KbsDeploymentSpec",
            {"replicas": -1},
            "should be greater than or equal to 0",
            "spec.KbsDeploymentSpec.replicas",
        ),
        ("spec.kbsConfigMapName", "My Map", "write the name of an object"),
        ("spec.kbsSecretResources[0]", "a/b", "write the name of an object"),
        ("spec.KbsEnvVars", {"A=B": "c"}, "write the name of an environment variable"),
        ("spec.kbsLocalCertCacheSpec.secrets[0].mountPath", "certs", "write an absolute path without ':'"),
    ),
]
GRANTS: Final = _of(
    "ReferenceGrant",
    ("spec.from", [], "should have at least 1 items"),
    ("spec.from[0].namespace", "Other Team", "write the name of a namespace"),
    ("spec.from[0].kind", "", "should be at least 1 chars long"),
    ("spec.from[0].group", "SQL", "write an API group"),
    ("spec.to[0].kind", "secret", "write a kind, such as SQLInstance"),
    ("spec.to[0].name", "", "should be at least 1 chars long"),
)
# The name of the resource is the name in the service, unless spec.resourceID says another.
NAMES: Final = [
    WrongManifest("SQLInstance", "spec.region", "europe-west1", "or set spec.resourceID", "metadata.name", "1.a"),
    WrongManifest("StorageBucket", "spec.location", "EU", "or set spec.resourceID", "metadata.name", "a" * 223),
    WrongManifest("StorageBucket", "spec.location", "EU", "3 to 63", "metadata.name", "ab"),
    WrongManifest(
        "TrusteeConfig", "spec.profileType", "Restricted", "63 characters at most", "metadata.name", "a" * 64
    ),
]
WRONG: Final = [*BUCKETS, *INSTANCES, *DATABASES_AND_USERS, *KEYS, *OBJECTS, *TRUSTEES, *GRANTS, *NAMES]

# What no definition can refuse, though it needs no look at the world: `plan` and `apply` do. `words` is the reason.
NOT_AT_ADMISSION: Final = [
    *_of(
        "KubernetesObject",
        (
            "spec.manifest",
            {"apiVersion": "v1"},
            "a map or text has no type: no rule sees into it",
            "spec.manifest.kind",
        ),
        ("spec.waitFor", {"condition": {"type": "A", "status": "B"}}, "nor into this", "spec.waitFor.condition.status"),
        ("spec.waitFor", {"rollout": True}, "which kinds have a rollout is said by the manifest"),
    ),
    *_of("SQLDatabase", ("spec.resourceID", "a%2F..", "it is decoded again and again to find the path in it")),
    *_of(
        "StorageBucket",
        (
            "spec.customPlacementConfig",
            {"dataLocations": ["EU-A", "eu-a"]},
            "whether two names are of one region",
            "spec.customPlacementConfig.dataLocations",
        ),
    ),
]
# What is known of the world only: it becomes a condition. `plan` asks the service, too.
NEEDS_THE_WORLD: Final = {
    "SQLDatabase spec.charset, changed": "only MySQL can change it: the live instance tells the engine",
    "SQLInstance spec.settings.diskSize, smaller": "a disk that grew by itself is larger than the last manifest said",
    "SQLInstance spec.settings.tier, spec.region, spec.databaseVersion": "which of them there are changes with time",
    "SQLInstance metadata.labels": "rules of a definition see only the name in the metadata; services decide",
    "a reference to a resource, Secret or key that is not there": "it may be applied next",
    "a name that is taken": "only the service knows",
}

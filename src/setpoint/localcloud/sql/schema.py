"""The resources of the Cloud SQL Admin API, field by field.

Not served, and so refused: read pools, blue-green deployments, Entra ID, performance capture, resource tags.
"""

from typing import Final

from setpoint.localcloud.schema import OUTPUT, EnumSchema, ListSchema, MapSchema, ObjectSchema, ScalarSchema, enum_of

_TEXT, _BOOL, _INT32, _INT64, _TIME = (
    ScalarSchema.TEXT,
    ScalarSchema.BOOL,
    ScalarSchema.INT32,
    ScalarSchema.INT64,
    ScalarSchema.TIME,
)

_IP_CONFIGURATION: Final = ObjectSchema(
    {
        "allocatedIpRange": _TEXT,
        "authorizedNetworks": ListSchema(
            ObjectSchema({"expirationTime": _TIME, "name": _TEXT, "value": _TEXT}, kind="sql#aclEntry")
        ),
        "customSubjectAlternativeNames": ListSchema(_TEXT),
        "enablePrivatePathForGoogleCloudServices": _BOOL,
        "ipv4Enabled": _BOOL,
        "privateNetwork": _TEXT,
        "pscConfig": ObjectSchema(
            {
                "allowedConsumerProjects": ListSchema(_TEXT),
                "networkAttachmentUri": _TEXT,
                "pscAutoConnections": ListSchema(
                    ObjectSchema(
                        {
                            "consumerNetwork": _TEXT,
                            "consumerNetworkStatus": OUTPUT,
                            "consumerProject": _TEXT,
                            "ipAddress": OUTPUT,
                            "status": OUTPUT,
                        }
                    )
                ),
                "pscEnabled": _BOOL,
            }
        ),
        "requireSsl": _BOOL,
        "serverCaMode": enum_of("GOOGLE_MANAGED_INTERNAL_CA", "GOOGLE_MANAGED_CAS_CA", "CUSTOMER_MANAGED_CAS_CA"),
        "serverCaPool": _TEXT,
        "serverCertificateRotationMode": enum_of("NO_AUTOMATIC_ROTATION", "AUTOMATIC_ROTATION_DURING_MAINTENANCE"),
        "sslMode": enum_of("ALLOW_UNENCRYPTED_AND_ENCRYPTED", "ENCRYPTED_ONLY", "TRUSTED_CLIENT_CERTIFICATE_REQUIRED"),
    }
)

_BACKUP_CONFIGURATION: Final = ObjectSchema(
    {
        "backupRetentionSettings": ObjectSchema({"retainedBackups": _INT32, "retentionUnit": enum_of("COUNT")}),
        "backupTier": OUTPUT,
        "binaryLogEnabled": _BOOL,
        "enabled": _BOOL,
        "location": _TEXT,
        "pointInTimeRecoveryEnabled": _BOOL,
        "replicationLogArchivingEnabled": OUTPUT,
        "startTime": _TEXT,
        "transactionLogRetentionDays": _INT32,
        "transactionalLogStorageState": OUTPUT,
    },
    kind="sql#backupConfiguration",
)

_INSIGHTS_CONFIG: Final = ObjectSchema(
    {
        "enhancedQueryInsightsEnabled": _BOOL,
        "queryInsightsEnabled": _BOOL,
        "queryPlansPerMinute": _INT32,
        "queryStringLength": _INT32,
        "recordApplicationTags": _BOOL,
        "recordClientAddress": _BOOL,
    }
)

_PASSWORD_VALIDATION_POLICY: Final = ObjectSchema(
    {
        "complexity": enum_of("COMPLEXITY_UNSPECIFIED", "COMPLEXITY_DEFAULT"),
        "disallowCompromisedCredentials": _BOOL,
        "disallowUsernameSubstring": _BOOL,
        "enablePasswordPolicy": _BOOL,
        "minLength": _INT32,
        "passwordChangeInterval": _TEXT,
        "reuseInterval": _INT32,
    }
)

SETTINGS: Final = ObjectSchema(
    {
        "activationPolicy": enum_of("ALWAYS", "NEVER", "ON_DEMAND"),
        "activeDirectoryConfig": ObjectSchema(
            {
                "adminCredentialSecretName": _TEXT,
                "dnsServers": ListSchema(_TEXT),
                "domain": _TEXT,
                "mode": enum_of("MANAGED_ACTIVE_DIRECTORY", "SELF_MANAGED_ACTIVE_DIRECTORY"),
                "organizationalUnit": _TEXT,
            },
            kind="sql#activeDirectoryConfig",
        ),
        "advancedMachineFeatures": ObjectSchema({"threadsPerCore": _INT32}),
        "authorizedGaeApplications": ListSchema(_TEXT),
        "availabilityType": enum_of("ZONAL", "REGIONAL"),
        "backupConfiguration": _BACKUP_CONFIGURATION,
        "collation": _TEXT,
        "connectionPoolConfig": ObjectSchema(
            {
                "connectionPoolingEnabled": _BOOL,
                "flags": ListSchema(ObjectSchema({"name": _TEXT, "value": _TEXT})),
                "poolerCount": OUTPUT,
            }
        ),
        "connectorEnforcement": enum_of("NOT_REQUIRED", "REQUIRED"),
        "crashSafeReplicationEnabled": _BOOL,
        "dataApiAccess": _TEXT,
        "dataCacheConfig": ObjectSchema({"dataCacheEnabled": _BOOL}),
        "dataDiskProvisionedIops": _INT64,
        "dataDiskProvisionedThroughput": _INT64,
        "dataDiskSizeGb": _INT64,
        "dataDiskType": enum_of("PD_SSD", "PD_HDD", "HYPERDISK_BALANCED"),
        "databaseFlags": ListSchema(ObjectSchema({"name": _TEXT, "value": _TEXT})),
        "databaseReplicationEnabled": _BOOL,
        "deletionProtectionEnabled": _BOOL,
        "denyMaintenancePeriods": ListSchema(ObjectSchema({"endDate": _TEXT, "startDate": _TEXT, "time": _TEXT})),
        "edition": enum_of("ENTERPRISE", "ENTERPRISE_PLUS"),
        "enableDataplexIntegration": _BOOL,
        "enableGoogleMlIntegration": _BOOL,
        "finalBackupConfig": ObjectSchema({"enabled": _BOOL, "retentionDays": _INT32}),
        "insightsConfig": _INSIGHTS_CONFIG,
        "ipConfiguration": _IP_CONFIGURATION,
        "locationPreference": ObjectSchema(
            {"followGaeApplication": _TEXT, "secondaryZone": _TEXT, "zone": _TEXT}, kind="sql#locationPreference"
        ),
        "maintenanceWindow": ObjectSchema(
            {"day": _INT32, "hour": _INT32, "updateTrack": enum_of("canary", "stable", "week5")},
            kind="sql#maintenanceWindow",
        ),
        "passwordValidationPolicy": _PASSWORD_VALIDATION_POLICY,
        "pricingPlan": enum_of("PER_USE", "PACKAGE"),
        "replicationLagMaxSeconds": _INT32,
        "replicationType": enum_of("SYNCHRONOUS", "ASYNCHRONOUS"),
        "retainBackupsOnDelete": _BOOL,
        "settingsVersion": _INT64,
        "sqlServerAuditConfig": ObjectSchema(
            {"bucket": _TEXT, "retentionInterval": _TEXT, "uploadInterval": _TEXT}, kind="sql#sqlServerAuditConfig"
        ),
        "storageAutoResize": _BOOL,
        "storageAutoResizeLimit": _INT64,
        "tier": _TEXT,
        "timeZone": _TEXT,
        "userLabels": MapSchema(_TEXT),
    },
    kind="sql#settings",
)

_REPLICA_CONFIGURATION: Final = ObjectSchema(
    {
        "cascadableReplica": _BOOL,
        "failoverTarget": _BOOL,
        "mysqlReplicaConfiguration": ObjectSchema(
            {
                "caCertificate": _TEXT,
                "clientCertificate": _TEXT,
                "clientKey": ScalarSchema.SECRET,
                "connectRetryInterval": _INT32,
                "dumpFilePath": _TEXT,
                "masterHeartbeatPeriod": _INT64,
                "password": ScalarSchema.SECRET,
                "sslCipher": _TEXT,
                "username": _TEXT,
                "verifyServerCertificate": _BOOL,
            },
            kind="sql#mysqlReplicaConfiguration",
        ),
    },
    kind="sql#replicaConfiguration",
)

_ON_PREMISES_CONFIGURATION: Final = ObjectSchema(
    {
        "caCertificate": _TEXT,
        "clientCertificate": _TEXT,
        "clientKey": ScalarSchema.SECRET,
        "dumpFilePath": _TEXT,
        "hostPort": _TEXT,
        "password": ScalarSchema.SECRET,
        "sourceInstance": ObjectSchema({"name": _TEXT, "project": _TEXT, "region": _TEXT}),
        "username": _TEXT,
    },
    kind="sql#onPremisesConfiguration",
)

_OUTPUTS: Final = (
    *("availableMaintenanceVersions", "backendType", "connectionName", "createTime", "currentDiskSize"),
    *("databaseInstalledVersion", "diskEncryptionStatus", "dnsName", "dnsNames", "etag", "gceZone", "geminiConfig"),
    *("ipAddresses", "ipv6Address", "maxDiskSize", "outOfDiskReport", "primaryDnsName", "project"),
    *("pscServiceAttachmentLink", "replicaNames", "satisfiesPzi", "satisfiesPzs", "scheduledMaintenance"),
    *("secondaryGceZone", "selfLink", "serverCaCert", "serviceAccountEmailAddress", "sqlNetworkArchitecture"),
    *("state", "suspensionReason", "upgradableDatabaseVersions", "writeEndpoint"),
)

INSTANCE: Final = ObjectSchema(
    {
        **dict.fromkeys(_OUTPUTS, OUTPUT),
        "databaseVersion": _TEXT,
        "diskEncryptionConfiguration": ObjectSchema({"kmsKeyName": _TEXT}, kind="sql#diskEncryptionConfiguration"),
        "failoverReplica": ObjectSchema({"available": OUTPUT, "name": _TEXT}),
        "includeReplicasForMajorVersionUpgrade": _BOOL,
        "instanceType": enum_of("CLOUD_SQL_INSTANCE", "READ_REPLICA_INSTANCE", "ON_PREMISES_INSTANCE"),
        "maintenanceVersion": _TEXT,
        "masterInstanceName": _TEXT,
        "name": _TEXT,
        "onPremisesConfiguration": _ON_PREMISES_CONFIGURATION,
        "region": _TEXT,
        "replicaConfiguration": _REPLICA_CONFIGURATION,
        "replicationCluster": ObjectSchema(
            {"drReplica": OUTPUT, "failoverDrReplicaName": _TEXT, "psaWriteEndpoint": OUTPUT}
        ),
        "rootPassword": ScalarSchema.SECRET,
        "settings": SETTINGS,
        "switchTransactionLogsToCloudStorageEnabled": _BOOL,
    },
    kind="sql#instance",
)

CLONE: Final = ObjectSchema(
    {
        "cloneContext": ObjectSchema(
            {
                "allocatedIpRange": _TEXT,
                "binLogCoordinates": ObjectSchema(
                    {"binLogFileName": _TEXT, "binLogPosition": _INT64}, kind="sql#binLogCoordinates"
                ),
                "databaseNames": ListSchema(_TEXT),
                "destinationInstanceName": _TEXT,
                "pitrTimestampMs": _INT64,
                "pointInTime": _TIME,
                "preferredSecondaryZone": _TEXT,
                "preferredZone": _TEXT,
            },
            kind="sql#cloneContext",
        )
    }
)

_USER_TYPES: Final[EnumSchema] = enum_of(
    *("BUILT_IN", "CLOUD_IAM_USER", "CLOUD_IAM_SERVICE_ACCOUNT", "CLOUD_IAM_GROUP"),
    *("CLOUD_IAM_GROUP_USER", "CLOUD_IAM_GROUP_SERVICE_ACCOUNT"),
)

USER: Final = ObjectSchema(
    {
        "databaseRoles": ListSchema(_TEXT),
        "dualPasswordType": OUTPUT,
        "etag": OUTPUT,
        "host": _TEXT,
        "iamEmail": OUTPUT,
        "iamStatus": OUTPUT,
        "instance": _TEXT,
        "name": _TEXT,
        "password": ScalarSchema.SECRET,
        "passwordPolicy": ObjectSchema(
            {
                "allowedFailedAttempts": _INT32,
                "enableFailedAttemptsCheck": _BOOL,
                "enablePasswordVerification": _BOOL,
                "passwordExpirationDuration": _TEXT,
                "status": OUTPUT,
            }
        ),
        "project": _TEXT,
        "sqlserverUserDetails": ObjectSchema({"disabled": _BOOL, "serverRoles": ListSchema(_TEXT)}),
        "type": _USER_TYPES,
    },
    kind="sql#user",
)

DATABASE: Final = ObjectSchema(
    {
        "charset": _TEXT,
        "collation": _TEXT,
        "etag": OUTPUT,
        "instance": _TEXT,
        "name": _TEXT,
        "project": _TEXT,
        "selfLink": OUTPUT,
        "sqlserverDatabaseDetails": ObjectSchema({"compatibilityLevel": _INT32, "recoveryModel": _TEXT}),
    },
    kind="sql#database",
)

"""A bucket of the Cloud Storage JSON API, field by field.

The real service ignores fields that it does not know. Here they are refused: a misspelt field is a mistake.
"""

from typing import Final

from setpoint.localcloud.schema import OUTPUT, ListOf, MapOf, Message, Scalar, one_of

_TEXT, _BOOL, _INT32, _INT64, _TIME = Scalar.TEXT, Scalar.BOOL, Scalar.INT32, Scalar.INT64, Scalar.TIME

STORAGE_CLASSES: Final = (
    *("STANDARD", "NEARLINE", "COLDLINE", "ARCHIVE"),
    *("MULTI_REGIONAL", "REGIONAL", "DURABLE_REDUCED_AVAILABILITY"),
)

_LIFECYCLE_RULE: Final = Message(
    {
        "action": Message(
            {
                "storageClass": one_of(*STORAGE_CLASSES),
                "type": one_of("Delete", "SetStorageClass", "AbortIncompleteMultipartUpload"),
            }
        ),
        "condition": Message(
            {
                "age": _INT32,
                "createdBefore": _TEXT,
                "customTimeBefore": _TEXT,
                "daysSinceCustomTime": _INT32,
                "daysSinceNoncurrentTime": _INT32,
                "isLive": _BOOL,
                "matchesPattern": _TEXT,
                "matchesPrefix": ListOf(_TEXT),
                "matchesStorageClass": ListOf(_TEXT),
                "matchesSuffix": ListOf(_TEXT),
                "noncurrentTimeBefore": _TEXT,
                "numNewerVersions": _INT32,
                "sizeAboveBytes": _INT64,
                "sizeBelowBytes": _INT64,
            }
        ),
    }
)

_IP_FILTER: Final = Message(
    {
        "allowAllServiceAgentAccess": _BOOL,
        "allowCrossOrgVpcs": _BOOL,
        "mode": one_of("Enabled", "Disabled"),
        "publicNetworkSource": Message({"allowedIpCidrRanges": ListOf(_TEXT)}),
        "vpcNetworkSources": ListOf(Message({"allowedIpCidrRanges": ListOf(_TEXT), "network": _TEXT})),
    }
)

_ENFORCEMENT: Final = Message({"effectiveTime": OUTPUT, "restrictionMode": one_of("NotRestricted", "FullyRestricted")})

_OUTPUTS: Final = (
    *("etag", "generation", "hardDeleteTime", "id", "locationType", "metageneration", "owner", "projectNumber"),
    *("satisfiesPZI", "satisfiesPZS", "selfLink", "softDeleteTime", "timeCreated", "updated"),
)

BUCKET: Final = Message(
    {
        **dict.fromkeys(_OUTPUTS, OUTPUT),
        # Known, so that sending them can be refused with a reason: the local cloud keeps no access control lists.
        "acl": ListOf(MapOf(_TEXT)),
        "autoclass": Message(
            {
                "enabled": _BOOL,
                "terminalStorageClass": one_of("NEARLINE", "ARCHIVE"),
                "terminalStorageClassUpdateTime": OUTPUT,
                "toggleTime": OUTPUT,
            }
        ),
        "billing": Message({"requesterPays": _BOOL}),
        "cors": ListOf(
            Message(
                {
                    "maxAgeSeconds": _INT32,
                    "method": ListOf(_TEXT),
                    "origin": ListOf(_TEXT),
                    "responseHeader": ListOf(_TEXT),
                }
            )
        ),
        "customPlacementConfig": Message({"dataLocations": ListOf(_TEXT)}),
        "defaultEventBasedHold": _BOOL,
        "defaultObjectAcl": ListOf(MapOf(_TEXT)),
        "encryption": Message(
            {
                "customerManagedEncryptionEnforcementConfig": _ENFORCEMENT,
                "customerSuppliedEncryptionEnforcementConfig": _ENFORCEMENT,
                "defaultKmsKeyName": _TEXT,
                "googleManagedEncryptionEnforcementConfig": _ENFORCEMENT,
            }
        ),
        "hierarchicalNamespace": Message({"enabled": _BOOL}),
        "iamConfiguration": Message(
            {
                "bucketPolicyOnly": Message({"enabled": _BOOL, "lockedTime": OUTPUT}),
                "publicAccessPrevention": one_of("inherited", "enforced", "unspecified"),
                "uniformBucketLevelAccess": Message({"enabled": _BOOL, "lockedTime": OUTPUT}),
            }
        ),
        "ipFilter": _IP_FILTER,
        "labels": MapOf(_TEXT),
        "lifecycle": Message({"rule": ListOf(_LIFECYCLE_RULE)}),
        "location": _TEXT,
        "logging": Message({"logBucket": _TEXT, "logObjectPrefix": _TEXT}),
        "name": _TEXT,
        "objectRetention": OUTPUT,
        "retentionPolicy": Message({"effectiveTime": OUTPUT, "isLocked": _BOOL, "retentionPeriod": _INT64}),
        "rpo": one_of("DEFAULT", "ASYNC_TURBO"),
        "softDeletePolicy": Message({"effectiveTime": OUTPUT, "retentionDurationSeconds": _INT64}),
        "storageClass": one_of(*STORAGE_CLASSES),
        "versioning": Message({"enabled": _BOOL}),
        "website": Message({"mainPageSuffix": _TEXT, "notFoundPage": _TEXT}),
    },
    kind="storage#bucket",
)

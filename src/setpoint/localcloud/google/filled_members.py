"""What services fill in where a client left it out, as far as rows do not say it. One entry for each collection."""

from collections.abc import Mapping
from typing import Any, Final

_LINKS: Final = "https://www.googleapis.com/compute/v1"
_READY: Final = {"type": "Ready", "state": "CONDITION_SUCCEEDED"}
_KEY_VERSION: Final = {"algorithm": "GOOGLE_SYMMETRIC_ENCRYPTION", "protectionLevel": "SOFTWARE"}
_DEFAULT_RULE: Final = {
    "kind": "compute#securityPolicyRule",
    "action": "allow",
    "description": "default rule",
    "match": {"versionedExpr": "SRC_IPS_V1", "config": {"srcIpRanges": ["*"]}},
    "preview": False,
    "priority": 2147483647,
}

# By API and collection: the members that a new object has when its creation did not say otherwise. In texts, `{id}`,
# `{project}`, `{number}`, `{place}`, `{now}` and `{unique}` are those of the object.
FILLED_MEMBERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "artifactregistry/repositories": {
        "mode": "STANDARD_REPOSITORY",
        "vulnerabilityScanningConfig": {"enablementState": "SCANNING_DISABLED"},
    },
    "certificatemanager/dnsAuthorizations": {
        "type": "FIXED_RECORD",
        "dnsResourceRecord": {"type": "CNAME", "name": "_acme-challenge.{id}.", "data": "{unique}.authorize.goog."},
    },
    "cloudkms/cryptoKeys": {
        "purpose": "ENCRYPT_DECRYPT",
        "versionTemplate": _KEY_VERSION,
        "destroyScheduledDuration": "2592000s",
    },
    "cloudresourcemanager/folders": {"state": "ACTIVE"},
    "cloudresourcemanager/projects": {"lifecycleState": "ACTIVE", "projectNumber": "{number}"},
    "compute/addresses": {"address": "203.0.113.10", "addressType": "EXTERNAL", "networkTier": "PREMIUM"},
    "compute/backendServices": {
        "affinityCookieTtlSec": 0,
        "loadBalancingScheme": "EXTERNAL",
        "port": 80,
        "portName": "http",
        "protocol": "HTTP",
        "sessionAffinity": "NONE",
        "timeoutSec": 30,
        "connectionDraining": {"drainingTimeoutSec": 0},
    },
    "compute/disks": {
        "physicalBlockSizeBytes": "4096",
        "sizeGb": "500",
        "type": f"{_LINKS}/projects/{{project}}/{{place}}/diskTypes/pd-standard",
    },
    "compute/firewalls": {"direction": "INGRESS", "disabled": False, "priority": 1000, "logConfig": {"enable": False}},
    "compute/forwardingRules": {
        "IPAddress": "203.0.113.20",
        "IPProtocol": "TCP",
        "loadBalancingScheme": "EXTERNAL",
        "networkTier": "PREMIUM",
    },
    "compute/healthChecks": {
        "checkIntervalSec": 5,
        "timeoutSec": 5,
        "healthyThreshold": 2,
        "unhealthyThreshold": 2,
    },
    "compute/networks": {
        "autoCreateSubnetworks": True,
        "networkFirewallPolicyEnforcementOrder": "AFTER_CLASSIC_FIREWALL",
        "routingConfig": {"routingMode": "REGIONAL", "bgpBestPathSelectionMode": "LEGACY"},
    },
    "compute/routers": {"encryptedInterconnectRouter": False},
    "compute/securityPolicies": {"type": "CLOUD_ARMOR", "rules": [_DEFAULT_RULE]},
    "compute/sslCertificates": {"type": "SELF_MANAGED"},
    "compute/sslPolicies": {"minTlsVersion": "TLS_1_0", "profile": "COMPATIBLE"},
    "compute/subnetworks": {
        "gatewayAddress": "10.0.0.1",
        "privateIpGoogleAccess": False,
        "privateIpv6GoogleAccess": "DISABLE_GOOGLE_ACCESS",
        "purpose": "PRIVATE",
        "stackType": "IPV4_ONLY",
        "enableFlowLogs": False,
    },
    "compute/targetHttpsProxies": {"quicOverride": "NONE", "tlsEarlyData": "DISABLED"},
    "dns/managedZones": {
        "cloudLoggingConfig": {"kind": "dns#managedZoneCloudLoggingConfig"},
        "creationTime": "{now}",
        "visibility": "public",
    },
    "iam/serviceAccounts": {"oauth2ClientId": "{unique}"},
    "logging/buckets": {"lifecycleState": "ACTIVE", "retentionDays": 30},
    "pubsub/schemas": {"revisionCreateTime": "{now}", "revisionId": "a1b2c3d4"},
    "pubsub/subscriptions": {
        "ackDeadlineSeconds": 10,
        "expirationPolicy": {"ttl": "2678400s"},
        "messageRetentionDuration": "604800s",
        "pushConfig": {},
        "state": "ACTIVE",
    },
    "redis/instances": {
        "authorizedNetwork": "projects/{project}/global/networks/default",
        "connectMode": "DIRECT_PEERING",
        "redisVersion": "REDIS_7_0",
        "tier": "BASIC",
        "transitEncryptionMode": "DISABLED",
    },
    "run/jobs": {"generation": "1", "launchStage": "GA", "terminalCondition": _READY},
    "run/services": {
        "generation": "1",
        "ingress": "INGRESS_TRAFFIC_ALL",
        "launchStage": "GA",
        "observedGeneration": "1",
        "terminalCondition": _READY,
        "uri": "https://{id}-{number}.run.app",
    },
    "spanner/instances": {
        "edition": "STANDARD",
        "instanceType": "PROVISIONED",
        "nodeCount": 1,
        "processingUnits": 1000,
    },
    "vpcaccess/connectors": {
        "machineType": "e2-micro",
        "maxInstances": 10,
        "maxThroughput": 1000,
        "minInstances": 2,
        "minThroughput": 200,
    },
}

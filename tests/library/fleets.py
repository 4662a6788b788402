"""Manifests of many kinds that refer to each other, as a team would have them."""

from collections.abc import Sequence
from typing import Any, Final

FLEET_PROJECT: Final = "some-project"
FLEET_REGION: Final = "europe-west1"


def manifest(group: str, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    """The manifest of a kind of Google's, in the project of the fleet."""
    api = f"{group}.cnrm.cloud.google.com/v1beta1"
    metadata = {
        "name": name,
        "annotations": {"cnrm.cloud.google.com/project-id": FLEET_PROJECT},
        "labels": {"team": "web"},
    }
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}


def fleet(number: int) -> Sequence[dict[str, Any]]:
    """One of each kind; those that refer to others refer to those of the same number."""
    own, cidr = f"shop-{number}", f"10.{number}.0.0/24"
    refers = {"name": own}
    project = {"projectRef": {"external": f"projects/{FLEET_PROJECT}"}}
    found: list[tuple[str, str, dict[str, Any]]] = [
        ("storage", "StorageBucket", {"location": "EU", "uniformBucketLevelAccess": True}),
        (
            "sql",
            "SQLInstance",
            {"databaseVersion": "POSTGRES_16", "region": FLEET_REGION, "settings": {"tier": "db-f1-micro"}},
        ),
        ("sql", "SQLDatabase", {"instanceRef": refers}),
        ("sql", "SQLUser", {"instanceRef": refers, "password": {"value": "sesame"}}),
        ("compute", "ComputeNetwork", {"autoCreateSubnetworks": False, "routingMode": "GLOBAL"}),
        ("compute", "ComputeSubnetwork", {"networkRef": refers, "region": FLEET_REGION, "ipCidrRange": cidr}),
        ("compute", "ComputeAddress", {"location": FLEET_REGION, "description": own}),
        ("compute", "ComputeFirewall", {"networkRef": refers, "allow": [{"protocol": "tcp", "ports": ["80"]}]}),
        ("compute", "ComputeRouter", {"networkRef": refers, "region": FLEET_REGION}),
        ("compute", "ComputeDisk", {"location": f"{FLEET_REGION}-b", "size": 20 + number}),
        ("compute", "ComputeHealthCheck", {"location": "global", "tcpHealthCheck": {"port": 80}}),
        ("compute", "ComputeBackendService", {"location": "global", "healthChecks": [{"healthCheckRef": refers}]}),
        ("compute", "ComputeURLMap", {"location": "global", "defaultService": {"backendServiceRef": refers}}),
        ("pubsub", "PubSubTopic", {"messageRetentionDuration": "3600s"}),
        ("pubsub", "PubSubSubscription", {"topicRef": refers, "ackDeadlineSeconds": 30}),
        ("pubsub", "PubSubSchema", {"type": "AVRO", "definition": '{"type":"string"}', **project}),
        ("iam", "IAMServiceAccount", {"displayName": f"Runner {number}", "resourceID": f"runner-{number}"}),
        ("kms", "KMSKeyRing", {"location": FLEET_REGION}),
        ("kms", "KMSCryptoKey", {"keyRingRef": refers, "purpose": "ENCRYPT_DECRYPT"}),
        ("secretmanager", "SecretManagerSecret", {"replication": {"auto": {}}}),
        ("dns", "DNSManagedZone", {"dnsName": f"{own}.example.com.", "description": own}),
        ("bigquery", "BigQueryDataset", {"location": "EU", "resourceID": f"Set_{number}"}),
        ("bigquery", "BigQueryTable", {"datasetRef": refers, "description": own}),
        ("artifactregistry", "ArtifactRegistryRepository", {"location": FLEET_REGION, "format": "DOCKER"}),
        ("logging", "LoggingLogMetric", {"filter": "severity>=ERROR", **project}),
    ]
    return [manifest(group, kind, own, spec) for group, kind, spec in found]

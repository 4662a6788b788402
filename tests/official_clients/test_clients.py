"""Five of Google's clients, over REST: create, read, list, change, refuse, delete."""

from typing import Any

import pytest
from google.api_core.client_options import ClientOptions
from google.api_core.exceptions import BadRequest, Conflict, NotFound, PreconditionFailed
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery, compute_v1, kms_v1, secretmanager_v1
from google.iam.v1 import iam_policy_pb2, policy_pb2
from google.protobuf.field_mask_pb2 import FieldMask
from google.pubsub_v1 import PublisherClient, SubscriberClient, Topic

PROJECT = "projects/acme"


def anonymous() -> Any:
    """Credentials that say nothing."""
    return AnonymousCredentials()  # type: ignore[no-untyped-call]  # Google's package has types in part


def client(kind: type[Any], url: str) -> Any:
    """A generated client that talks to the local cloud."""
    options = ClientOptions(api_endpoint=url)
    return kind(client_options=options, credentials=anonymous(), transport="rest")


def test_pubsub_topics_and_subscriptions(url: str) -> None:
    publisher, subscriber = client(PublisherClient, url), client(SubscriberClient, url)
    topic = publisher.create_topic(name=f"{PROJECT}/topics/orders")
    subscription = subscriber.create_subscription(name=f"{PROJECT}/subscriptions/billing", topic=topic.name)

    changed = Topic(name=topic.name, labels={"a": "1"})
    updated = publisher.update_topic(topic=changed, update_mask=FieldMask(paths=["labels"]))

    assert dict(updated.labels) == {"a": "1"}
    assert subscription.topic == topic.name
    assert [one.name for one in publisher.list_topics(project=PROJECT)] == [topic.name]
    with pytest.raises(Conflict):
        publisher.create_topic(name=topic.name)
    publisher.delete_topic(topic=topic.name)
    with pytest.raises(NotFound):
        publisher.get_topic(topic=topic.name)


def test_pubsub_policies(url: str) -> None:
    publisher = client(PublisherClient, url)
    topic = publisher.create_topic(name=f"{PROJECT}/topics/orders").name
    policy = publisher.get_iam_policy(request=iam_policy_pb2.GetIamPolicyRequest(resource=topic))
    binding = policy_pb2.Binding(role="roles/pubsub.publisher", members=["user:a@example.com"])
    policy.bindings.append(binding)

    after = publisher.set_iam_policy(request=iam_policy_pb2.SetIamPolicyRequest(resource=topic, policy=policy))

    assert list(after.bindings) == [binding]
    with pytest.raises(Conflict):
        publisher.set_iam_policy(request=iam_policy_pb2.SetIamPolicyRequest(resource=topic, policy=policy))


def test_secrets_and_their_versions(url: str) -> None:
    secrets = client(secretmanager_v1.SecretManagerServiceClient, url)
    automatic = {"replication": {"automatic": {}}, "labels": {"a": "1"}}
    secret = secrets.create_secret(parent=PROJECT, secret_id="s", secret=automatic)
    version = secrets.add_secret_version(parent=secret.name, payload={"data": b"hush"})

    changed = {"name": secret.name, "labels": {"a": "2"}, "etag": secret.etag}
    updated = secrets.update_secret(secret=changed, update_mask=FieldMask(paths=["labels"]))

    assert dict(updated.labels) == {"a": "2"}
    assert secrets.access_secret_version(name=f"{secret.name}/versions/latest").payload.data == b"hush"
    with pytest.raises(Conflict):
        secrets.update_secret(secret=changed, update_mask=FieldMask(paths=["labels"]))
    secrets.disable_secret_version(name=version.name)
    with pytest.raises(BadRequest):
        secrets.access_secret_version(name=version.name)
    assert [one.name for one in secrets.list_secrets(parent=PROJECT)] == [secret.name]
    secrets.delete_secret(name=secret.name)
    with pytest.raises(NotFound):
        secrets.get_secret(name=secret.name)


def test_key_rings_and_keys(url: str) -> None:
    keys = client(kms_v1.KeyManagementServiceClient, url)
    ring = keys.create_key_ring(parent=f"{PROJECT}/locations/global", key_ring_id="ring", key_ring={})
    wanted = {"purpose": kms_v1.CryptoKey.CryptoKeyPurpose.ASYMMETRIC_SIGN, "labels": {"a": "1"}}
    key = keys.create_crypto_key(parent=ring.name, crypto_key_id="key", crypto_key=wanted)

    changed = {"name": key.name, "rotation_period": {"seconds": 100_000}}
    updated = keys.update_crypto_key(crypto_key=changed, update_mask=FieldMask(paths=["rotation_period"]))

    assert updated.rotation_period.total_seconds() == 100_000
    assert keys.get_crypto_key(name=key.name).purpose == kms_v1.CryptoKey.CryptoKeyPurpose.ASYMMETRIC_SIGN
    assert [one.name for one in keys.list_crypto_keys(parent=ring.name)] == [key.name]
    with pytest.raises(Conflict):
        keys.create_key_ring(parent=f"{PROJECT}/locations/global", key_ring_id="ring", key_ring={})
    with pytest.raises(NotFound):
        keys.create_crypto_key(parent=f"{PROJECT}/locations/global/keyRings/none", crypto_key_id="k", crypto_key={})


def test_datasets_and_tables(url: str) -> None:
    options = ClientOptions(api_endpoint=url)
    with bigquery.Client(project="acme", credentials=anonymous(), client_options=options) as warehouse:
        dataset = bigquery.Dataset("acme.ds")
        dataset.location, dataset.description = "EU", "orders"
        made = warehouse.create_dataset(dataset)
        table = warehouse.create_table(bigquery.Table("acme.ds.t", schema=[bigquery.SchemaField("id", "INTEGER")]))

        table.description = "all orders"
        changed = warehouse.update_table(table, ["description"])

        assert (made.location, changed.description) == ("EU", "all orders")
        assert [field.name for field in warehouse.get_table("acme.ds.t").schema] == ["id"]
        assert [one.table_id for one in warehouse.list_tables("acme.ds")] == ["t"]
        with pytest.raises(Conflict):
            warehouse.create_dataset(bigquery.Dataset("acme.ds"))
        warehouse.delete_dataset("acme.ds", delete_contents=True)
        with pytest.raises(NotFound):
            warehouse.get_dataset("acme.ds")


def test_networks_and_subnetworks(url: str) -> None:
    networks, subnetworks = client(compute_v1.NetworksClient, url), client(compute_v1.SubnetworksClient, url)
    everywhere, regional = (
        client(compute_v1.GlobalOperationsClient, url),
        client(compute_v1.RegionOperationsClient, url),
    )
    place = {"project": "acme", "region": "r1"}
    wanted = compute_v1.Network(name="main", auto_create_subnetworks=False)
    # Without `unary`, the client polls at Google itself, whatever its endpoint is.
    operation = networks.insert_unary(project="acme", network_resource=wanted)
    assert everywhere.wait(project="acme", operation=operation.name).status == compute_v1.Operation.Status.DONE
    network = networks.get(project="acme", network="main")
    inner = compute_v1.Subnetwork(name="sub", network=network.self_link, ip_cidr_range="10.0.0.0/16")
    operation = subnetworks.insert_unary(**place, subnetwork_resource=inner)
    regional.wait(**place, operation=operation.name)

    before = subnetworks.get(**place, subnetwork="sub")
    change = compute_v1.Subnetwork(private_ip_google_access=True, fingerprint=before.fingerprint)
    operation = subnetworks.patch_unary(**place, subnetwork="sub", subnetwork_resource=change)
    regional.wait(**place, operation=operation.name)

    after = subnetworks.get(**place, subnetwork="sub")
    assert (after.private_ip_google_access, after.network) == (True, network.self_link)
    assert [one.name for one in networks.list(project="acme")] == ["main"]
    with pytest.raises(Conflict):
        networks.insert_unary(project="acme", network_resource=wanted)
    with pytest.raises(PreconditionFailed):
        subnetworks.patch_unary(**place, subnetwork="sub", subnetwork_resource=change)
    operation = subnetworks.delete_unary(**place, subnetwork="sub")
    regional.wait(**place, operation=operation.name)
    with pytest.raises(NotFound):
        subnetworks.get(**place, subnetwork="sub")

"""Publications, subscriptions and replication slots pass the lifecycle contract of setpoint on a real server."""

from postgres_contract import PostgresContract
from replication_fixtures import PublicationFixture, SlotFixture, SubscriptionFixture


class TestPublication(PostgresContract):
    fixture = PublicationFixture


class TestSubscription(PostgresContract):
    fixture = SubscriptionFixture


class TestReplicationSlot(PostgresContract):
    fixture = SlotFixture

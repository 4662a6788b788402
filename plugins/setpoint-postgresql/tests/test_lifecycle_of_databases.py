"""Schemas and extensions pass the lifecycle contract of setpoint on a real server."""

from postgres_contract import PostgresContract
from postgres_fixtures import ExtensionFixture, SchemaFixture


class TestSchema(PostgresContract):
    fixture = SchemaFixture


class TestExtension(PostgresContract):
    fixture = ExtensionFixture

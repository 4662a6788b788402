"""Functions pass the lifecycle contract of setpoint on a real server."""

from function_fixture import FunctionFixture
from postgres_contract import PostgresContract


class TestFunction(PostgresContract):
    fixture = FunctionFixture

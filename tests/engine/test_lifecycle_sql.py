"""The lifecycle contract on the kinds of Cloud SQL."""

from tests.engine.settings import SettingContract
from tests.kinds.lifecycle_database import DatabaseFixture
from tests.kinds.lifecycle_instance import InstanceFixture
from tests.kinds.lifecycle_user import UserFixture


class TestDatabase(SettingContract):
    fixture = DatabaseFixture


class TestInstance(SettingContract):
    fixture = InstanceFixture


class TestUser(SettingContract):
    fixture = UserFixture

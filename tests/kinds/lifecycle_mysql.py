"""The lifecycle of a MySQL instance, which begins with a default root user."""

from typing import ClassVar, Final

from setpoint.testing import Spec
from tests.engine.settings import Kept, Setting
from tests.kinds.instances import MYSQL
from tests.kinds.lifecycle_google import PROJECT
from tests.kinds.lifecycle_instance import INSTANCES, InstanceFixture


class MysqlFixture(InstanceFixture):
    """The same for MySQL."""

    bare: ClassVar[Spec] = MYSQL
    minimal: ClassVar[Spec] = MYSQL

    @property
    def users(self) -> list[str]:
        """The users of the instance."""
        return self.users_of("some-instance")

    def users_of(self, name: str) -> list[str]:
        """The users of that instance."""
        return [one.name for one in self.cloud.sql.state.instances[f"{PROJECT}/{name}"].users]

    def create_as_another_writer(self, name: str = "some-instance", **labels: str) -> None:
        """Another writer creates an instance, by the same name unless another one is given."""
        settings = {
            "tier": "db-custom-1-3840",
            "edition": "ENTERPRISE",
            "storageAutoResize": True,
            "userLabels": labels,
        }
        names = {"name": name, "databaseVersion": "MYSQL_8_0", "region": "us-central1"}
        body = {**names, "settings": {**settings, "userLabels": labels}}
        assert self.cloud.call("POST", INSTANCES, body).status == 200
        self.finish()


IN_MEMORY: Final = Setting(MysqlFixture)
ON_SQLITE: Final = Setting(MysqlFixture, Kept.ON_SQLITE)

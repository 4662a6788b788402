"""The lifecycle contract on kinds whose ids the service makes, and on parts of other objects."""

from collections.abc import Sequence

from setpoint.testing.claims.claim import LifecycleClaim
from setpoint.testing.contract import LackingPart
from tests.engine.settings import SettingContract
from tests.kinds.lifecycle_variants import FolderFixture, NotificationChannelFixture, RouterNatFixture


class TestNotificationChannel(SettingContract):
    fixture = NotificationChannelFixture


class TestFolder(SettingContract):
    fixture = FolderFixture


class TestRouterNat(SettingContract):
    fixture = RouterNatFixture

    @classmethod
    def cases(cls) -> Sequence[LifecycleClaim | LackingPart]:
        # A creation is an update of the router: what makes updates fail for good makes it fail as well.
        left_out = "after any await, failing, another writer removes the object: it ends as declared"
        return [one for one in super().cases() if one.name != left_out]

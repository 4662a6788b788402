"""The lifecycle contract where a resource or its cookie is kept otherwise than in memory."""

from tests.engine.gadget_fixture import GadgetFixture, StatelessGadgetFixture
from tests.engine.settings import Kept, SettingContract
from tests.kinds.lifecycle_user import UserFixture


class TestGadgetWithItsCookieInTheAnnotation(SettingContract):
    fixture = GadgetFixture
    kept = Kept.IN_MEMORY_AND_ANNOTATION


class TestGadgetOnSqlite(SettingContract):
    fixture = GadgetFixture
    kept = Kept.ON_SQLITE


class TestGadgetInALongRunningProcess(SettingContract):
    fixture = GadgetFixture
    kept = Kept.FOR_EVER


class TestStatelessGadgetInALongRunningProcess(SettingContract):
    fixture = StatelessGadgetFixture
    kept = Kept.FOR_EVER


class TestUserInALongRunningProcess(SettingContract):
    fixture = UserFixture
    kept = Kept.FOR_EVER

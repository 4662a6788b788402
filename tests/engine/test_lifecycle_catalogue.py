"""The lifecycle contract on kinds of the catalogue, one for each way in which a service is written to."""

from tests.engine.settings import SettingContract
from tests.kinds.lifecycle_catalogue import TopicFixture


class TestTopic(SettingContract):
    fixture = TopicFixture

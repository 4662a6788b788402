"""The lifecycle contract on the kinds that live in the policy of another object."""

from tests.engine.settings import SettingContract
from tests.kinds.lifecycle_policies import PartialPolicyFixture, WholePolicyFixture


class TestPartialPolicy(SettingContract):
    fixture = PartialPolicyFixture


class TestWholePolicy(SettingContract):
    fixture = WholePolicyFixture

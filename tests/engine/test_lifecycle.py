"""The lifecycle contract on every kind; those of Cloud SQL are in a module of their own, and the other stores, too."""

import inspect

from setpoint.testing.claims import waiting
from setpoint.testing.contract import CHAPTERS, CLAIMS
from tests.engine import test_lifecycle_kept, test_lifecycle_policies, test_lifecycle_sql
from tests.engine.gadget_fixture import GadgetFixture, StatelessGadgetFixture
from tests.engine.settings import SETTINGS, Setting, SettingContract
from tests.kinds.lifecycle_bucket import BucketFixture


class TestGadget(SettingContract):
    fixture = GadgetFixture


class TestStatelessGadget(SettingContract):
    fixture = StatelessGadgetFixture


class TestBucket(SettingContract):
    fixture = BucketFixture


def test_every_setting_is_played() -> None:
    found = [
        contract
        for module in (inspect.getmodule(TestGadget), test_lifecycle_sql, test_lifecycle_policies, test_lifecycle_kept)
        for name, contract in inspect.getmembers(module, inspect.isclass)
        if issubclass(contract, SettingContract) and name.startswith("Test")
    ]

    assert len(found) == len(SETTINGS)
    assert {Setting(contract.fixture, contract.kept) for contract in found} == set(SETTINGS)


def test_every_claim_is_played() -> None:
    written = {
        name.replace("_", " ")
        for chapter in CHAPTERS
        for name, function in inspect.getmembers(chapter, inspect.iscoroutinefunction)
        if function.__module__ == chapter.__name__ and not name.startswith("_")
    }

    assert written - {claim.name for claim in CLAIMS} == {waiting.bring_target.__name__.replace("_", " ")}


def test_no_two_claims_have_the_same_name() -> None:
    names = [claim.name for claim in CLAIMS]

    assert sorted(names) == sorted(set(names))

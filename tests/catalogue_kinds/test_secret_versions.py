"""Versions of secrets: what becomes of one when its resource is deleted, and texts that are in base64 already."""

import asyncio
from typing import Any

import pytest

from setpoint.catalogue.index import kinds_by_group
from setpoint.engine.step.outcomes import Stopped
from setpoint.testing import contract_harness
from tests.catalogue_kinds.fixtures import fixture_of
from tests.catalogue_kinds.row_fixture import RowFixture


def _fixture() -> RowFixture:
    return fixture_of(next(name for name in kinds_by_group() if name[1] == "SecretManagerSecretVersion"))()


def _versions(made: RowFixture) -> list[Any]:
    objects = made.cloud.google.state.objects
    return [one for key, one in objects.items() if "/versions/" in str(key)]


@pytest.mark.parametrize(
    ("policy", "state"), [("DELETE", "DESTROYED"), ("DISABLE", "DISABLED"), ("ABANDON", "ENABLED")]
)
def test_the_deletion_policy_says_what_becomes_of_a_version(policy: str, state: str) -> None:
    async def play() -> tuple[list[Any], bool]:
        made = _fixture()
        async with contract_harness(made) as harness:
            await harness.settle({**made.minimal, "deletionPolicy": policy})
            await harness.delete()
            await harness.go_on()
            return [one.body["state"] for one in _versions(made)], await harness.is_gone()

    assert asyncio.run(play()) == ([state], True)


def test_a_text_in_base64_is_sent_as_it_is_and_refused_when_it_is_none() -> None:
    async def play(text: str) -> tuple[object, list[Any]]:
        made = _fixture()
        async with contract_harness(made) as harness:
            await harness.apply({**made.minimal, "isSecretDataBase64": True, "secretData": {"value": text}})
            outcome = await harness.step()
            return outcome, [one.hidden for one in _versions(made)]

    outcome, sent = asyncio.run(play("/wA="))
    refused, nothing = asyncio.run(play("not base64!"))

    assert sent == [{"data": "/wA="}], outcome
    assert isinstance(refused, Stopped)
    assert "is not in base64, and the spec says that it is" in str(refused.error)
    assert nothing == []

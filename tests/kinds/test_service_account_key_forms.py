"""What a manifest of a key can ask for besides a new one; and that no private key is shown."""

import asyncio
import json
from typing import Any

import pytest

from setpoint.engine.step.outcomes import Settled, Stopped
from setpoint.errors import ManifestInvalid, RemoteRefused, RemoteUnavailable
from setpoint.testing import EngineHarness, after_any_await
from tests.kinds.key_harness import ACCOUNT, CERTIFICATE, NAME, SECRET, KeyHarness, key_harness, manifest, settled


def test_a_pkcs12_file_is_kept_as_it_is_with_the_id_of_its_key() -> None:
    async def test() -> None:
        async with key_harness() as harness:
            key_id = await settled(harness, privateKeyType="TYPE_PKCS12_FILE")

            entries = await harness.entries()

            assert (len(entries["key.p12"]), json.loads(entries["key-id"])) == (64, {"private_key_id": key_id})
            assert isinstance(await harness.go_on(), Settled)
            assert list(harness.live()) == [key_id]
            await harness.edit({"key.p12": b"", "key-id": entries["key-id"]})
            assert isinstance(await harness.go_on(), Settled)
            assert key_id not in harness.live()

    asyncio.run(test())


def test_an_uploaded_key_has_no_secret_and_is_found_again_by_its_certificate() -> None:
    async def is_killed_after(awaits: int) -> bool:
        async with key_harness() as harness:
            await harness.engine.apply(manifest(publicKeyData=CERTIFICATE, publicKeyType="TYPE_RAW_PUBLIC_KEY"))
            was_killed = await harness.is_killed_after(awaits)

            outcome = await harness.go_on()

            assert isinstance(outcome, Settled), outcome
            assert [one["keyOrigin"] for one in harness.live().values()] == ["USER_PROVIDED"]
            assert await harness.store.get(SECRET) is None
            assert harness.writes == ["POST keys:upload"]
            await harness.engine.delete(NAME)
            await harness.go_on()
            assert harness.live() == {}
            return was_killed

    asyncio.run(after_any_await(is_killed_after, least=3))


def test_a_key_that_exists_is_taken_over_by_its_id_without_a_secret() -> None:
    async def test() -> None:
        async with key_harness() as harness:
            key_id = harness.add()

            assert await settled(harness, resourceID=key_id) == key_id

            assert (list(harness.live()), await harness.store.get(SECRET)) == ([key_id], None)
            harness.remove(key_id)
            outcome = await harness.go_on()
            assert isinstance(outcome, Stopped)
            assert isinstance(outcome.error, ManifestInvalid)
            assert "spec.resourceID" in str(outcome.error)

    asyncio.run(test())


def test_an_abandoned_key_stays_with_its_secret() -> None:
    async def test() -> None:
        async with key_harness() as harness:
            policy = {"cnrm.cloud.google.com/deletion-policy": "abandon"}
            await harness.engine.settle(manifest(annotations=policy))
            key_id = await harness.kept_id()
            await harness.engine.delete(NAME)
            await harness.go_on()

            assert await harness.engine.is_gone(NAME)
            assert (list(harness.live()), await harness.kept_id()) == ([key_id], key_id)

    asyncio.run(test())


class Garbled:
    """A client whose next answer to a verb is another one, or an error."""

    def __init__(self, inner: Any, verb: str, answer: bytes | Exception) -> None:
        self._inner, self._verb, self._answer = inner, verb, answer

    def __getattr__(self, name: str) -> Any:
        if name != self._verb:
            return getattr(self._inner, name)

        async def answered(*_: Any) -> bytes:
            if isinstance(self._answer, Exception):
                raise self._answer
            return self._answer

        return answered


async def _shown(harness: KeyHarness) -> list[str]:
    """What any reader of the store sees of the resource."""
    resource = await harness.engine.resource(NAME)
    return [str(resource.document), str(await harness.engine.events(NAME))]


def test_no_private_key_is_in_a_status_an_event_a_plan_or_an_error() -> None:
    async def test() -> None:
        async with key_harness() as harness:
            await settled(harness)
            credentials = (await harness.entries())["key.json"].decode()
            # What a service repeats in an error is taken out of it.
            error = RemoteRefused(f"forbidden: {credentials}", 403)
            kind = harness.kind(Garbled(harness.google, "get", error))
            refused = await EngineHarness([kind], harness.store, harness.clock).go_on(NAME)
            await harness.store.delete(SECRET)
            shown = [*await _shown(harness), str(refused), str((await harness.engine.plan(NAME)).to_data())]

            assert isinstance(refused, Stopped)
            line = json.loads(credentials)["private_key"].splitlines()[1]
            assert all(line not in text for text in shown)

    asyncio.run(test())


@pytest.mark.parametrize(
    "answer",
    [b'{"name": 5, "privateKeyData": "SECRET"}', b'{"name": "x/y", "privateKeyData": {"SECRET": 1}}', b"SECRET"],
)
def test_an_answer_that_cannot_be_read_is_not_shown_and_the_search_for_its_key_stays_on_record(answer: bytes) -> None:
    async def test() -> None:
        async with key_harness() as harness:
            await harness.engine.apply(manifest())
            kind = harness.kind(Garbled(harness.google, "post", answer))

            outcome = await EngineHarness([kind], harness.store, harness.clock).go_on(NAME)

            assert isinstance(outcome, Stopped)
            assert isinstance(outcome.error, RemoteUnavailable)
            assert all("SECRET" not in text for text in (str(outcome), *await _shown(harness)))
            engine: Any = (await harness.engine.resource(NAME)).status["setpoint"]
            assert engine["location"].startswith(f"{ACCOUNT}/keys/~")

    asyncio.run(test())

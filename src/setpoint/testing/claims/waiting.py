"""What a resource names outside itself: it waits for other resources, and follows Secrets."""

from setpoint.core.values.canonical import canonical
from setpoint.engine.resource import Resource
from setpoint.engine.step.outcomes import Settled, Stopped
from setpoint.engine.step.reconcile import preview
from setpoint.errors import DependencyInvalid, DependencyNotFound, DependencyNotReady
from setpoint.testing.claims.claim import claim
from setpoint.testing.harness import ContractHarness
from setpoint.testing.kind_parts import Part


async def bring_target(harness: ContractHarness) -> Resource:
    """The resource that the spec refers to, there and ready."""
    target = await harness.store.apply(harness.fixture.referring.target)
    return await _make_ready(harness, target)


async def _make_ready(harness: ContractHarness, target: Resource) -> Resource:
    ready = {"type": "Ready", "status": "True", "reason": "UpToDate", "message": ""}
    status = {"conditions": [ready], "observedGeneration": target.generation, **harness.fixture.referring.outputs}
    return await harness.store.update_status(target, status)


async def waits_until_what_it_refers_to_is_there(harness: ContractHarness) -> None:
    await harness.apply(harness.fixture.referring.spec)

    outcome = await harness.step()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, DependencyNotFound)
    assert await harness.ready() == (
        "False",
        "DependencyNotFound",
        f"{harness.fixture.referring.description} is not found",
    )
    assert harness.calls == []


async def waits_until_what_it_refers_to_is_ready(harness: ContractHarness) -> None:
    target = await harness.store.apply(harness.fixture.referring.target)
    await harness.apply(harness.fixture.referring.spec)

    outcome = await harness.step()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, DependencyNotReady)
    assert await harness.ready() == (
        "False",
        "DependencyNotReady",
        f"{harness.fixture.referring.description} is not ready",
    )
    assert harness.calls == []
    await _make_ready(harness, target)
    assert isinstance(await harness.go_on(), Settled)
    assert harness.writes == ["create"]


async def waits_while_what_it_refers_to_has_a_new_spec(harness: ContractHarness) -> None:
    await bring_target(harness)
    await harness.store.apply({**harness.fixture.referring.target, "spec": {"another": "spec"}})
    await harness.apply(harness.fixture.referring.spec)

    outcome = await harness.step()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, DependencyNotReady)
    assert harness.calls == []


async def a_rotated_secret_leaves_the_fast_path_and_reaches_the_service(harness: ContractHarness) -> None:
    await harness.secret({"password": "first"})
    await harness.settle(harness.fixture.with_secret)
    assert await harness.holds_secret("first")
    await harness.secret({"password": "second"})

    outcome = await harness.go_on()
    revision = (await harness.resource()).revision
    await harness.step()

    assert isinstance(outcome, Settled)
    assert await harness.holds_secret("second")
    assert harness.writes == ["create", "update"]
    assert (await harness.resource()).revision == revision


async def an_object_that_is_adopted_is_given_the_secret_once(harness: ContractHarness) -> None:
    await harness.create_outside(harness.fixture.field.first)
    await harness.secret({"password": "first"})

    await harness.settle(harness.fixture.with_secret)
    await harness.go_on()

    assert await harness.holds_secret("first")
    assert harness.writes == ["update"]


async def a_secret_shows_nowhere(harness: ContractHarness) -> None:
    await harness.secret({"password": "hunter2"})
    await harness.settle(harness.fixture.with_secret)
    await harness.secret({"password": "hunter3"})

    plan = await preview(harness.ref, harness.engine)
    outcome = await harness.go_on()

    assert plan.writes
    kept = canonical((await harness.resource()).document).decode()
    shown = (str(plan.to_data()), str(plan), str(outcome), kept, str(await harness.store.events()))
    assert [text for text in shown if "hunter" in text] == []


async def a_missing_key_of_a_secret_is_named(harness: ContractHarness) -> None:
    await harness.secret({"other": "x"})
    await harness.apply(harness.fixture.with_secret)

    outcome = await harness.step()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, DependencyInvalid)
    message = f"key 'password' was not found in Secret {harness.ref.namespace}/s"
    assert await harness.ready() == ("False", "DependencyInvalid", message)


async def waits_until_its_secret_is_there(harness: ContractHarness) -> None:
    await harness.apply(harness.fixture.with_secret)

    outcome = await harness.step()

    assert isinstance(outcome, Stopped)
    message = f"Secret {harness.ref.namespace}/s was not found"
    assert await harness.ready() == ("False", "DependencyNotFound", message)
    await harness.secret({"password": "first"})
    assert isinstance(await harness.go_on(), Settled)


CLAIMS = (
    claim(waits_until_what_it_refers_to_is_there, Part.REFERENCES),
    claim(waits_until_what_it_refers_to_is_ready, Part.REFERENCES),
    claim(waits_while_what_it_refers_to_has_a_new_spec, Part.REFERENCES),
    claim(a_rotated_secret_leaves_the_fast_path_and_reaches_the_service, Part.SECRET),
    claim(an_object_that_is_adopted_is_given_the_secret_once, Part.SECRET, Part.ADOPTION),
    claim(a_secret_shows_nowhere, Part.SECRET),
    claim(a_missing_key_of_a_secret_is_named, Part.SECRET),
    claim(waits_until_its_secret_is_there, Part.SECRET),
)

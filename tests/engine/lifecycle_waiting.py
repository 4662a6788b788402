"""What a resource names outside itself: it waits for other resources, and follows Secrets."""

from setpoint.core.values.canonical import canonical
from setpoint.engine.context import Settled, Stopped
from setpoint.engine.resource import Resource
from setpoint.engine.step.reconcile import preview
from setpoint.errors import DependencyInvalid, DependencyNotFound, DependencyNotReady
from tests.engine.bench import Bench
from tests.engine.claim import claim
from tests.engine.stand import Part


async def bring_target(bench: Bench) -> Resource:
    """The resource that the spec refers to, there and ready."""
    target = await bench.store.apply(bench.stand.referring.target)
    return await _make_ready(bench, target)


async def _make_ready(bench: Bench, target: Resource) -> Resource:
    ready = {"type": "Ready", "status": "True", "reason": "UpToDate", "message": ""}
    told = {"conditions": [ready], "observedGeneration": target.generation, **bench.stand.referring.outputs}
    return await bench.store.update_status(target, told)


async def waits_until_what_it_refers_to_is_there(bench: Bench) -> None:
    await bench.apply(bench.stand.referring.spec)

    outcome = await bench.step()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, DependencyNotFound)
    assert await bench.ready() == ("False", "DependencyNotFound", f"{bench.stand.referring.told} is not found")
    assert bench.stand.calls == []


async def waits_until_what_it_refers_to_is_ready(bench: Bench) -> None:
    target = await bench.store.apply(bench.stand.referring.target)
    await bench.apply(bench.stand.referring.spec)

    outcome = await bench.step()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, DependencyNotReady)
    assert await bench.ready() == ("False", "DependencyNotReady", f"{bench.stand.referring.told} is not ready")
    assert bench.stand.calls == []
    await _make_ready(bench, target)
    assert isinstance(await bench.go_on(), Settled)
    assert bench.stand.writes == ["create"]


async def waits_while_what_it_refers_to_has_a_new_spec(bench: Bench) -> None:
    await bring_target(bench)
    await bench.store.apply({**bench.stand.referring.target, "spec": {"another": "spec"}})
    await bench.apply(bench.stand.referring.spec)

    outcome = await bench.step()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, DependencyNotReady)
    assert bench.stand.calls == []


async def a_rotated_secret_leaves_the_fast_path_and_reaches_the_service(bench: Bench) -> None:
    await bench.secret({"password": "first"})
    await bench.settle(bench.stand.with_secret)
    assert bench.stand.holds_secret("first")
    await bench.secret({"password": "second"})

    outcome = await bench.go_on()
    revision = (await bench.resource()).revision
    await bench.step()

    assert isinstance(outcome, Settled)
    assert bench.stand.holds_secret("second")
    assert bench.stand.writes == ["create", "update"]
    assert (await bench.resource()).revision == revision


async def an_object_that_is_adopted_is_given_the_secret_once(bench: Bench) -> None:
    bench.stand.plant(bench.stand.field.first)
    await bench.secret({"password": "first"})

    await bench.settle(bench.stand.with_secret)
    await bench.go_on()

    assert bench.stand.holds_secret("first")
    assert bench.stand.writes == ["update"]


async def a_secret_shows_nowhere(bench: Bench) -> None:
    await bench.secret({"password": "hunter2"})
    await bench.settle(bench.stand.with_secret)
    await bench.secret({"password": "hunter3"})

    plan = await preview(bench.stand.ref, bench.engine)
    outcome = await bench.go_on()

    assert plan.writes
    kept = canonical((await bench.resource()).document).decode()
    shown = (str(plan.to_data()), str(plan), str(outcome), kept, str(await bench.store.events()))
    assert [text for text in shown if "hunter" in text] == []


async def a_missing_key_of_a_secret_is_named(bench: Bench) -> None:
    await bench.secret({"other": "x"})
    await bench.apply(bench.stand.with_secret)

    outcome = await bench.step()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, DependencyInvalid)
    told = f"key 'password' was not found in Secret {bench.stand.ref.namespace}/s"
    assert await bench.ready() == ("False", "DependencyInvalid", told)


async def waits_until_its_secret_is_there(bench: Bench) -> None:
    await bench.apply(bench.stand.with_secret)

    outcome = await bench.step()

    assert isinstance(outcome, Stopped)
    told = f"Secret {bench.stand.ref.namespace}/s was not found"
    assert await bench.ready() == ("False", "DependencyNotFound", told)
    await bench.secret({"password": "first"})
    assert isinstance(await bench.go_on(), Settled)


CLAIMS = (
    claim(waits_until_what_it_refers_to_is_there),
    claim(waits_until_what_it_refers_to_is_ready),
    claim(waits_while_what_it_refers_to_has_a_new_spec),
    claim(a_rotated_secret_leaves_the_fast_path_and_reaches_the_service, Part.SECRET),
    claim(an_object_that_is_adopted_is_given_the_secret_once, Part.SECRET),
    claim(a_secret_shows_nowhere, Part.SECRET),
    claim(a_missing_key_of_a_secret_is_named, Part.SECRET),
    claim(waits_until_its_secret_is_there, Part.SECRET),
)

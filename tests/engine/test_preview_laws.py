"""Laws of previews with and without a cookie, whatever happened to a resource before."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.decide import Cookie
from setpoint.engine.state import StoredState
from setpoint.engine.step.preview import PreviewFinding
from setpoint.engine.step.reconcile import preview, step
from tests.engine.gadget_fixture import gadget
from tests.engine.test_previews import OBSERVE, REF, PreviewHarness, play

UNMANAGED = {"cnrm.cloud.google.com/unmanaged": "spec.size"}
sizes = st.integers(0, 2)
specs = st.fixed_dictionaries(
    {}, optional={"size": sizes, "mode": st.sampled_from(("auto", "own")), "note": st.just("n")}
)
digests = st.sampled_from(("a" * 64, "b" * 64))
annotations = st.sampled_from(({}, OBSERVE, UNMANAGED))


@st.composite
def situations(draw: st.DrawFn) -> Callable[[PreviewHarness], Awaitable[None]]:
    """A history: what was settled, what the author and another writer changed since, and which cookie is on record."""
    first, then, notes = draw(specs), draw(st.none() | specs), draw(annotations)
    edits: dict[str, Any] = draw(specs)
    revision = draw(st.sampled_from((1, 2)))
    cookie = draw(st.sampled_from(("kept", "none", "forged")) | st.builds(Cookie, digests, digests))

    async def arrange(harness: PreviewHarness) -> None:
        await harness.settle(first)
        if then is not None:
            await harness.store.apply(gadget("g", then, annotations=notes))
        harness.service.objects["g"] |= edits
        harness.kind = replace(harness.kind, revision=revision)
        if isinstance(cookie, Cookie) or cookie == "none":
            await harness.remember(cookie if isinstance(cookie, Cookie) else None)
        elif cookie == "forged":
            await harness.forge()

    return arrange


@given(situations())
def test_nothing_quiet_is_a_difference(arrange: Callable[[PreviewHarness], Awaitable[None]]) -> None:
    async def scenario(harness: PreviewHarness) -> None:
        await arrange(harness)

        found = await harness.preview()

        assert found.whole is not None
        differs = bool(found.whole.writes or found.whole.withheld)
        assert differs == (found.finding in (PreviewFinding.WRITES, PreviewFinding.HELD, PreviewFinding.MASKED))

    play(scenario)


@given(situations(), st.none() | st.builds(Cookie, digests, digests))
def test_the_plan_without_a_cookie_is_the_same_with_any_cookie(
    arrange: Callable[[PreviewHarness], Awaitable[None]], other: Cookie | None
) -> None:
    async def scenario(harness: PreviewHarness) -> None:
        await arrange(harness)
        before = await preview(REF, harness.engine, trust_cookie=False)
        await harness.remember(other)

        assert await preview(REF, harness.engine, trust_cookie=False) == before

    play(scenario)


@given(situations())
def test_the_step_executes_the_preview_and_the_next_step_is_idle(
    arrange: Callable[[PreviewHarness], Awaitable[None]],
) -> None:
    async def scenario(harness: PreviewHarness) -> None:
        await arrange(harness)
        found = await harness.preview()
        calls = len(harness.service.calls)

        await step(REF, harness.engine)

        written = [verb for verb, _ in harness.service.calls[calls:] if verb != "get"]
        assert bool(written) == (found.finding is PreviewFinding.WRITES)
        after = await harness.preview()
        assert after.finding is (
            found.finding if found.finding in (PreviewFinding.MASKED, PreviewFinding.HELD) else PreviewFinding.IN_SYNC
        )
        if found.finding is PreviewFinding.ONE_TIME:
            assert StoredState.of(await harness.resource()).cookie is not None

    play(scenario)

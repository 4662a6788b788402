"""Taking over from another controller: what would be written, and what would keep it away."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.schema.policy import DEFAULT_TO_GCP, IGNORE_UNSPECIFIED, UNMANAGED
from setpoint.engine.resource import Resource
from setpoint.engine.state import COOKIE_ANNOTATION
from setpoint.engine.step.outcomes import Settled
from setpoint.engine.step.preview import PreviewFinding, preview_with_and_without_cookie
from setpoint.engine.step.reconcile import step
from setpoint.migration import ResourceAdoption, preview_adoption, with_annotations
from tests.engine.gadget_fixture import gadget
from tests.engine.gadgets import gadget_ref
from tests.engine.test_previews import REF, PreviewHarness

FOREIGN = {COOKIE_ANNOTATION: "c/Zm9yZWlnbg==/Zm9yZWlnbg=="}


async def _taken(
    spec: dict[str, Any], live: dict[str, Any] | None, **annotations: str
) -> tuple[PreviewHarness, ResourceAdoption]:
    """A resource of theirs, its object, and what we would do."""
    harness = PreviewHarness()
    all_annotations = {**FOREIGN, **{f"cnrm.cloud.google.com/{name}": text for name, text in annotations.items()}}
    await harness.store.apply(gadget("g", spec, annotations=all_annotations))
    if live is not None:
        harness.service.objects["g"] = {"labels": {}, **live}
    before = await harness.store.list()
    found = await preview_adoption(REF, harness.engine)
    assert await harness.store.list() == before
    assert [verb for verb, _ in harness.service.calls if verb != "get"] == []
    return harness, found


def _adopted(spec: dict[str, Any], live: dict[str, Any] | None, **annotations: str) -> ResourceAdoption:
    return asyncio.run(_taken(spec, live, **annotations))[1]


def test_an_object_as_declared_is_adopted_without_a_write() -> None:
    found = _adopted({"size": 1}, {"size": 1, "mode": "auto"})

    assert (found.found.finding, found.writes_nothing, found.keeps) == (PreviewFinding.ONE_TIME, True, {})


@pytest.mark.parametrize(
    ("spec", "live", "fields", "keeps"),
    [
        ({"size": 1}, {"size": 1, "mode": "own"}, ("spec.mode",), {DEFAULT_TO_GCP: "spec.mode"}),
        ({"size": 1}, {"size": 9, "mode": "auto"}, ("spec.size",), {UNMANAGED: "spec.size"}),
        (
            {"size": 1},
            {"size": 9, "mode": "own", "note": "n"},
            ("spec.size", "spec.mode", "spec.note"),
            {UNMANAGED: "spec.size", DEFAULT_TO_GCP: "spec.mode,spec.note"},
        ),
        (
            {"size": 1, "ports": [{"name": "a"}]},
            {"size": 1, "mode": "auto", "ports": [{"name": "a", "number": 1}]},
            ("spec.ports[name=a].number",),
            {DEFAULT_TO_GCP: "spec.ports[name=a].number"},
        ),
    ],
)
def test_fields_that_would_be_written_are_reported_with_annotations_that_keep_them(
    spec: Any, live: Any, fields: tuple[str, ...], keeps: dict[str, str]
) -> None:
    found = _adopted(spec, live)

    assert (found.found.finding, found.found.fields, found.keeps) == (PreviewFinding.WRITES, fields, keeps)
    assert found.to_data()["keep"] == keeps


def test_what_an_author_listed_before_stays_listed() -> None:
    found = _adopted({"size": 1}, {"size": 9, "mode": "auto", "note": "n"}, unmanaged="spec.note")

    assert found.keeps == {UNMANAGED: "spec.note,spec.size"}


def test_nothing_keeps_away_what_has_to_be_made() -> None:
    found = _adopted({"size": 1}, None)

    assert (found.found.finding, found.keeps, found.writes_nothing) == (PreviewFinding.WRITES, {}, False)


def test_a_field_that_cannot_be_listed_is_kept_with_all_that_is_unspecified() -> None:
    extra = [{"name": "a"}, {"name": "b"}]

    found = _adopted({"size": 1}, {"size": 1, "mode": "auto", "ports": extra})

    assert list(found.keeps) in ([DEFAULT_TO_GCP], [IGNORE_UNSPECIFIED])


def test_a_label_is_kept_by_its_name() -> None:
    found = _adopted({"size": 1}, {"size": 1, "mode": "auto", "labels": {"by": "hand"}})

    assert (found.found.fields, found.keeps) == (("metadata.labels.by",), {DEFAULT_TO_GCP: "metadata.labels.by"})


def test_a_missing_object_is_reported() -> None:
    found = asyncio.run(preview_adoption(gadget_ref("none"), PreviewHarness().engine))

    assert (found.found.finding, found.found.trouble) == (PreviewFinding.FAILED, "Gadget default/none is gone")


# --- Laws -------------------------------------------------------------------------------------------------------------

members = {"size": st.integers(0, 2), "mode": st.sampled_from(("auto", "own")), "note": st.just("n")}
some = st.fixed_dictionaries({}, optional={**members, "backups": st.booleans()})


@given(some, some)
def test_with_the_annotations_that_keep_it_nothing_is_written(spec: dict[str, Any], live: dict[str, Any]) -> None:
    async def scenario() -> None:
        harness, found = await _taken(spec, live)
        if found.writes_nothing or not found.keeps:
            assert found.writes_nothing
            return
        resource = await harness.store.get(REF)
        assert resource is not None
        kept = with_annotations(Resource(gadget("g", spec)), found.keeps)
        await harness.store.apply(kept.document)

        assert (await preview_with_and_without_cookie(REF, harness.engine)).plan is not None
        assert isinstance(await step(REF, harness.engine), Settled)
        assert [verb for verb, _ in harness.service.calls if verb != "get"] == []

    asyncio.run(scenario())

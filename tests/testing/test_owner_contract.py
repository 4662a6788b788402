"""The contract of owners finds what it is there for: owners with a defect, each with a claim that fails."""

import asyncio
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, Final

import pytest

from setpoint import kind
from setpoint.core.values.paths import Path, remove_at, set_at
from setpoint.testing import ChildField, OwnerContract, OwnerFixture, OwnerHarness, OwnerPart, owner_harness
from setpoint.testing.owners.owner_contract import OwnerClaim
from tests.plugins.shop.shop_setpoint.display import CONFIG_MAP, DisplayOwner, DisplaySpec
from tests.plugins.test_displays import TestDisplay as Displays

CLAIMS: Final = {one.name: one for one in OwnerContract.claims()}
Found = Mapping[kind.ResourceRef, kind.Resource]


def changed(child: kind.Child, path: str, value: kind.Json) -> kind.Child:
    """The child with another value in that place."""
    document: Any = set_at(child.object, Path.parse(path), value)
    return replace(child, object=document)


class Restless(DisplayOwner):
    """It generates something else with each step."""

    def children(self, resource: kind.Resource, spec: DisplaySpec, found: Found) -> Iterator[kind.Child]:
        for child in super().children(resource, spec, found):
            yield changed(child, "data.title", secrets.token_hex(4)) if child.key.endswith("page") else child


class Anonymous(DisplayOwner):
    """Its children do not say whose they are."""

    def children(self, resource: kind.Resource, spec: DisplaySpec, found: Found) -> Iterator[kind.Child]:
        for child in super().children(resource, spec, found):
            document: Any = remove_at(child.object, Path(("metadata", "ownerReferences")))
            yield replace(child, object=document)


class Undeclared(DisplayOwner):
    """It makes a kind of children that it does not name."""

    makes = (CONFIG_MAP,)  # type: ignore[assignment]  # this is the defect


class Lenient(DisplayOwner):
    """It takes any spec."""

    def spec_of(self, resource: kind.Resource) -> DisplaySpec:
        known = {name: value for name, value in resource.spec.items() if name in DisplaySpec.__struct_fields__}
        return super().spec_of(kind.Resource({**resource.document, "spec": known}))


class Optimist(DisplayOwner):
    """It is ready whatever its widget says."""

    def status_of(self, resource: kind.Resource, children: Mapping[str, kind.Resource]) -> kind.OwnerStatus:
        return kind.OwnerStatus(kind.UP_TO_DATE, {})


class Careless(DisplayOwner):
    """It does without the prices where there are none."""

    def children(self, resource: kind.Resource, spec: DisplaySpec, found: Found) -> Iterator[kind.Child]:
        try:
            yield from super().children(resource, spec, found)
        except kind.DependencyNotFound:
            return


class Blind(DisplayOwner):
    """It does not say what its children are generated from."""

    def sources(self, resource: kind.Resource) -> Sequence[kind.ResourceRef]:
        return ()


class Jealous(DisplayOwner):
    """No field of its children may be edited."""

    def children(self, resource: kind.Resource, spec: DisplaySpec, found: Found) -> Iterator[kind.Child]:
        yield from (replace(child, editable={}) for child in super().children(resource, spec, found))


class Indifferent(DisplayOwner):
    """Every field of its widget may be edited."""

    def children(self, resource: kind.Resource, spec: DisplaySpec, found: Found) -> Iterator[kind.Child]:
        for child in super().children(resource, spec, found):
            editable = {**child.editable, Path.parse("spec.size"): kind.WholeValue()}
            yield replace(child, editable=editable) if child.key.startswith("Widget/") else child


class Forgetful(DisplayOwner):
    """The key that is created once has nothing in it."""

    def completed(self, child: kind.Child) -> kind.JsonObject:
        return child.object


class Overwriting(DisplayOwner):
    """The key that is created once is set anew with every step."""

    def children(self, resource: kind.Resource, spec: DisplaySpec, found: Found) -> Iterator[kind.Child]:
        for child in super().children(resource, spec, found):
            is_key = bool(child.filled_on_create)
            yield replace(child, update_policy=kind.ChildUpdatePolicy.OVERWRITE) if is_key else child


class Unlabelled(DisplayOwner):
    """Its children lost their labels."""

    def children(self, resource: kind.Resource, spec: DisplaySpec, found: Found) -> Iterator[kind.Child]:
        yield from (changed(child, "metadata.labels", {}) for child in super().children(resource, spec, found))


class Talkative(DisplayOwner):
    """Its status has the prices, which may be secret: those of a Secret are."""

    def status_of(self, resource: kind.Resource, children: Mapping[str, kind.Resource]) -> kind.OwnerStatus:
        key = children.get(f"Secret/{resource.ref.name}-key")
        outputs: dict[str, kind.Json] = {"key": None if key is None else key.document.get("data")}
        return kind.OwnerStatus(kind.UP_TO_DATE, outputs)


DEFECTS: Final[Mapping[type[DisplayOwner], str]] = {
    Restless: "steps that find nothing to do write nothing",
    Anonymous: "the first step makes every child and each is its own",
    Undeclared: "the first step makes every child and each is its own",
    Lenient: "a spec that does not fit is refused and nothing is made",
    Optimist: "the readiness follows the child and no child is written",
    Careless: "a missing source stops what needs it and nothing else",
    Blind: "a changed source reaches all that is made of it",
    Jealous: "an edit stays through everything that follows",
    Indifferent: "a managed field is reverted and reported",
    Forgetful: "a create only child that is made anew is reported",
    Overwriting: "a create only child belongs to its editors after creation",
    Unlabelled: "labels are reverted and labels of other writers stay",
    Talkative: "values of secrets are in no plan and no status",
}


def fixture_of(owner: type[DisplayOwner]) -> OwnerFixture:
    """The fixture of displays, with another owner."""
    return replace(Displays.fixture, owner=owner(kind.KindContext({})))


def play(claim: OwnerClaim, fixture: OwnerFixture) -> None:
    """Tries the claim."""

    def open_harness() -> AbstractAsyncContextManager[OwnerHarness]:
        return owner_harness(fixture)

    async def main() -> None:
        await claim.play(open_harness)

    asyncio.run(main())


@pytest.mark.parametrize("owner", DEFECTS, ids=lambda owner: owner.__name__)
def test_an_owner_with_a_defect_is_found(owner: type[DisplayOwner]) -> None:
    with pytest.raises(AssertionError):
        play(CLAIMS[DEFECTS[owner]], fixture_of(owner))


def test_a_part_that_is_neither_there_nor_explained_fails_and_so_does_one_that_is_both() -> None:
    silent = replace(Displays.fixture, without={}, label="")
    contrary = replace(Displays.fixture, without={**Displays.fixture.without, OwnerPart.LABEL: "none"})

    assert silent.problems() == [
        "add `entries`, or OwnerPart.ENTRIES to `without`, with the reason",
        "add `label`, or OwnerPart.LABEL to `without`, with the reason",
    ]
    placeless = replace(Displays.fixture, manifest={**Displays.fixture.manifest, "metadata": {"name": "window"}})
    assert placeless.problems() == ["the Display has no metadata.namespace: write one"]
    assert contrary.problems() == ["it has `label`: take OwnerPart.LABEL out of `without`"]
    contract = type("Contract", (OwnerContract,), {"fixture": silent})
    with pytest.raises(AssertionError):
        contract().test_the_fixture_has_each_part_or_says_why_the_owner_lacks_it()


def test_each_claim_says_something_else_and_most_need_no_part() -> None:
    assert len(CLAIMS) == len(OwnerContract.claims()) > 40
    assert sum(not one.parts for one in CLAIMS.values()) > 20
    assert sum(one.is_long for one in CLAIMS.values()) < len(CLAIMS) / 2


def test_a_field_of_a_child_is_found_by_its_path() -> None:
    assert ChildField("ConfigMap/door", "data.text", "Hi").path == Path(("data", "text"))

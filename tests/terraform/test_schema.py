"""What a schema alone implies for a plan."""

from setpoint.terraform.cty.types import NUMBER, STRING
from setpoint.terraform.cty.values import UNKNOWN, AttributeValues
from setpoint.terraform.framework.schema import (
    Attribute,
    NestedAttributes,
    NestingMode,
    Presence,
    TerraformSchema,
    mark_computed_unknown,
    paths_requiring_replace,
    without_write_only,
)

_PART = {
    "key": Attribute(type=STRING, presence=Presence.REQUIRED, requires_replace=True),
    "made": Attribute(type=NUMBER, presence=Presence.COMPUTED),
    "secret": Attribute(type=STRING, presence=Presence.OPTIONAL, write_only=True),
}


def _schema(nesting: NestingMode) -> TerraformSchema:
    return TerraformSchema(
        attributes={
            "name": Attribute(type=STRING, presence=Presence.REQUIRED, requires_replace=True),
            "id": Attribute(type=STRING, presence=Presence.COMPUTED, use_state_for_unknown=True),
            "count": Attribute(type=NUMBER, presence=Presence.OPTIONAL_COMPUTED),
            "secret": Attribute(type=STRING, presence=Presence.OPTIONAL, write_only=True),
            "part": Attribute(type=NestedAttributes(_PART, nesting), presence=Presence.OPTIONAL),
        }
    )


def _part(key: str = "k", made: int | None = None, secret: str | None = None) -> AttributeValues:
    return {"key": key, "made": made, "secret": secret}


CONFIG: AttributeValues = {"name": "n", "id": None, "count": None, "secret": "s", "part": None}
PRIOR: AttributeValues = {"name": "n", "id": "i", "count": 1, "secret": None, "part": None}


def test_computed_attributes_of_a_new_object_are_unknown_and_write_only_ones_null() -> None:
    found = mark_computed_unknown(_schema(NestingMode.SINGLE), CONFIG, None, CONFIG)

    assert found == {"name": "n", "id": UNKNOWN, "count": UNKNOWN, "secret": None, "part": None}


def test_an_attribute_that_the_author_sets_is_not_computed() -> None:
    config = {**CONFIG, "count": 7}

    assert mark_computed_unknown(_schema(NestingMode.SINGLE), config, None, config)["count"] == 7


def test_a_proposal_without_a_difference_stays_as_it_is() -> None:
    assert mark_computed_unknown(_schema(NestingMode.SINGLE), CONFIG, PRIOR, {**PRIOR, "secret": "s"}) == PRIOR


def test_an_update_keeps_only_computed_attributes_with_use_state_for_unknown() -> None:
    found = mark_computed_unknown(_schema(NestingMode.SINGLE), {**CONFIG, "name": "m"}, PRIOR, {**PRIOR, "name": "m"})

    assert (found["id"], found["count"]) == ("i", UNKNOWN)


def test_computed_attributes_of_nested_objects_are_unknown() -> None:
    given: AttributeValues = {**CONFIG, "part": _part(secret="s")}
    listed: AttributeValues = {**CONFIG, "part": (_part(secret="s"), UNKNOWN)}
    mapped: AttributeValues = {**CONFIG, "part": {"x": _part(secret="s"), "y": None}}
    made: AttributeValues = {"key": "k", "made": UNKNOWN, "secret": None}

    assert mark_computed_unknown(_schema(NestingMode.SINGLE), given, None, given)["part"] == made
    assert mark_computed_unknown(_schema(NestingMode.LIST), listed, None, listed)["part"] == (made, UNKNOWN)
    assert mark_computed_unknown(_schema(NestingMode.SET), listed, None, listed)["part"] == (made, UNKNOWN)
    assert mark_computed_unknown(_schema(NestingMode.MAP), mapped, None, mapped)["part"] == {"x": made, "y": None}
    assert (
        mark_computed_unknown(_schema(NestingMode.MAP), {**CONFIG, "part": UNKNOWN}, None, {**CONFIG, "part": UNKNOWN})[
            "part"
        ]
        == UNKNOWN
    )


def test_a_change_that_requires_replacement_is_named_by_its_path() -> None:
    before, after = _part("a"), _part("b")

    assert paths_requiring_replace(_schema(NestingMode.SINGLE), PRIOR, PRIOR) == ()
    assert paths_requiring_replace(_schema(NestingMode.SINGLE), PRIOR, {**PRIOR, "name": UNKNOWN, "count": 2}) == (
        ("name",),
    )
    assert _replaced(NestingMode.SINGLE, before, after) == (("part", "key"),)
    assert _replaced(NestingMode.SINGLE, before, None) == ()
    assert _replaced(NestingMode.LIST, (before, before), (before, after, after)) == (("part", 1, "key"),)
    assert _replaced(NestingMode.MAP, {"x": before, "y": before}, {"x": after}) == (("part", "x", "key"),)
    assert _replaced(NestingMode.SET, (before,), (after,)) == ()


def _replaced(nesting: NestingMode, before: object, after: object) -> tuple[tuple[str | int, ...], ...]:
    return paths_requiring_replace(_schema(nesting), {**PRIOR, "part": before}, {**PRIOR, "part": after})  # type: ignore[dict-item]  # any


def test_nested_write_only_attributes_are_not_stored() -> None:
    secret = _part(secret="s")

    assert without_write_only(_schema(NestingMode.LIST), {**CONFIG, "part": (secret, UNKNOWN)})["part"] == (
        _part(),
        UNKNOWN,
    )
    assert without_write_only(_schema(NestingMode.MAP), {**CONFIG, "part": {"x": secret, "y": None}})["part"] == {
        "x": _part(),
        "y": None,
    }

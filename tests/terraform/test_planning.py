"""What a schema alone says of a plan."""

from setpoint.terraform.cty_types import NUMBER, STRING
from setpoint.terraform.cty_values import UNKNOWN, Values
from setpoint.terraform.planning import proposal, replacing_paths, stored_form
from setpoint.terraform.schema import Attribute, Nested, Nesting, Presence, Schema

_PART = {
    "key": Attribute(type=STRING, presence=Presence.REQUIRED, replaces=True),
    "made": Attribute(type=NUMBER, presence=Presence.COMPUTED),
    "secret": Attribute(type=STRING, presence=Presence.OPTIONAL, write_only=True),
}


def _schema(nesting: Nesting) -> Schema:
    return Schema(
        attributes={
            "name": Attribute(type=STRING, presence=Presence.REQUIRED, replaces=True),
            "id": Attribute(type=STRING, presence=Presence.COMPUTED, stays=True),
            "count": Attribute(type=NUMBER, presence=Presence.OPTIONAL_COMPUTED),
            "secret": Attribute(type=STRING, presence=Presence.OPTIONAL, write_only=True),
            "part": Attribute(type=Nested(_PART, nesting), presence=Presence.OPTIONAL),
        }
    )


def _part(key: str = "k", made: int | None = None, secret: str | None = None) -> Values:
    return {"key": key, "made": made, "secret": secret}


CONFIG: Values = {"name": "n", "id": None, "count": None, "secret": "s", "part": None}
PRIOR: Values = {"name": "n", "id": "i", "count": 1, "secret": None, "part": None}


def test_what_a_new_object_computes_is_unknown_and_what_is_write_only_is_nowhere() -> None:
    found = proposal(_schema(Nesting.SINGLE), CONFIG, None, CONFIG)

    assert found == {"name": "n", "id": UNKNOWN, "count": UNKNOWN, "secret": None, "part": None}


def test_what_the_author_gave_is_not_computed() -> None:
    config = {**CONFIG, "count": 7}

    assert proposal(_schema(Nesting.SINGLE), config, None, config)["count"] == 7


def test_where_nothing_differs_everything_stays() -> None:
    assert proposal(_schema(Nesting.SINGLE), CONFIG, PRIOR, {**PRIOR, "secret": "s"}) == PRIOR


def test_in_an_update_only_what_stays_is_still_known() -> None:
    found = proposal(_schema(Nesting.SINGLE), {**CONFIG, "name": "m"}, PRIOR, {**PRIOR, "name": "m"})

    assert (found["id"], found["count"]) == ("i", UNKNOWN)


def test_parts_of_an_object_are_computed_too() -> None:
    given: Values = {**CONFIG, "part": _part(secret="s")}
    listed: Values = {**CONFIG, "part": (_part(secret="s"), UNKNOWN)}
    mapped: Values = {**CONFIG, "part": {"x": _part(secret="s"), "y": None}}
    made: Values = {"key": "k", "made": UNKNOWN, "secret": None}

    assert proposal(_schema(Nesting.SINGLE), given, None, given)["part"] == made
    assert proposal(_schema(Nesting.LIST), listed, None, listed)["part"] == (made, UNKNOWN)
    assert proposal(_schema(Nesting.SET), listed, None, listed)["part"] == (made, UNKNOWN)
    assert proposal(_schema(Nesting.MAP), mapped, None, mapped)["part"] == {"x": made, "y": None}
    assert (
        proposal(_schema(Nesting.MAP), {**CONFIG, "part": UNKNOWN}, None, {**CONFIG, "part": UNKNOWN})["part"]
        == UNKNOWN
    )


def test_a_change_that_takes_a_new_object_is_named_by_its_place() -> None:
    before, after = _part("a"), _part("b")

    assert replacing_paths(_schema(Nesting.SINGLE), PRIOR, PRIOR) == ()
    assert replacing_paths(_schema(Nesting.SINGLE), PRIOR, {**PRIOR, "name": UNKNOWN, "count": 2}) == (("name",),)
    assert _replaced(Nesting.SINGLE, before, after) == (("part", "key"),)
    assert _replaced(Nesting.SINGLE, before, None) == ()
    assert _replaced(Nesting.LIST, (before, before), (before, after, after)) == (("part", 1, "key"),)
    assert _replaced(Nesting.MAP, {"x": before, "y": before}, {"x": after}) == (("part", "x", "key"),)
    assert _replaced(Nesting.SET, (before,), (after,)) == ()


def _replaced(nesting: Nesting, before: object, after: object) -> tuple[tuple[str | int, ...], ...]:
    return replacing_paths(_schema(nesting), {**PRIOR, "part": before}, {**PRIOR, "part": after})  # type: ignore[dict-item]  # any


def test_what_is_stored_has_nothing_that_is_write_only() -> None:
    secret = _part(secret="s")

    assert stored_form(_schema(Nesting.LIST), {**CONFIG, "part": (secret, UNKNOWN)})["part"] == (_part(), UNKNOWN)
    assert stored_form(_schema(Nesting.MAP), {**CONFIG, "part": {"x": secret, "y": None}})["part"] == {
        "x": _part(),
        "y": None,
    }

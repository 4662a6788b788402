"""Selectors and templates that are wrong: the message says where, and what may be meant."""

from collections.abc import Callable
from typing import Annotated

import pytest
from msgspec import Struct

from setpoint.core.schema.shape import Keyed, shape_of
from setpoint.core.values.json_types import Json
from setpoint.engine.resource import Resource
from setpoint.errors import ManifestInvalid, UnknownField
from setpoint.library.selecting.custom_columns import CustomColumns, sorted_by
from setpoint.library.selecting.field_selector import FieldSelector
from setpoint.library.selecting.json_path import JsonPathTemplate
from setpoint.library.selecting.label_selector import LabelSelector


@pytest.mark.parametrize(
    ("parse", "text", "problem"),
    [
        (LabelSelector.parse, "", "character 1: there is no label"),
        (LabelSelector.parse, "a=b,", "character 5: the key of a label is missing"),
        (LabelSelector.parse, "a in (b", "character 8: ')' is missing"),
        (LabelSelector.parse, "a>1", "character 2: '>' is not expected here"),
        (LabelSelector.parse, "a=b c=d", "character 5: ',' is missing"),
        (FieldSelector.parse, "state=failed,stat=x", "character 14: there is no field 'stat'; did you mean state?"),
        (FieldSelector.parse, "state=faild", "no state is 'faild'; did you mean 'failed'?"),
        (FieldSelector.parse, "reason=UpToDat", "did you mean 'UpToDate'?"),
        (FieldSelector.parse, "kind", "'kind' compares nothing: write FIELD=VALUE"),
        (FieldSelector.parse, "spec.a[=x", "the path 'spec.a[' breaks off at character 8"),
        (JsonPathTemplate.parse, "{.a", "character 1: '}' is missing"),
        (JsonPathTemplate.parse, "{.a..}", "ends with '..': name a field after it"),
        (JsonPathTemplate.parse, "{.a[0:2:0]}", "the slice [0:2:0] has a step of 0: it has to be above zero"),
        (JsonPathTemplate.parse, "{.a[0:b]}", "the path 'a[0:b]' breaks off at character 4"),
        (JsonPathTemplate.parse, "x{end}", "character 2: there is no {range} to end"),
        (JsonPathTemplate.parse, "{range .a[*]}x", "{end} is missing"),
        (JsonPathTemplate.parse, '{"a" "b"}', 'a text has to end with "'),
        (CustomColumns.parse, "A:.a,B", "column 2, 'B': write HEADER:PATH"),
        (CustomColumns.parse, "A:.a[", "column 1, 'A:.a['"),
        (CustomColumns.parse, "A:{.a", "column 1, 'A:{.a': write a path such as .spec.region, or {.spec.region}"),
    ],
)
def test_the_message_says_where(parse: Callable[[str], object], text: str, problem: str) -> None:
    with pytest.raises(ManifestInvalid) as caught:
        parse(text)

    assert problem in str(caught.value)


def _resource(name: str, **spec: object) -> Resource:
    document: dict[str, object] = {"apiVersion": "a/v1", "kind": "Shop", "metadata": {"name": name}, "spec": spec}
    return Resource(document)  # type: ignore[arg-type] # made of JSON


def test_numbers_come_before_texts_and_nothing_comes_last() -> None:
    found = sorted_by(
        [_resource("d"), _resource("c", size="x"), _resource("b", size=10), _resource("a", size=9)], ".spec.size"
    )

    assert [one.ref.name for one in found] == ["a", "b", "c", "d"]


@pytest.mark.parametrize("text", [".spec.siz", "{.spec.siz}"])
def test_a_field_that_none_has_is_no_order(text: str) -> None:
    shops = [_resource("b", size=10), _resource("a", size=9)]

    with pytest.raises(ManifestInvalid, match="none of these 2 resources has the field"):
        sorted_by(shops, text)
    assert sorted_by(shops[:1], text) == shops[:1]
    assert sorted_by([], text) == []


class Entry(Struct):
    name: str
    value: str


class Spec(Struct):
    region: str
    labels: dict[str, str]
    entries: Annotated[list[Entry], Keyed("name")]
    ports: list[Entry]
    anything: Json


class Shop(Struct):
    spec: Spec


_SHOP = shape_of(Shop)


@pytest.mark.parametrize(
    "path",
    [
        "spec.region",
        "spec.labels.team",
        "spec.entries[name=a].value",
        "spec.entries[0].value",
        "spec.ports[name=a].value",
        "spec.anything.below[0]",
        "metadata.labels.team",
        "status.whatever",
    ],
)
def test_a_path_that_a_kind_has_is_known(path: str) -> None:
    FieldSelector.parse(f"{path}=a").require_known([_SHOP])


@pytest.mark.parametrize("path", ["spec.regoin", "spec.entries[name=a].valeu", "spec.ports[0].valeu"])
def test_a_path_that_no_kind_has_is_refused_with_the_nearest(path: str) -> None:
    selector = FieldSelector.parse(f"name=a,{path}!=b")

    with pytest.raises(UnknownField, match=r"character 8: no kind here has a field .*; did you mean spec\."):
        selector.require_known([_SHOP])
    selector.require_known([])


def test_fields_are_compared_with_wildcards() -> None:
    shop = _resource("web-1", region="europe-west1")

    assert FieldSelector.parse("name=web-*,spec.region!=us-*,kind=SHOP").matches(shop)
    assert not FieldSelector.parse("spec.region=europe").matches(shop)
    assert FieldSelector.parse("spec.zone=").matches(shop)
    assert FieldSelector.parse("state=not looked at").matches(shop)


def test_an_element_of_a_list_is_named_in_brackets() -> None:
    shop = _resource("web", rules=[{"port": 80, "action": "allow"}], region="eu-1")

    assert FieldSelector.parse("spec.rules[port=80].action=allow,spec.region=eu-[12]").matches(shop)
    assert FieldSelector.parse("spec.rules[port=81].action!=allow,name=web").matches(shop)
    assert not FieldSelector.parse("spec.rules[0].action=deny").matches(shop)

"""Selectors and templates that are wrong: the message says where, and what may be meant."""

from collections.abc import Callable

import pytest

from setpoint.engine.resource import Resource
from setpoint.errors import ManifestInvalid
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


def test_fields_are_compared_with_wildcards() -> None:
    shop = _resource("web-1", region="europe-west1")

    assert FieldSelector.parse("name=web-*,spec.region!=us-*,kind=SHOP").matches(shop)
    assert not FieldSelector.parse("spec.region=europe").matches(shop)
    assert FieldSelector.parse("spec.zone=").matches(shop)
    assert FieldSelector.parse("state=not looked at").matches(shop)

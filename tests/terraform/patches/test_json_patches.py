"""The examples in the appendix of RFC 6902, and what a field manager owns as an empty object."""

from typing import Any

import pytest

from setpoint.core.values.paths import Path
from setpoint.errors import ManifestInvalid
from setpoint.kinds.kubernetes_object.managed_fields import owners_at
from setpoint.objects.json_patches import apply_json_patch, parse_json_patch

# The document, the operation, and the result; None for an error.
EXAMPLES: list[tuple[Any, dict[str, Any], Any]] = [
    ({"foo": "bar"}, {"op": "add", "path": "/baz", "value": "qux"}, {"foo": "bar", "baz": "qux"}),
    ({"foo": ["bar", "baz"]}, {"op": "add", "path": "/foo/1", "value": "qux"}, {"foo": ["bar", "qux", "baz"]}),
    ({"baz": "qux", "foo": "bar"}, {"op": "remove", "path": "/baz"}, {"foo": "bar"}),
    ({"foo": ["bar", "qux", "baz"]}, {"op": "remove", "path": "/foo/1"}, {"foo": ["bar", "baz"]}),
    ({"baz": "qux"}, {"op": "replace", "path": "/baz", "value": "boo"}, {"baz": "boo"}),
    (
        {"foo": {"waldo": "fred"}, "qux": {"corge": "grault"}},
        {"op": "move", "from": "/foo/waldo", "path": "/qux/thud"},
        {"foo": {}, "qux": {"corge": "grault", "thud": "fred"}},
    ),
    (
        {"foo": ["all", "grass", "cows"]},
        {"op": "move", "from": "/foo/1", "path": "/foo/2"},
        {"foo": ["all", "cows", "grass"]},
    ),
    ({"baz": "qux"}, {"op": "test", "path": "/baz", "value": "qux"}, {"baz": "qux"}),
    ({"baz": "qux"}, {"op": "test", "path": "/baz", "value": "bar"}, None),
    ({"foo": "bar"}, {"op": "add", "path": "/baz/bat", "value": "qux"}, None),
    ({"/": 9, "~1": 10}, {"op": "test", "path": "/~01", "value": 10}, {"/": 9, "~1": 10}),
    ({"/": 9, "~1": 10}, {"op": "test", "path": "/~01", "value": "10"}, None),
    ({"foo": ["bar"]}, {"op": "add", "path": "/foo/-", "value": ["abc", "def"]}, {"foo": ["bar", ["abc", "def"]]}),
    ({"foo": ["bar"]}, {"op": "add", "path": "/foo/2", "value": "x"}, None),
    ({"foo": ["bar"]}, {"op": "remove", "path": "/foo/-"}, None),
    ({"foo": {"a": 1}}, {"op": "move", "from": "/foo", "path": "/foo/b"}, None),
    ({"a": True}, {"op": "test", "path": "/a", "value": 1}, None),
]


@pytest.mark.parametrize(("document", "operation", "result"), EXAMPLES)
def test_the_examples_of_the_rfc_hold(document: Any, operation: dict[str, Any], result: Any) -> None:
    operations = parse_json_patch([operation])

    if result is None:
        with pytest.raises(ManifestInvalid, match="operation 1"):
            apply_json_patch(document, operations)
    else:
        assert apply_json_patch(document, operations).tree == result


def _entry(manager: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {"manager": manager, "operation": "Update", "fieldsV1": fields}


def test_an_object_is_owned_as_a_whole_only_if_no_manager_has_a_field_of_it() -> None:
    entries = [_entry("one", {"f:spec": {}}), _entry("two", {"f:spec": {"f:a": {".": {}, "f:b": {}}}})]
    divided: dict[str, Any] = {"metadata": {"managedFields": entries}, "spec": {"a": {"b": 1}, "c": 2}}
    atomic: dict[str, Any] = {"metadata": {"managedFields": entries[:1]}, "spec": {"a": {"b": 1}}}

    assert [one.manager for one in owners_at(divided, Path.parse("spec.a"))] == ["two"]
    assert owners_at(divided, Path.parse("spec.c")) == ()
    assert [one.manager for one in owners_at(divided, Path.parse("spec"))] == ["one", "two"]
    assert [one.manager for one in owners_at(atomic, Path.parse("spec.a.b"))] == ["one"]

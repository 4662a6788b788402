"""Secret values in whole documents: found by type, in Secrets, in texts and in copies."""

import json
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Struct, UnsetType

from setpoint.core.redaction import LAST_APPLIED, REDACTED
from setpoint.core.schema.shape import Keyed, Mark, shape_of
from setpoint.core.secret_fields import NO_TYPES, SecretFields, redacted_at, secret_texts, without_texts
from setpoint.core.values.paths import Path


class KeyReference(Struct):
    name: str
    key: str


class ValueFrom(Struct):
    secretKeyRef: KeyReference


class Password(Struct):
    value: str | UnsetType = UNSET
    valueFrom: ValueFrom | UnsetType = UNSET


class Account(Struct):
    name: str
    password: Annotated[Password | UnsetType, Mark.WRITE_ONLY] = UNSET


class Spec(Struct):
    size: int = 0
    password: Annotated[Password | UnsetType, Mark.WRITE_ONLY] = UNSET
    key: Annotated[str | UnsetType, Mark.WRITE_ONLY] = UNSET
    accounts: Annotated[list[Account] | UnsetType, Keyed("name")] = UNSET
    others: list[Account] | UnsetType = UNSET
    byName: dict[str, Account] | UnsetType = UNSET


class Tree(Struct):
    spec: Spec


class Policy(Struct):
    days: int = 0


class Manifest(Struct):
    manifest: dict[str, Any] | str
    tokenPolicy: Policy | UnsetType = UNSET
    waitFor: dict[str, Any] | UnsetType = UNSET


class ManifestTree(Struct):
    spec: Manifest


class Rule(Struct):
    name: str
    tokenPolicy: Policy | UnsetType = UNSET


class OpenSpec(Struct):
    """Without a write-only field."""

    size: int | None = None
    tokenPolicy: Policy | None | UnsetType = UNSET
    rules: list[Rule] | UnsetType = UNSET
    byName: Annotated[list[Rule] | UnsetType, Keyed("name")] = UNSET
    labels: dict[str, str] | UnsetType = UNSET


class OpenTree(Struct):
    spec: OpenSpec


FIELDS = SecretFields(
    {
        ("x.dev", "Thing"): shape_of(Tree),
        ("x.dev", "Object"): shape_of(ManifestTree),
        ("x.dev", "Open"): shape_of(OpenTree),
    }
)
SECRET: dict[str, Any] = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
HIDDEN_SECRET = {**SECRET, "data": {"a": REDACTED}}
REFERENCE = {"secretKeyRef": {"name": "s", "key": "k"}}


def thing(spec: Any, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "x.dev/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec, **more}


def object_of(manifest: Any, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "x.dev/v1", "kind": "Object", "spec": {"manifest": manifest, **more}}


@pytest.mark.parametrize(
    ("spec", "redacted"),
    [
        ({"size": 1, "password": {"value": "hunter2"}}, {"size": 1, "password": {"value": REDACTED}}),
        ({"key": "hunter2"}, {"key": REDACTED}),
        (
            {"accounts": [{"name": "a", "password": {"value": "hunter2"}}]},
            {"accounts": [{"name": "a", "password": {"value": REDACTED}}]},
        ),
        (
            {"others": ({"name": "a", "password": {"value": "hunter2"}},)},
            {"others": [{"name": "a", "password": {"value": REDACTED}}]},
        ),
        (
            {"byName": {"a": {"name": "a", "password": {"value": "hunter2"}}}},
            {"byName": {"a": {"name": "a", "password": {"value": REDACTED}}}},
        ),
        # A reference is shown; what does not fit its type may be a password in the wrong place.
        ({"password": {"value": None, "valueFrom": REFERENCE, "x": "hunter2"}}, None),
        ({"password": {"valueFrom": {"secretKeyRef": {"name": "s", "secret": "hunter2"}}}}, None),
        ({"password": {"valueFrom": {"secretKeyRef": "hunter2"}}}, None),
        ({"password": "hunter2"}, {"password": REDACTED}),
        ({"password": ["hunter2"]}, {"password": REDACTED}),
        ({"accounts": "hunter2"}, {"accounts": REDACTED}),
        ({"accounts": {"password": "hunter2"}}, {"accounts": REDACTED}),
        ("hunter2", REDACTED),
        # A typing error in a name.
        ({"pasword": {"value": "hunter2"}, "accounts": [{"pw": "hunter2"}]}, None),
    ],
)
def test_write_only_fields_are_redacted(spec: Any, redacted: Any) -> None:
    found: Any = FIELDS.redacted(thing(spec))["spec"]

    if redacted is not None:
        assert found == redacted
    assert "hunter2" not in json.dumps(found)


@pytest.mark.parametrize(
    "document",
    [
        thing({"size": 1, "password": {"valueFrom": REFERENCE}}, status={"password": "shown"}),
        thing({"size": None, "key": None, "password": None}),
        thing({}),
        object_of({}, unknown={"field": "shown"}),
        # References to resources and to Secrets.
        {"kind": "Thing", "name": "t", "path": "spec.size", "token": "shown", "spec": None},
        object_of({"kind": "A", "a": {"$ref": {"kind": "Thing", "name": "t", "path": "status.a"}}}),
        {"status": {"owner": {"kind": "Secret", "name": "s", "key": "k"}}},
        {"kind": "ConfigMap", "data": {"password": "shown"}},
        {**SECRET, "type": "Opaque", "data": None},
        object_of({"kind": "ConfigMap"}, waitFor={"fieldValue": {"data.a": "b"}}),
        object_of("kind: ConfigMap"),
        {**thing({}), "metadata": {"annotations": {"note": "kind: of: thing", "kind": "a kind", LAST_APPLIED: "{}"}}},
        {"metadata": "none", "items": [1, "a", None]},
        {
            "metadata": {
                "annotations": {"copy": '{"kind": "ConfigMap", "data": {"a": "b"}}', "metadata": "about: [data"}
            }
        },
        {"metadata": {"annotations": {"copy": '{"kind": "of", "note": "of data"}', "data": '{"a": "the data of it"}'}}},
        {"metadata": {"annotations": {"copy": '{"kind": "ExternalSecret", "spec": {"data": []}}'}}},
        {"metadata": {"annotations": {"copy": '{"kind": "List", "items": [1, {"kind": "Pod", "spec": {}}]}'}}},
        {"metadata": {"annotations": ["kind"], "name": 1}},
        {"metadata": {"annotations": {"kind": 1}}},
        {"kind": "ConfigMap", "metadata": {"labels": {"manifest": "a"}}, "data": {"manifest": "kind: A"}},
    ],
)
def test_a_document_without_secret_values_is_returned_as_it_is(document: Any) -> None:
    assert FIELDS.redacted(document) is document


@pytest.mark.parametrize(
    "secret",
    [
        {**SECRET, "data": {"a": "hunter2"}},
        {**SECRET, "stringData": {"a": "hunter2"}},
        {**SECRET, "stringData": "hunter2"},
        {**SECRET, "metadata": {"name": "s"}, "stringDatta": {"a": "hunter2"}},
        {**SECRET, "apiVersion": "x/v1", "kind": " SECRET ", "data": {"a": {"b": "hunter2"}}},
        {"kind": "List", "items": [{**SECRET, "data": {"a": "hunter2"}}]},
        [{**SECRET, "data": {"a": "hunter2"}}],
        {"kind": "SecretList", "items": [{"data": {"a": "hunter2"}}]},
        {"kind": "ThingList", "items": [{"spec": {"key": "hunter2"}}], "metadata": {}},
        thing({"password": {"value": "hunter2"}}),
        {**SECRET, "metadata": {"annotations": {LAST_APPLIED: '{"kind":"Secret","data":{"a":"hunter2"}}'}}},
        {"kind": "ConfigMap", "metadata": {"annotations": {"copy": json.dumps(thing({"key": "hunter2"}))}}},
        {"kind": "ConfigMap", "metadata": {"annotations": {"copy": "- kind: Secret\n  data: {a: hunter2}"}}},
        # A copy with a typing error.
        {"kind": "ConfigMap", "metadata": {"annotations": {"copy": '{"kynd": "Secret", "data": {"kind": "hunter2"}}'}}},
        {"kind": "ConfigMap", "metadata": {"annotations": {"copy": '{"kind": "Sec ret", "data": {"a": "hunter2"}}'}}},
        {"kind": "ConfigMap", "metadata": {"annotations": {"copy": '{"kind": "Secert", "data": {"a": "hunter2"}}'}}},
        {"kind": "ConfigMap", "metadata": {"annotations": {"copy": '{"ki nd": "Secret", "data": {"a": "hunter2"}}'}}},
        {"kind": "ConfigMap", "metadata": {"annotations": {"copy": '{"kind": "Th ing", "spec": {"key": "hunter2"}}'}}},
        {"kind": "ConfigMap", "metadata": {"annotations": {"copy": '[{"kind": 1, "spec": {"key": "hunter2"}}]'}}},
        {"kind": "ConfigMap", "metadata": {"annotations": {"copy": '{"kind":"List","items":[{"spec":"hunter2"}]}'}}},
        # A manifest with a typing error, as a map and as text.
        {"kynd": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "hunter2"}},
        {"kind": "Sec ret", "metadata": {"name": "s"}, "stringData": {"a": "hunter2"}},
        object_of("kind*a: Secret\nmetadata: {name: s}\nstringData: {a: hunter2}"),
        object_of("kind*a: Secret\nmetadata: {name: s}\ndata: {a: hunter2}"),
        object_of("kind: Secert\nmetadata: {name: s}\ndata: {a: hunter2}"),
        # Not readable: it may be a copy that was cut off.
        {"kind": "ConfigMap", "metadata": {"annotations": {"copy": "ki{nd: Secret\nstringData: {a: hunter2}"}}},
        {"kind": "ConfigMap", "metadata": {"annotations": {LAST_APPLIED: "{hunter2"}}},
        {"kind": "ConfigMap", "metadata": {"annotations": {"copy": '{"kind": "Secret", "a": "hunter2'}}},
    ],
)
def test_secrets_and_copies_of_them_are_redacted_at_any_depth(secret: Any) -> None:
    within = object_of(secret, waitFor={"fieldValue": {"data.a": "hunter2"}, "timeout": "5m"})

    for document in (secret if isinstance(secret, dict) else {"items": secret}, within):
        found = FIELDS.redacted(document)

        assert "hunter2" not in json.dumps(found)
        assert found is not document
    found_wait: Any = FIELDS.redacted(within)["spec"]
    assert found_wait["waitFor"] == {"fieldValue": REDACTED, "timeout": "5m"}


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("kind: Secret\ndata: {a: hunter2} # hunter2", "kind: Secret\ndata:\n  a: (redacted)\n"),
        ('"\\x6bind": "\\x53ecret"\nstringData: {a: hunter2}', "kind: Secret\nstringData:\n  a: (redacted)\n"),
        ("kind: A\n---\n- kind: Secret\n  data: {a: 1}", "kind: A\n---\n- kind: Secret\n  data:\n    a: (redacted)\n"),
        # Not one that is understood: it may be anything.
        ("# hunter2", REDACTED),
        ("hunter2", REDACTED),
        ("{kind: Secret, data: {a: hunter2}", REDACTED),
        ("{kind: Secret, data: {a: hunter2}, data: {}}", REDACTED),
    ],
)
def test_a_manifest_in_text_is_redacted(text: str, redacted: str) -> None:
    assert FIELDS.redacted(object_of(text)) == object_of(redacted)
    assert FIELDS.redacted(object_of(text, waitFor={"fieldValue": {"a": "b"}})) == object_of(
        redacted, waitFor={"fieldValue": REDACTED}
    )


@pytest.mark.parametrize("text", ["kind: Secret\ndata: {a: hunter2}", "{kind: Secret, data: {a: hunter2}"])
@pytest.mark.parametrize(
    ("kind", "member"), [(1, "manifest"), ("Objet", "manifest"), ("Object", "mani]fest"), ("Object", "mainfest")]
)
def test_a_manifest_in_text_is_redacted_in_spite_of_a_typing_error(kind: Any, member: str, text: str) -> None:
    found = FIELDS.redacted({"apiVersion": "x.dev/v1", "kind": kind, "spec": {member: text}})

    assert "hunter2" not in str(found)


@pytest.mark.parametrize(
    ("spec", "redacted"),
    [
        ({"kubeconfig": "hunter2"}, {"kubeconfig": REDACTED}),
        ({"kubeconfig": {"valueFrom": "a"}, "more": "b"}, {"kubeconfig": {"valueFrom": "a"}, "more": "b"}),
        ({"tokenPolicy": "hunter2"}, {"tokenPolicy": REDACTED}),
    ],
)
def test_what_does_not_fit_a_type_without_secrets_is_redacted_by_its_name(spec: Any, redacted: Any) -> None:
    assert FIELDS.redacted(object_of({"kind": "A"}, **spec)) == object_of({"kind": "A"}, **redacted)


@pytest.mark.parametrize(
    "spec",
    [
        {"size": 1, "tokenPolicy": None, "rules": [{"name": "a", "tokenPolicy": {"days": 1}}, "b", None]},
        {"byName": [{"name": "a"}, {"name": "b", "tokenPolicy": {"days": 1}}], "rules": []},
        {"labels": {"a": "b"}, "tokenPolicy": {}},
        {},
    ],
)
def test_a_document_of_a_type_without_secrets_is_returned_as_it_is(spec: Any) -> None:
    document = {**thing(spec), "kind": "Open"}

    assert FIELDS.redacted(document) is document


@pytest.mark.parametrize(
    ("spec", "redacted"),
    [
        # In the place of an object.
        ({"tokenPolicy": "hunter2"}, {"tokenPolicy": REDACTED}),
        ({"rules": [{"name": "a", "tokenPolicy": "hunter2"}]}, {"rules": [{"name": "a", "tokenPolicy": REDACTED}]}),
        # Under a name that the type has not.
        ({"tokenPolicy": {"days": 1, "password": "hunter2"}}, {"tokenPolicy": {"days": 1, "password": REDACTED}}),
        ({"rules": [{"name": "a", "password": "hunter2"}]}, {"rules": [{"name": "a", "password": REDACTED}]}),
        ({"byName": [{"name": "a", "password": "hunter2"}]}, {"byName": [{"name": "a", "password": REDACTED}]}),
        # In the place of a text or a number.
        ({"size": {**SECRET, "data": {"a": "hunter2"}}}, {"size": HIDDEN_SECRET}),
        ({"rules": [{"name": [{**SECRET, "data": {"a": "hunter2"}}]}]}, {"rules": [{"name": [HIDDEN_SECRET]}]}),
        # An object as text.
        (
            {"manifest": "{kind: Secret, data: {a: hunter2}}"},
            {"manifest": "kind: Secret\ndata:\n  a: (redacted)\n"},
        ),
    ],
)
def test_what_does_not_fit_a_type_without_secrets_may_be_one(spec: Any, redacted: Any) -> None:
    found = FIELDS.redacted({**thing(spec), "kind": "Open"})

    assert "hunter2" not in str(found)
    assert found["spec"] == redacted


def test_what_cannot_be_searched_is_redacted_as_a_whole() -> None:
    deep: Any = {**SECRET, "data": {"a": "hunter2"}}
    for _ in range(20_000):
        deep = {"a": deep}

    found = FIELDS.redacted(object_of(deep))

    assert found == {"apiVersion": "x.dev/v1", "kind": "Object", "spec": REDACTED}
    assert FIELDS.texts(object_of(deep)) == frozenset()


@pytest.mark.parametrize("depth", range(0, 800, 40))
@pytest.mark.parametrize(("opening", "closing"), [("{a: ", "}"), ("[", "]")])
def test_a_text_that_cannot_be_searched_is_redacted(opening: str, closing: str, depth: int) -> None:
    """From far down on the stack, it is too deep to be searched; from further down, too deep to be read."""
    deep = f"{opening * 195}{{kind: Secret, data: {{a: hunter2}}}}{closing * 195}"

    def redacted_from(left: int) -> Any:
        return redacted_from(left - 1) if left else FIELDS.redacted(object_of(deep, more="shown"))

    assert "hunter2" not in str(redacted_from(depth))


def test_secrets_are_found_without_any_type() -> None:
    assert NO_TYPES.redacted({"a": {**SECRET, "data": {"a": "b"}}}) == {"a": HIDDEN_SECRET}


def test_secret_texts_have_each_form_in_which_a_message_may_repeat_them() -> None:
    spec = {"password": {"value": 'a"b€'}, "key": 12345, "accounts": [{"password": [{"value": "xyz"}, True, None]}]}

    found = FIELDS.texts(thing(spec))

    assert found == {'a"b€', 'a\\"b€', "YSJi4oKs", "12345", "MTIzNDU=", "eHl6", "True", "VHJ1ZQ=="}
    assert secret_texts("aHVudGVyMg==") == {"aHVudGVyMg==", "YUhWdWRHVnlNZz09", "hunter2"}
    assert secret_texts("abc") == {"YWJj"}


def test_texts_are_redacted_wherever_they_are_repeated() -> None:
    repeated: Any = {"a": ["no hunter2 here, hunter", 1], "b": {"c": "nothing"}}

    assert without_texts(repeated, {"hunter", "hunter2"}) == {
        "a": ["no (redacted) here, (redacted)", 1],
        "b": {"c": "nothing"},
    }
    assert without_texts(repeated, {"else"}) is repeated


@pytest.mark.parametrize(
    ("value", "at"),
    [
        ({"spec": {"password": {"value": REDACTED}}}, "spec.password.value"),
        ({"spec": {"list": [1, None, {"a": f" {REDACTED}\n"}]}}, "spec.list[2].a"),
        (object_of("kind: Secret\ndata: {a: (redacted)}"), "spec.manifest.data.a"),
        ({"spec": {"manifest": REDACTED}}, "spec.manifest"),
    ],
)
def test_a_redacted_value_in_a_manifest_is_found(value: Any, at: str) -> None:
    assert redacted_at(value) == Path.parse(at)


@pytest.mark.parametrize(
    "value",
    [
        {"spec": {"text": f"this is {REDACTED}"}},
        object_of(f"kind: A # {REDACTED}"),
        object_of(f"kind: {{ {REDACTED}"),
        {"spec": 1},
    ],
)
def test_a_text_that_mentions_the_mark_is_not_a_redacted_value(value: Any) -> None:
    assert redacted_at(value) is None


values = st.text(alphabet="xyzß€\"\\\n'{:#", min_size=9, max_size=12)
specs = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers() | st.none(),
        "password": values | st.fixed_dictionaries({}, optional={"value": values, "other": values}),
        "key": values | st.lists(values),
        "accounts": st.lists(st.fixed_dictionaries({"password": values | st.lists(values)})) | values,
        "byName": st.dictionaries(st.sampled_from("abc"), st.fixed_dictionaries({"password": values})),
    },
)


@pytest.mark.laws
@given(specs)
def test_no_secret_value_is_left_in_any_place_of_a_type(spec: Any) -> None:
    shown = FIELDS.redacted({**thing(spec), "metadata": {"annotations": {LAST_APPLIED: json.dumps(thing(spec))}}})

    held = [text for text in secret_texts({**spec, "size": None}) if len(text) >= 9]
    assert [text for text in held if text in json.dumps(shown, ensure_ascii=False)] == []
    assert FIELDS.redacted(shown) == shown

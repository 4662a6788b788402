"""Masking: secret values are replaced, and everything else is unchanged."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.schema.shape import field_at, paths_of, shape_of
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path
from setpoint.replay.masking import SECRET_FIELDS, Masker
from tests.docs.reference import PAGES
from tests.laws.json_values import json_values

MASKER = Masker(b"k" * 32)
SECRET = "hunter2-hunter2"
ENCODED = base64.b64encode(SECRET.encode()).decode()
names = st.sampled_from(sorted(SECRET_FIELDS))


def _secret(**members: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, **members}


@st.composite
def _with_secret(draw: st.DrawFn) -> Json:
    """A value with a secret in a secret field."""
    copy = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"stringData": {"a": SECRET}})}
    forms = (
        st.builds(lambda name: {name: SECRET}, names),
        st.builds(lambda name: {name: {"value": SECRET}}, names),
        st.just(_secret(data={"a": ENCODED})),
        st.just(_secret(stringData={"a": SECRET})),
        st.just({**_secret(data={}), "metadata": {"annotations": copy}}),
        st.just({"manifest": f"apiVersion: v1\nkind: Secret\nstringData: {{a: {SECRET}}}\n"}),
    )
    hidden: Json = draw(st.one_of(*forms))
    for _ in range(draw(st.integers(0, 3))):
        around = draw(st.dictionaries(st.sampled_from("abc"), json_values, max_size=2))
        hidden = draw(st.sampled_from(([hidden], {**around, "inside": hidden})))
    return hidden


@given(_with_secret())
def test_no_secret_is_left_after_masking(value: Json) -> None:
    shown = json.dumps(MASKER.mask(value))

    assert SECRET not in shown
    assert ENCODED not in shown


@given(json_values)
def test_values_without_secrets_are_unchanged(value: Json) -> None:
    assert MASKER.mask(value) == value


@given(_with_secret(), _with_secret())
def test_masking_keeps_equality(one: Json, other: Json) -> None:
    assert (one == other) == (MASKER.mask(one) == MASKER.mask(other))


@given(_with_secret())
def test_masking_twice_changes_nothing_but_masks(value: Json) -> None:
    once = MASKER.mask(value)

    assert MASKER.mask(value) == once
    assert _shape(MASKER.mask(once)) == _shape(once)


def _shape(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: _shape(member) for name, member in value.items()}
    return [_shape(one) for one in value] if isinstance(value, list) else type(value).__name__


def test_another_recording_has_other_masks() -> None:
    assert Masker().mask({"password": SECRET}) != Masker().mask({"password": SECRET})


def test_text_and_base64_of_the_same_have_the_same_mask() -> None:
    in_text: Any = MASKER.mask(_secret(stringData={"a": SECRET}))
    encoded: Any = MASKER.mask(_secret(data={"a": ENCODED}))

    assert base64.b64decode(encoded["data"]["a"]).decode() == in_text["stringData"]["a"]


@pytest.mark.parametrize("value", ["not base64!", 7, None])
def test_a_malformed_secret_is_masked_as_well(value: Json) -> None:
    hidden: Any = MASKER.mask(_secret(data={"a": value}))

    assert (hidden["data"]["a"] == value) == (value is None)
    assert type(hidden["data"]["a"]) is type(value)


def test_a_reference_to_a_secret_is_not_masked() -> None:
    reference: Json = {"password": {"valueFrom": {"secretKeyRef": {"name": "s", "key": "password"}}}}

    assert MASKER.mask(reference) == reference


def test_a_manifest_in_text_form_without_secrets_is_unchanged() -> None:
    for text in ("apiVersion: v1\nkind: ConfigMap\ndata: {a: b}\n", "a: [", "a: 1\n---\nb: 2\n"):
        assert MASKER.mask({"manifest": text}) == {"manifest": text}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_secret_field_is_recognised_by_its_name(page: Any) -> None:
    shape = shape_of(PAGES[page].tree)
    hidden = [Path.parse(text) for text in paths_of(shape) if "[" not in text]

    write_only = [str(path) for path in hidden if field_at(shape, path).write_only]
    assert [path for path in write_only if not SECRET_FIELDS & set(path.split("."))] == []


def test_the_mask_of_a_file_of_credentials_says_which_key_it_is_of_and_nothing_else() -> None:
    file = {"type": "service_account", "private_key_id": "ab" * 20, "private_key": "SECRET", "client_email": "a@b"}
    secret: Any = {
        "apiVersion": "v1",
        "kind": "Secret",
        "data": {"key.json": base64.b64encode(json.dumps(file).encode()).decode()},
    }

    masked: Any = MASKER.mask(secret)

    shown = json.loads(base64.b64decode(masked["data"]["key.json"]))
    assert shown["private_key_id"] == "ab" * 20
    assert shown.keys() == {"private_key_id", "private_key"}
    assert shown["private_key"].startswith("hidden-")
    assert "SECRET" not in str(shown)

"""For all patches: messages have neither values that may be secret nor parts of them, but operations and paths."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.terraform.cty.json_trees import from_untyped
from setpoint.terraform.cty.types import DYNAMIC
from setpoint.terraform.cty.values import UNKNOWN, CtyValue
from setpoint.terraform.patches.patch_config import patch_texts

pytestmark = pytest.mark.laws

TARGET: dict[str, CtyValue] = {"api_version": "v1", "kind": "ConfigMap", "name": "one", "namespace": None}
MARKS = st.text("ab!*&@%\"'\\:#, é", max_size=8).map(lambda text: f"{text}hunter2-{len(text)}")
MEMBERS = st.dictionaries(st.sampled_from(["password", "url.txt", "host", "name"]), MARKS, min_size=1, max_size=3)


def _said(form: str, value: Any, *, is_text: bool, words: str) -> str:
    written = json.dumps(value) if is_text else value
    values: dict[str, CtyValue] = {"target": TARGET, form: from_untyped(written, DYNAMIC)}
    return patch_texts(values).redacted(words)


@given(MEMBERS, st.sampled_from(["patch", "merge_patch"]), st.booleans())
def test_a_message_has_no_value_of_a_patch_where_free_text_stands(
    members: dict[str, str], form: str, is_text: bool
) -> None:
    words = " ".join(f"data.{name} is {mark!r} and {mark}" for name, mark in members.items())
    said = _said(form, {"data": members}, is_text=is_text, words=words)

    assert "hunter2" not in said
    assert [name for name in members if f"data.{name} is" not in said] == []


@given(MARKS, st.sampled_from(["/data/colour", "/metadata/annotations/a~1b", "/spec/args/0"]), st.booleans())
def test_a_message_has_operation_and_path_of_a_json_patch_and_not_its_value(
    mark: str, path: str, is_text: bool
) -> None:
    words = f"operation 1 (replace {path}): {mark!r} is another one than '{mark}'"
    operations = [{"op": "replace", "path": path, "value": mark}, {"op": "copy", "path": "/data/x", "from": path}]
    said = _said("json_patch", operations, is_text=is_text, words=words)

    assert "hunter2" not in said
    assert said.startswith(f"operation 1 (replace {path}): ")


@given(MARKS)
def test_a_message_has_no_value_from_before_a_patch(mark: str) -> None:
    before: dict[str, CtyValue] = {"data.colour": json.dumps(mark), "data.none": None}
    values: dict[str, CtyValue] = {"target": TARGET, "patch": UNKNOWN, "before": before}

    assert "hunter2" not in patch_texts(values).redacted(f"data.colour: {mark}")


@pytest.mark.parametrize("path", ["/metadata/labels/tier", "/spec/replicas", "/spec/containers/0/image"])
def test_a_value_where_no_secret_stands_stays(path: str) -> None:
    operations = [{"op": "add", "path": path, "value": "front:1"}]

    assert _said("json_patch", operations, is_text=False, words="it is front:1") == "it is front:1"


def test_of_text_that_is_no_yaml_every_word_is_hidden() -> None:
    said = _said("patch", "data: [hunter2-word", is_text=False, words="'hunter2-word' in data does not end")

    assert said == "'(redacted)' in data does not end"

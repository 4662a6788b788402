"""Values of a manifest that may be secret: neither `fields` nor a message has any of them, wherever they stand."""

import base64
import json
import string
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from setpoint.core.values.paths import Path
from setpoint.terraform.framework.hidden_texts import HiddenTexts
from setpoint.terraform.resources.shown_values import shown_fields, texts_in, words_in

pytestmark = pytest.mark.laws

# Every secret has a digit: a word of the message is none by chance.
SECRETS = st.text(string.ascii_letters + string.digits + "-_/+=.!@#$%&*()\"'\\\n é", min_size=4, max_size=40).map(
    lambda text: f"{text[:2]}7{text[2:]}"
)
# As the API server, its libraries, webhooks and rules of authors put a value into a message.
QUOTATIONS: list[Callable[[str], str]] = [
    lambda value: f"spec.x: Invalid value: {json.dumps(value, ensure_ascii=False)}: must be shorter",
    lambda value: f".data.x: expected string, got &value.valueUnstructured{{Value:{value}}}",
    lambda value: f"denied: {value} is not allowed",
    lambda value: f"'{value}' stands twice",
    lambda value: f'map[string]interface {{}}{{"password":{json.dumps(value, ensure_ascii=False)}}}',
    lambda value: f"illegal base64 data: {base64.b64encode(value.encode()).decode()} at input byte 3",
]
FREE_NAMES = st.sampled_from(["password", "url", "key", "name", "host", "image", "type", "schedule", "labels", "a.b/c"])
ROOTS: list[tuple[str, tuple[str | int, ...]]] = [
    ("v1", ("data",)),
    ("v1", ("binaryData",)),
    ("v1", ("stringData",)),
    ("apps/v1", ("metadata", "annotations")),
    ("storage.k8s.io/v1", ("parameters",)),
    ("example.com/v1", ("spec", "settings")),
    ("example.com/v1", ("data",)),
]
PLACES = st.one_of(
    st.tuples(st.sampled_from(ROOTS), FREE_NAMES).map(lambda one: (one[0][0], (*one[0][1], one[1]))),
    st.sampled_from(
        [
            ("apps/v1", ("spec", "template", "spec", "containers", 0, "env", 0, "value")),
            ("apps/v1", ("spec", "template", "spec", "containers", 0, "args", 1)),
            ("v1", ("spec", "containers", 0, "command", 2)),
            ("v1", ("spec", "containers", 0, "readinessProbe", "httpGet", "httpHeaders", 0, "value")),
            ("v1", ("spec", "containers", 0, "readinessProbe", "exec", "command", 0)),
        ]
    ),
).filter(lambda one: not (one[0] == "example.com/v1" and one[1][-1] == "image"))


def _object(api_version: str, steps: tuple[str | int, ...], value: Any) -> Any:
    for step in reversed(steps):
        value = [{}] * step + [value] if isinstance(step, int) else {step: value}
    names = {"name": "settings", "namespace": "shop", **value.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": "Thing", "metadata": names, **value}


def _state(api_version: str, steps: tuple[str | int, ...], value: str) -> dict[str, Any]:
    projection = {str(Path(steps)): value, "metadata.labels.app": "web"}
    return {"object_ref": {"api_version": api_version}, "projection": projection}


@given(PLACES, SECRETS, st.sampled_from(QUOTATIONS))
def test_no_message_repeats_a_value_of_a_place_where_secrets_may_stand(
    place: tuple[str, tuple[str | int, ...]], secret: str, quote: Callable[[str], str]
) -> None:
    message = f"PATCH /api/v1/namespaces/shop/configmaps/settings: 422: Invalid: {quote(secret)}"

    shown = texts_in(_object(*place, secret)).redacted(message)

    assert secret not in shown
    assert json.dumps(secret, ensure_ascii=False)[1:-1] not in shown
    assert base64.b64encode(secret.encode()).decode() not in shown
    assert shown.startswith("PATCH /api/v1/namespaces/shop/configmaps/settings: 422: Invalid: ")


@given(PLACES, st.text(string.ascii_letters + string.digits + "+/\n", min_size=30, max_size=3000), st.integers(0, 900))
def test_nothing_long_is_left_of_a_value_that_a_message_cuts(
    place: tuple[str, tuple[str | int, ...]], secret: str, length: int
) -> None:
    whole = f"spec.x: Invalid value: {json.dumps(secret)}: must be shorter"
    message = f"{whole[:length]} … {whole[-150:]}"

    shown = texts_in(_object(*place, secret)).redacted(message)

    escaped = json.dumps(secret)[1:-1]
    left = [escaped[start : start + 12] for start in range(len(escaped) - 11)]
    assert [piece for piece in left if piece in shown] == []


@given(PLACES, SECRETS, SECRETS, SECRETS)
def test_fields_show_that_a_hidden_value_changes_and_never_which_it_is(
    place: tuple[str, tuple[str | int, ...]], first: str, second: str, third: str
) -> None:
    states: list[dict[str, Any]] = []
    for value in (first, first, second, third):
        state = _state(*place, value)
        states.append({**state, "fields": shown_fields(state, states[-1] if states else None)})
    name = str(Path(place[1]))
    shown = [one["fields"].get(name, one["fields"].get(str(Path(place[1]).parent))) for one in states]

    assert shown[0] == shown[1] == "(hidden, version 1)"
    assert [one != other for one, other in pairwise(shown[1:])] == [first != second, second != third]
    assert all(one["fields"]["metadata.labels.app"] == "web" for one in states)


@given(st.lists(SECRETS, min_size=1, max_size=4, unique=True), SECRETS)
def test_the_members_of_a_set_are_one_field_without_their_values(members: list[str], added: str) -> None:
    assume(added not in members)
    before, after = (
        {
            "object_ref": {"api_version": "example.com/v1"},
            "projection": {str(Path(("spec", "tokens", one))): one for one in sorted(some)},
        }
        for some in (members, [*members, added])
    )
    first = shown_fields(before, None)
    second = shown_fields(after, {**before, "fields": first})

    assert (first, second) == ({"spec.tokens": "(hidden, version 1)"}, {"spec.tokens": "(hidden, version 2)"})


@given(st.text(string.ascii_letters + string.digits, min_size=4, max_size=20).map(lambda text: f"7{text}"))
@example("hunter2")
def test_a_manifest_that_is_no_yaml_is_not_quoted(secret: str) -> None:
    text = f"apiVersion: v1\ndata:\n  password: !{secret}\n  other: *{secret}\n"

    shown = words_in(text).redacted(f"yaml_body:3: the tag '!{secret}' is not supported; there is no anchor &{secret}")

    assert secret not in shown
    assert shown.startswith("yaml_body:3: the tag ")


@given(st.text(max_size=200))
def test_a_message_without_hidden_texts_stays_as_it_is(message: str) -> None:
    assume("hunter2" not in message)

    assert HiddenTexts(frozenset({"hunter2-x"})).redacted(message) == message

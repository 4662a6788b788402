"""Schemas of kinds: which paths they accept, and what may be meant by any other."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.values.paths import Path
from setpoint.kinds.kubernetes_object.field_schemas import KindSchema

TEXT: Any = {"type": "string"}
COMPONENTS: Any = {
    "Pod": {"type": "object", "properties": {"image": TEXT, "pod": {"$ref": "#/components/schemas/Pod"}}},
}
SCHEMA = KindSchema(
    {
        "properties": {
            "metadata": {"properties": {"labels": {"additionalProperties": TEXT}, "fieldsV1": {"type": "object"}}},
            "spec": {
                "properties": {
                    "replicas": {"type": "integer"},
                    "pods": {"type": "array", "items": {"allOf": [{"$ref": "#/components/schemas/Pod"}]}},
                    "raw": {"properties": {"known": TEXT}, "x-kubernetes-preserve-unknown-fields": True},
                }
            },
        }
    },
    COMPONENTS,
)


@pytest.mark.parametrize(
    "path",
    [
        "spec.replicas",
        "spec.pods[0].image",
        "spec.pods[name=a].pod.pod.image",
        'metadata.labels["a.b/c"]',
        "metadata.fieldsV1.anything.at.all",
        "spec.raw.unknown[3]",
        # Nothing is said about what is below a text: the API server has the last word.
        "spec.replicas.deeper",
    ],
)
def test_fields_and_keys_of_open_maps_are_accepted(path: str) -> None:
    assert SCHEMA.unknown(Path.parse(path)) is None


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("spec.replica", ["spec.replicas"]),
        ("sepc.replicas", ["spec.replicas"]),
        ("sepc.nothing", ["spec"]),
        ("replicas", ["spec.replicas"]),
        ("spec.pods[0].imgae", ["spec.pods[0].image"]),
        ("metadata.zzz", []),
    ],
)
def test_another_field_is_unknown_and_the_nearest_is_named(path: str, near: list[str]) -> None:
    unknown = SCHEMA.unknown(Path.parse(path))

    assert unknown is not None
    assert [str(one) for one in unknown.near] == near


SCHEMAS = st.recursive(
    st.just(TEXT) | st.just({"type": "object"}),
    lambda below: st.builds(
        lambda names: {"properties": names}, st.dictionaries(st.sampled_from("abcd"), below, min_size=1, max_size=3)
    ),
    max_leaves=12,
)
STEPS = st.lists(st.sampled_from("abcde"), min_size=1, max_size=5)


@pytest.mark.laws
@given(SCHEMAS, STEPS)
def test_what_may_be_meant_is_always_a_path_that_exists(schema: Any, steps: list[str]) -> None:
    known = KindSchema(schema)
    unknown = known.unknown(Path(tuple(steps)))

    assert unknown is None or all(known.unknown(one) is None for one in unknown.near)

"""Laws of patches: what a patch does to a tree, and that a tree without its patch is the tree before."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path, get_at
from setpoint.errors import ManifestInvalid
from setpoint.objects.json_patches import (
    PatchResult,
    apply_json_patch,
    apply_merge_patch,
    json_patch_between,
    parse_json_patch,
)
from setpoint.objects.patch_record import NO_RECORD, PatchRecord, released, unpatched

pytestmark = pytest.mark.laws

_NAMES = st.sampled_from(["a", "b", "c/d", "e~f", "", "0", "-"])
_SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.text("xy", max_size=2))
_TREES = st.recursive(
    _SCALARS,
    lambda below: st.one_of(st.lists(below, max_size=3), st.dictionaries(_NAMES, below, max_size=3)),
    max_leaves=12,
)
_OBJECTS = st.dictionaries(_NAMES, _TREES, max_size=4)


@given(_OBJECTS, _OBJECTS)
def test_the_json_patch_between_two_trees_makes_one_of_the_other(before: Json, after: Json) -> None:
    operations = parse_json_patch(json_patch_between(before, after))

    assert same(apply_json_patch(before, operations).tree, after)


def _rfc_7386(target: Json, patch: Json) -> Json:
    """The pseudo-code of the RFC."""
    if not isinstance(patch, dict):
        return patch
    target = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        else:
            target[name] = _rfc_7386(target.get(name), value)
    return target


@given(_OBJECTS, _OBJECTS)
def test_a_merge_patch_is_what_its_rfc_says_and_twice_is_once(tree: Json, patch: dict[str, Json]) -> None:
    once = apply_merge_patch(tree, patch).tree

    assert same(once, _rfc_7386(tree, patch))
    assert same(apply_merge_patch(once, patch).tree, once)


def _recorded(tree: Json, result: PatchResult) -> PatchRecord:
    return NO_RECORD.of_fields(tree, result.paths)


@given(_OBJECTS, _OBJECTS)
@example({}, {"a": {"b": {"c/d": 1}}})
@example({"a": None}, {"a": {"a": None}})
def test_a_tree_without_its_merge_patch_is_the_tree_before(tree: dict[str, Json], patch: dict[str, Json]) -> None:
    result = apply_merge_patch(tree, patch)
    record = _recorded(tree, result)
    written = record.with_written(result.tree)

    assert same(unpatched(result.tree, record), tree)
    assert same(released(result.tree, written, written.before, "manager").tree, tree)


@given(_OBJECTS, _OBJECTS, _NAMES)
def test_a_field_that_changed_since_is_not_given_back(tree: Json, patch: dict[str, Json], name: str) -> None:
    result = apply_merge_patch(tree, patch)
    written = _recorded(tree, result).with_written(result.tree)
    edited = {**result.tree, name: ["edited"]} if isinstance(result.tree, dict) else result.tree
    release = released(edited, written, written.before, "manager")

    assert get_at(release.tree, Path((name,))) == ["edited"]
    kept = {one.path for one in release.fields if one.kept_because}
    assert {path for path in written.before if path.steps[0] == name} >= kept


@given(
    _OBJECTS,
    st.lists(
        st.tuples(st.sampled_from(["add", "replace"]), st.lists(_NAMES, min_size=1, max_size=3), _TREES), max_size=4
    ),
)
def test_a_tree_without_its_json_patch_is_the_tree_before(
    tree: dict[str, Json], operations: list[tuple[str, list[str], Json]]
) -> None:
    pointers = ["".join(f"/{one.replace('~', '~0').replace('/', '~1')}" for one in steps) for _, steps, _ in operations]
    patch = [
        {"op": op, "path": path, "value": value} for path, (op, _, value) in zip(pointers, operations, strict=True)
    ]
    try:
        result = apply_json_patch(tree, parse_json_patch(patch))
    except ManifestInvalid:
        return

    assert same(unpatched(result.tree, _recorded(tree, result)), tree)

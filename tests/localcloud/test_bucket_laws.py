"""Laws of buckets: merge patch, labels and the metageneration."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from setpoint.localcloud.schema import JsonBody, merge_patch
from tests.localcloud.requests import BUCKET, get, held_cloud, make_bucket, ok

pytestmark = pytest.mark.laws

keys = st.sampled_from(("a", "b", "c"))
trees = st.recursive(
    st.sampled_from((0, 1, "x", True, [])) | st.just({}),
    lambda inner: st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
).filter(lambda tree: isinstance(tree, dict))
patch_trees = st.recursive(
    st.sampled_from((0, "x", None, [1])),
    lambda inner: st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
).filter(lambda tree: isinstance(tree, dict))

labels = st.dictionaries(keys, st.sampled_from(("", "1", "2")), max_size=3)
fields: dict[str, st.SearchStrategy[Any]] = {
    "labels": labels,
    "storageClass": st.sampled_from(("STANDARD", "NEARLINE", "ARCHIVE")),
    "versioning": st.fixed_dictionaries({"enabled": st.booleans()}),
    "billing": st.fixed_dictionaries({"requesterPays": st.booleans()}),
    "defaultEventBasedHold": st.booleans(),
    "website": st.fixed_dictionaries({}, optional={"mainPageSuffix": st.sampled_from("ab")}),
    "cors": st.lists(st.just({"origin": ["*"], "maxAgeSeconds": 1}), max_size=1),
    "softDeletePolicy": st.fixed_dictionaries({"retentionDurationSeconds": st.sampled_from(("0", "604800", "864000"))}),
    "retentionPolicy": st.fixed_dictionaries({"retentionPeriod": st.sampled_from(("1", "60"))}),
    "iamConfiguration": st.fixed_dictionaries({"uniformBucketLevelAccess": st.just({"enabled": True})}),
}
bodies = st.fixed_dictionaries({}, optional=fields)
patches = st.fixed_dictionaries(
    {},
    optional={
        name: st.none() | (st.dictionaries(keys, st.sampled_from(("", "1", None))) if name == "labels" else strategy)
        for name, strategy in fields.items()
    },
)
_VOLATILE = ("metageneration", "updated", "etag")


def _without_volatile(bucket: JsonBody) -> JsonBody:
    return {name: value for name, value in bucket.items() if name not in _VOLATILE}


def _patch_between(before: JsonBody, after: JsonBody) -> JsonBody:
    patch: JsonBody = {name: None for name in before if name not in after}
    for name, value in after.items():
        was = before.get(name)
        patch[name] = _patch_between(was if isinstance(was, dict) else {}, value) if isinstance(value, dict) else value
    return patch


@given(trees, trees)
def test_a_patch_between_two_bodies_turns_one_into_the_other(before: JsonBody, after: JsonBody) -> None:
    assert merge_patch(before, _patch_between(before, after)) == after


@given(trees, patch_trees)
def test_merge_patch_is_idempotent_and_changes_neither_argument(target: JsonBody, patch: JsonBody) -> None:
    kept = repr((target, patch))
    once = merge_patch(target, patch)

    assert merge_patch(once, patch) == once
    assert repr((target, patch)) == kept


@given(bodies, patches)
@example({"labels": {"a": "1"}}, {"labels": {"a": None}})
def test_labels_after_a_patch_are_the_old_ones_with_the_patch_merged(body: JsonBody, patch: JsonBody) -> None:
    cloud = held_cloud()
    before = make_bucket(cloud, body).get("labels", {})
    after = ok(cloud.call("PATCH", BUCKET, patch)).get("labels", {})
    change = patch.get("labels", {})
    named = {} if change is None else before | change

    assert after == {key: value for key, value in named.items() if value is not None}


@given(bodies, st.lists(patches, max_size=4))
def test_the_metageneration_rises_by_one_exactly_when_something_changed(
    body: JsonBody, changes: list[JsonBody]
) -> None:
    cloud = held_cloud()
    before = make_bucket(cloud, body)
    for patch in changes:
        cloud.advance(1)
        ok(cloud.call("PATCH", BUCKET, patch))
        after = get(cloud, BUCKET)
        is_change = _without_volatile(after) != _without_volatile(before)

        assert int(after["metageneration"]) == int(before["metageneration"]) + is_change
        assert (after["updated"] != before["updated"]) == is_change
        before = after


@given(bodies)
def test_a_patch_with_what_get_returned_changes_nothing(body: JsonBody) -> None:
    cloud = held_cloud()
    before = make_bucket(cloud, body)
    cloud.advance(1)
    ok(cloud.call("PATCH", BUCKET, before))

    assert get(cloud, BUCKET) == before


@given(bodies, patches)
def test_fields_that_a_patch_does_not_name_stay(body: JsonBody, patch: JsonBody) -> None:
    cloud = held_cloud()
    before = make_bucket(cloud, body)
    ok(cloud.call("PATCH", BUCKET, patch))
    after = get(cloud, BUCKET)

    assert {name: value for name, value in _without_volatile(after).items() if name not in patch} == {
        name: value for name, value in _without_volatile(before).items() if name not in patch
    }

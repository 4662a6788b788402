"""Laws of buckets: an insert reads back as declared, and one patch is sufficient."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.clients.google.client import GoogleClient, GoogleSettings
from setpoint.clients.http import HttpClient
from setpoint.core.plan import Plan
from setpoint.core.values.canonical import canonical
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.intent import intent_of
from setpoint.engine.kind import Intent, ResolvedReferences
from setpoint.engine.resource import Resource
from setpoint.kinds.gcp.storage_bucket import StorageBucketKind
from setpoint.kinds.gcp.storage_bucket.live import StorageBucket, read_bucket
from setpoint.kinds.gcp.storage_bucket.requests import insert_body, patch_body
from setpoint.localcloud.schema import merge_patch
from tests.kinds.effective_states import effective_over
from tests.kinds.effective_states import plan_over as kind_plan_over
from tests.kinds.kind_harness import bucket

pytestmark = pytest.mark.laws

# Never called: everything here is pure.
KIND = StorageBucketKind(GoogleClient(HttpClient(), GoogleSettings()))
IGNORE = {"cnrm.cloud.google.com/ignore-unspecified-fields": "true"}


def part(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """An object that may have any of these fields, or null instead."""
    return st.fixed_dictionaries({}, optional={name: values | st.none() for name, values in fields.items()})


def whole(required: dict[str, st.SearchStrategy[Any]], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """An object that has the required fields, and may have the others."""
    return st.builds(lambda must, may: {**may, **must}, st.fixed_dictionaries(required), part(**fields))


words = st.sampled_from(["a", "b", ""])
lists = st.lists(st.sampled_from(["x", "y"]), max_size=2)
days = st.integers(0, 3)
classes = st.sampled_from(["STANDARD", "NEARLINE", "ARCHIVE"])
networks = st.builds(lambda name: {"external": f"projects/p/global/networks/{name}"}, st.sampled_from(["n", "m"]))
keys = st.builds(lambda name: {"external": f"projects/p/keys/{name}"}, st.sampled_from(["k", "l"]))
conditions = st.builds(
    lambda say, more: {**more, **say},
    st.sampled_from([{"age": 0}, {"age": 7}, {"numNewerVersions": 2}]),
    part(
        withState=st.sampled_from(["LIVE", "ARCHIVED", "ANY", ""]),
        createdBefore=words,
        daysSinceCustomTime=days,
        matchesPrefix=lists,
        matchesStorageClass=lists,
    ),
)
rules = whole(
    {
        "action": whole({"type": st.sampled_from(["Delete", "SetStorageClass"])}, storageClass=words),
        "condition": conditions,
    }
)
ip_filters = whole(
    {"mode": st.sampled_from(["Enabled", "Disabled"])},
    publicNetworkSource=st.fixed_dictionaries({"allowedIpCidrRanges": lists}),
    vpcNetworkSources=st.lists(
        st.fixed_dictionaries({"networkRef": networks, "allowedIpCidrRanges": lists}), max_size=2
    ),
    allowCrossOrgVpcs=st.booleans(),
    allowAllServiceAgentAccess=st.booleans(),
)
specs = part(
    storageClass=classes,
    autoclass=whole({"enabled": st.booleans()}, terminalStorageClass=st.sampled_from(["NEARLINE", "ARCHIVE"])),
    uniformBucketLevelAccess=st.booleans(),
    bucketPolicyOnly=st.booleans(),
    publicAccessPrevention=st.sampled_from(["inherited", "enforced"]),
    versioning=st.fixed_dictionaries({"enabled": st.booleans()}),
    lifecycleRule=st.lists(rules, max_size=2),
    softDeletePolicy=part(retentionDurationSeconds=st.sampled_from([0, 604800, 864000])),
    retentionPolicy=whole({"retentionPeriod": days}, isLocked=st.just(False)),
    defaultEventBasedHold=st.booleans(),
    requesterPays=st.booleans(),
    encryption=st.fixed_dictionaries({"kmsKeyRef": keys}),
    cors=st.lists(part(maxAgeSeconds=days, method=lists, origin=lists, responseHeader=lists), max_size=2),
    website=part(mainPageSuffix=words, notFoundPage=words),
    logging=whole({"logBucket": st.sampled_from(["logs", "other"])}, logObjectPrefix=words | st.just("some-bucket")),
    ipFilter=ip_filters,
)
labels = st.dictionaries(st.sampled_from(["team", "stage", "example.com/x"]), st.sampled_from(["red", "blue"]))
manifests = st.builds(
    lambda spec, some, policy: bucket(spec, labels=some, annotations=policy),
    specs,
    labels,
    st.sampled_from([{}, IGNORE]),
)


def intent_for(manifest: dict[str, Any]) -> Intent:
    return intent_of(Resource(manifest), KIND, ResolvedReferences())


def sent(body: dict[str, Any]) -> dict[str, Any]:
    """A body after encoding and decoding."""
    decoded: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(body))
    return decoded


def inserted(intent: Intent) -> dict[str, Any]:
    """The bucket that a service stores for an insert; it chooses nothing but the class under Autoclass."""
    members = sent(insert_body(intent, effective_over(KIND, intent).tree, "some-bucket"))
    return {**members, "storageClass": "STANDARD"} if "autoclass" in members else members


def read(members: dict[str, Any]) -> StorageBucket:
    return read_bucket(msgspec.json.encode(members), "some-bucket").bucket


def wanted_over(intent: Intent, view: JsonObject) -> JsonObject:
    return effective_over(KIND, intent, view).tree


def plan_over(intent: Intent, live: StorageBucket) -> Plan:
    return kind_plan_over(KIND, intent, KIND.view(live))


@given(manifests)
def test_what_is_inserted_reads_back_as_declared(manifest: dict[str, Any]) -> None:
    intent = intent_for(manifest)

    assert plan_over(intent, read(inserted(intent))).writes == ()


@given(manifests, manifests)
def test_one_patch_turns_any_bucket_into_any_other(before: dict[str, Any], after: dict[str, Any]) -> None:
    intent = intent_for(after)
    members = inserted(intent_for(before))
    view = KIND.view(read(members))

    for write in plan_over(intent, read(members)).writes:
        members = merge_patch(members, sent(patch_body(intent, wanted_over(intent, view), write, view)))

    assert plan_over(intent, read(members)).writes == ()


@given(manifests, manifests)
def test_a_patch_is_minimal(before: dict[str, Any], after: dict[str, Any]) -> None:
    intent = intent_for(after)
    members = inserted(intent_for(before))
    view = KIND.view(read(members))

    for write in plan_over(intent, read(members)).writes:
        body = sent(patch_body(intent, wanted_over(intent, view), write, view))
        # The class has to be right before Autoclass is on, and cannot be read afterwards.
        for member in body.keys() - {"storageClass"}:
            less = merge_patch(members, {name: value for name, value in body.items() if name != member})
            assert not plan_over(intent, read(less)).is_empty


@given(manifests, manifests)
def test_the_arguments_are_not_mutated(before: dict[str, Any], after: dict[str, Any]) -> None:
    intent = intent_for(after)
    live = read(inserted(intent_for(before)))
    untouched = canonical(after), canonical(live), canonical(intent.declared.tree)

    view = KIND.view(live)
    for write in plan_over(intent, live).writes:
        patch_body(intent, wanted_over(intent, view), write, view)
    insert_body(intent, effective_over(KIND, intent).tree, "some-bucket")

    assert (canonical(after), canonical(live), canonical(intent.declared.tree)) == untouched


@given(manifests, st.dictionaries(st.sampled_from(["etag", "updated", "novelty"]), st.text()))
def test_unmodelled_fields_do_not_change_the_digest(manifest: dict[str, Any], noise: dict[str, str]) -> None:
    members = inserted(intent_for(manifest))

    assert canonical(read({**members, **noise})) == canonical(read(members))

"""Laws of annotations: only two prefixes count, none of these is ignored in silence, and no word deletes by a guess."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from setpoint.core.schema.annotations import (
    ANNOTATIONS,
    KNOWN,
    AnnotationScope,
    AnnotationTarget,
    annotation_problems,
    annotation_value,
)
from setpoint.errors import ManifestInvalid

pytestmark = pytest.mark.laws

TARGETS = st.sampled_from(
    [
        AnnotationTarget("StorageBucket", ("cnrm.cloud.google.com/project-id", "cnrm.cloud.google.com/force-destroy")),
        AnnotationTarget("KubernetesObject"),
        AnnotationTarget("TrusteeConfig", is_owner=True),
    ]
)
NAMES = st.text(alphabet="abcdefghijklmnopqrstuvwxyzABCZ-_.0123456789", min_size=1, max_size=40)
PREFIXES = ("cnrm.cloud.google.com/", "setpoint.dev/")


@given(st.text(max_size=60), TARGETS)
@example("example.com/deletion-policy", AnnotationTarget("StorageBucket"))
def test_no_annotation_of_another_prefix_is_judged(key: str, target: AnnotationTarget) -> None:
    # A known name after a prefix that is nearly ours is not drawn by chance.
    if not key.startswith(PREFIXES):
        assert list(annotation_problems({key: "x"}, target)) == []


@given(st.sampled_from(PREFIXES), NAMES, st.text(max_size=5), TARGETS)
def test_no_unknown_annotation_of_ours_is_ignored_in_silence(
    prefix: str, name: str, text: str, target: AnnotationTarget
) -> None:
    if prefix + name not in KNOWN:
        assert [one.key for one in annotation_problems({prefix + name: text}, target)] == [prefix + name]


@given(st.sampled_from([one.key for one in ANNOTATIONS if one.values is not None]), st.text(max_size=12))
@example("cnrm.cloud.google.com/deletion-policy", "ABANDON")
@example("cnrm.cloud.google.com/deletion-policy", "abandon\n")
@example("cnrm.cloud.google.com/reconcile-interval-in-seconds", "٣")
def test_a_value_is_one_of_those_that_are_listed_or_refused(key: str, text: str) -> None:
    known = {
        "cnrm.cloud.google.com/deletion-policy": {"abandon", "delete"},
        "cnrm.cloud.google.com/force-destroy": {"true", "false"},
        "cnrm.cloud.google.com/ignore-unspecified-fields": {"true", "false"},
        "cnrm.cloud.google.com/state-into-spec": {"merge", "absent"},
        "setpoint.dev/management": {"full", "observe", "paused"},
        "setpoint.dev/merge": {"three-way", "two-way"},
        "setpoint.dev/delete-protection": {"false"},
        "setpoint.dev/prevent-prune": {"true", "false"},
        "cnrm.cloud.google.com/reconcile-interval-in-seconds": {text} if text.isascii() and text.isdecimal() else set(),
    }
    try:
        accepted = annotation_value({key: text}, key)
    except ManifestInvalid:
        accepted = None

    assert accepted == (text if text in known[key] else None)


@given(st.sets(st.sampled_from(sorted(KNOWN))), st.text(max_size=4), TARGETS)
def test_owners_have_no_annotation_without_effect_that_is_only_warned_of(
    keys: set[str], text: str, target: AnnotationTarget
) -> None:
    found = list(annotation_problems(dict.fromkeys(keys, text), target))

    assert not target.is_owner or all(one.is_refused for one in found)
    assert [one.key for one in found if KNOWN[one.key].scope is AnnotationScope.RECORD] == []

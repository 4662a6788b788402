"""The cases that the acceptance tests of k8sconnect have for its patches, each with what shows it here.

A row names a test, and where that runs a table, the row of that table.
"""

from typing import Final

from tests.terraform.peer_case import PeerCase

_HERE: Final = "terraform/patches"
_PATCHED: Final = f"{_HERE}/test_peer_cases.py::test_patches_of_every_form_are_written_changed_put_back_and_given_up"
_INVALID: Final = f"{_HERE}/test_peer_cases.py::test_a_wrong_patch_is_refused_before_a_cluster_is_asked"
_REFUSED: Final = f"{_HERE}/test_peer_cases.py::test_a_patch_that_the_cluster_would_refuse_is_refused_by_the_plan"
_LIFE: Final = f"{_HERE}/test_lifecycle.py::test_a_patch_sets_its_fields_and_gives_them_back"
_OTHER_TARGET: Final = f"{_HERE}/test_ownership.py::test_another_target_gives_the_fields_of_the_first_back"
_GONE: Final = (
    f"{_HERE}/test_ownership.py::test_a_target_that_was_deleted_or_made_anew_is_told_and_patched_as_a_new_one"
)
_APPLIERS: Final = f"{_HERE}/test_ownership.py::test_an_applier_is_overruled_by_force_alone_and_an_object_of_ours_never"
_LATER: Final = (
    f"{_HERE}/test_interrupted_patches.py::test_a_target_that_comes_later_is_waited_for_and_the_apply_fails_without_it"
)
_UNKNOWN: Final = f"{_HERE}/test_interrupted_patches.py::test_what_is_unknown_at_plan_is_applied_in_one_run"


PATCHES: Final = (
    PeerCase("basic", _PATCHED, "basic"),
    PeerCase("an update", _PATCHED, "basic"),
    PeerCase("idempotent: the second plan is empty", _PATCHED, "basic"),
    PeerCase("semantic compare: another notation is no change", _PATCHED, "yaml"),
    PeerCase("a patch has a field manager of its own", _LIFE),
    PeerCase("an empty patch", _INVALID, "empty", "an empty patch is accepted"),
    PeerCase("an empty text", _INVALID, "empty_text", "an empty patch is accepted"),
    PeerCase("type validation: no form", _INVALID, "no_form"),
    PeerCase("type validation: two forms", _INVALID, "two_forms"),
    PeerCase("text that is no YAML", _INVALID, "no_yaml"),
    PeerCase("a JSON patch with a wrong operation", _INVALID, "operation"),
    PeerCase("a missing target", _REFUSED, "missing_target", "a missing target is an error of the apply"),
    PeerCase("a target that the same apply makes", _LATER),
    PeerCase("a patch with unknown values", _UNKNOWN),
    PeerCase("another target replaces", _OTHER_TARGET),
    PeerCase("an import is refused", _OTHER_TARGET),
    PeerCase("field validation: strategic", _REFUSED, "typo"),
    PeerCase("field validation: merge", _REFUSED, "typo_in_merge"),
    PeerCase("field validation: JSON", _REFUSED, "typo_in_json"),
    PeerCase("a value of another type", _REFUSED, "wrong_type"),
    PeerCase("an invalid value", _REFUSED, "invalid"),
    PeerCase("status fields", _INVALID, "status", "status fields are patched"),
    PeerCase("custom resources", _PATCHED, "custom-resource"),
    PeerCase("custom resources by a merge patch", _PATCHED, "merge-custom-resource"),
    PeerCase("an object of ours is refused at plan", _REFUSED, "of_an_object"),
    PeerCase("fields of other appliers", _APPLIERS, "", "fields of other appliers are always forced"),
    PeerCase("quantities", _PATCHED, "quantities"),
    PeerCase("the projection is set: strategic", _PATCHED, "basic"),
    PeerCase("the projection: JSON and merge", _PATCHED, "merge", "projection is null for JSON and merge patches"),
    PeerCase("arrays by name", _PATCHED, "arrays-by-name"),
    PeerCase("simple arrays", _PATCHED, "arrays-simple"),
    PeerCase("deep nesting", _PATCHED, "deep-nesting"),
    PeerCase("an empty string", _PATCHED, "empty-string"),
    PeerCase("null: strategic", _PATCHED, "null-is-not-set", "null in a strategic patch"),
    PeerCase("null: merge removes", _PATCHED, "merge"),
    PeerCase("bool", _PATCHED, "bool"),
    PeerCase("number", _PATCHED, "number"),
    PeerCase("ten kilobytes", _PATCHED, "ten-kilobytes"),
    PeerCase("JSON patch: add", _PATCHED, "json-add"),
    PeerCase("JSON patch: remove", _PATCHED, "json-remove"),
    PeerCase("JSON patch: replace and test", _PATCHED, "json-replace"),
    PeerCase("JSON patch: move", _PATCHED, "json-move"),
    PeerCase("JSON patch: copy", _PATCHED, "json-copy"),
    PeerCase("JSON patch: a test that fails", _REFUSED, "test_fails"),
    PeerCase("drift is corrected: strategic", _PATCHED, "basic", "a read puts drift back"),
    PeerCase("drift is corrected: merge", _PATCHED, "merge"),
    PeerCase("drift is corrected: JSON", _PATCHED, "json-replace"),
    PeerCase("the target was deleted", _GONE),
    PeerCase("warnings on an actual change alone", _LIFE),
    PeerCase("a destroy", _LIFE, "", "destroy leaves values and field manager"),
)

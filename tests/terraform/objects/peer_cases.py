"""The cases that the acceptance tests of k8sconnect have for objects and waits, as its sorts of cases are described.

Each has the test here that shows it, or the reason why it differs on purpose.
"""

from typing import Final

from tests.terraform.peer_case import PeerCase

_HERE: Final = "terraform/objects"
_CREATED: Final = f"{_HERE}/test_lifecycle.py::test_an_object_is_created_and_needs_no_change"
_KINDS: Final = f"{_HERE}/test_kinds.py::test_objects_of_many_kinds_are_applied_as_planned_and_need_no_change"
_NOTATION: Final = f"{_HERE}/test_lifecycle.py::test_undeclared_fields_and_another_notation_are_no_change"
_DRIFT: Final = f"{_HERE}/test_lifecycle.py::test_drift_is_shown_with_both_values_and_reverted"
_PROTECTED: Final = f"{_HERE}/test_lifecycle.py::test_a_protected_object_is_neither_deleted_nor_replaced"
_DELETED: Final = f"{_HERE}/test_lifecycle.py::test_an_object_that_another_writer_deleted_is_created_again"
_MISTAKES: Final = f"{_HERE}/test_fields.py::test_every_mistake_of_a_configuration_is_reported"
_TYPO_IN_UPDATE: Final = f"{_HERE}/test_fields.py::test_a_typo_in_an_update_is_reported_at_plan"
_IGNORED: Final = (
    f"{_HERE}/test_fields.py::"
    "test_an_ignored_field_is_set_at_creation_and_left_to_other_managers_until_it_is_no_longer_ignored"
)
_UNKNOWN_CLUSTER: Final = (
    f"{_HERE}/test_fields.py::test_an_unknown_yaml_body_and_an_unknown_cluster_are_applied_in_one_run"
)
_UNKNOWN_VALUES: Final = f"{_HERE}/test_fields.py::test_a_manifest_with_unknown_values_is_applied_in_one_run"
_UNKNOWN_NAME: Final = f"{_HERE}/test_fields.py::test_an_unknown_name_that_turns_out_to_be_another_replaces_the_object"
_REDACTED: Final = f"{_HERE}/test_fields.py::test_the_values_of_a_secret_are_redacted"
_OTHER_OBJECT: Final = f"{_HERE}/test_replacement.py::test_another_name_kind_or_namespace_is_another_object"
_IMMUTABLE: Final = f"{_HERE}/test_replacement.py::test_a_change_of_an_immutable_field_replaces_the_object"
_OTHER_CLUSTER: Final = (
    f"{_HERE}/test_replacement.py::"
    "test_another_cluster_replaces_the_object_and_another_connection_to_the_same_one_does_not"
)
_IMPORTED: Final = (
    f"{_HERE}/test_import_and_ownership.py::test_an_unmanaged_object_is_an_error_at_plan_then_imported_and_managed"
)
_IMPORT_BLOCK: Final = (
    f"{_HERE}/test_import_and_ownership.py::test_an_import_block_writes_the_configuration_that_changes_nothing"
)
_OTHER_STATE: Final = (
    f"{_HERE}/test_import_and_ownership.py::test_an_object_of_another_state_is_refused_and_stays_as_it_is"
)
_TWO_RESOURCES: Final = f"{_HERE}/test_import_and_ownership.py::test_two_resources_of_one_object_are_refused"
_CONFLICT: Final = (
    f"{_HERE}/test_import_and_ownership.py::test_a_field_that_another_tool_declares_is_named_at_plan_and_taken_by_force"
)
_UPDATE_HELD: Final = (
    f"{_HERE}/test_plans_that_no_longer_hold.py::"
    "test_an_update_is_applied_as_planned_or_says_that_the_plan_no_longer_holds"
)
_CREATE_HELD: Final = (
    f"{_HERE}/test_plans_that_no_longer_hold.py::"
    "test_a_create_is_applied_as_planned_or_says_that_the_plan_no_longer_holds"
)
_UNKNOWN_HELD: Final = (
    f"{_HERE}/test_plans_that_no_longer_hold.py::"
    "test_a_value_that_is_unknown_at_plan_is_applied_or_its_error_says_to_plan_again"
)
_LETS_GO: Final = f"{_HERE}/test_made_again.py::test_a_destroy_lets_go_of_what_another_writer_made_and_deletes_the_rest"
_LOGINS: Final = (
    f"{_HERE}/test_peer_objects.py::test_every_way_to_log_in_works_and_another_one_changes_nothing_of_the_object"
)
_INFERRED: Final = (
    f"{_HERE}/test_peer_objects.py::test_namespaces_are_inferred_and_annotations_that_were_lost_are_restored"
)
_REFUSED: Final = f"{_HERE}/test_peer_objects.py::test_what_the_cluster_refuses_is_said_at_plan_in_its_words"
_HELD: Final = (
    f"{_HERE}/test_peer_objects.py::test_all_conflicts_are_named_and_finalizers_hold_a_deletion_until_its_timeout"
)
_NO_DEFINITION: Final = f"{_HERE}/test_peer_objects.py::test_an_object_whose_definition_was_removed_is_destroyed"
_ITS_DEFINITION: Final = f"{_HERE}/test_kinds.py::test_a_custom_resource_and_its_definition_are_applied_in_one_run"
_ITS_NAMESPACE: Final = f"{_HERE}/test_kinds.py::test_a_namespace_and_an_object_in_it_are_applied_in_one_run"
_ELEMENT: Final = "cluster/objects/test_drift.py::test_a_field_of_an_element_can_be_ignored"

OBJECTS: Final = (
    PeerCase("create sets id", _CREATED),
    PeerCase("create sets yaml_body", _CREATED),
    PeerCase("create sets object_ref", _CREATED),
    PeerCase("the second plan is empty", _CREATED),
    PeerCase("a default namespace is inferred", _INFERRED),
    PeerCase("the connection is unknown at plan", _UNKNOWN_CLUSTER),
    PeerCase("one apply with an unknown connection, and an empty second plan", _UNKNOWN_CLUSTER),
    PeerCase("the yaml is unknown at plan", _UNKNOWN_CLUSTER),
    PeerCase("a value of the manifest is unknown at plan", _UNKNOWN_VALUES),
    PeerCase("a name is unknown at plan", _UNKNOWN_NAME),
    PeerCase("the plan of a create has a known projection", _CREATE_HELD),
    PeerCase("a namespace on a cluster-scoped kind is tolerated", _INFERRED),
    PeerCase("a definition and its custom resource in one apply", _ITS_DEFINITION),
    PeerCase("a namespace and what is in it in one apply", _ITS_NAMESPACE),
    PeerCase("a bad field of a custom resource fails at once", _REFUSED),
    PeerCase("a node port never drifts", _KINDS),
    PeerCase("a cluster address never drifts", _KINDS),
    PeerCase("defaults of the server never drift", _KINDS),
    PeerCase("validation at plan: a typo", _MISTAKES),
    PeerCase("validation at plan: several fields", _REFUSED),
    PeerCase("validation at plan: in an update", _TYPO_IN_UPDATE),
    PeerCase("validation at plan: a value of another type", _REFUSED),
    PeerCase("validation at plan: an enum", _REFUSED),
    PeerCase("validation at plan: the text of a CEL rule", _REFUSED),
    PeerCase("comments, order and whitespace are no change", _NOTATION),
    PeerCase("ignore_fields is accepted", _IGNORED),
    PeerCase("ignore_fields is validated", _MISTAKES),
    PeerCase("ignore_fields from a variable", _INFERRED),
    PeerCase("ignore_fields is unknown at plan", _UNKNOWN_HELD),
    PeerCase("uid in the manifest is refused", _REFUSED),
    PeerCase("resourceVersion in the manifest is refused", _REFUSED),
    PeerCase("status in the manifest is refused", _REFUSED),
    PeerCase("two documents are refused", _MISTAKES),
    PeerCase("no kind, no name", _MISTAKES),
    PeerCase("text that is no YAML", _MISTAKES),
    PeerCase(
        "values are chained through computed attributes",
        f"{_HERE}/test_values.py::test_a_value_reaches_the_dependent_resource_and_follows_changes",
    ),
    PeerCase("delete protection: a destroy is refused", _PROTECTED),
    PeerCase("delete protection: once it is off, it is destroyed", _PROTECTED),
    PeerCase(
        "delete protection: a replacement is refused",
        f"{_HERE}/test_replacement.py::test_a_protected_object_is_not_replaced_for_an_immutable_field",
    ),
    PeerCase("another kind replaces", _OTHER_OBJECT),
    PeerCase("another name replaces, and the old object is gone", _OTHER_OBJECT),
    PeerCase("another namespace replaces", _OTHER_OBJECT),
    PeerCase(
        "another apiVersion replaces",
        "cluster/objects/test_other_tools.py::test_another_version_is_the_same_object",
        differs="Another version of one API is the same object: it is updated in place, and not deleted.",
    ),
    PeerCase("an immutable field of a Secret replaces", _IMMUTABLE),
    PeerCase("an immutable field of a Job replaces", _IMMUTABLE),
    PeerCase("an immutable ConfigMap is replaced", _IMMUTABLE),
    PeerCase("an immutable value that is unknown at plan", _UNKNOWN_HELD),
    PeerCase("a second owner in another state", _OTHER_STATE),
    PeerCase("a second owner in the same state", _TWO_RESOURCES),
    PeerCase("quantities of a claim give an empty plan", _KINDS),
    PeerCase("quantities of containers give an empty plan", _KINDS),
    PeerCase("values of a Secret are hidden", _REDACTED),
    PeerCase("many objects in one apply", f"{_HERE}/test_many.py::test_many_objects_in_one_apply"),
    PeerCase(
        "for_each and a moved block keep the object",
        f"{_HERE}/test_import_and_ownership.py::test_a_renamed_resource_keeps_its_object",
    ),
    PeerCase("a managed field was edited: a plan that is not empty", _DRIFT),
    PeerCase("a managed field was edited: the apply restores it", _DRIFT),
    PeerCase(
        "a managed field was removed: the apply restores it",
        f"{_HERE}/test_lifecycle.py::test_a_declared_field_that_another_writer_removed_is_restored",
    ),
    PeerCase("an unmanaged field was edited: an empty plan", _NOTATION),
    PeerCase("the object was deleted: it is created again", _DELETED),
    PeerCase("the definition was removed: destroy is idempotent", _NO_DEFINITION),
    PeerCase("the object changes between the plan and its apply", _UPDATE_HELD),
    PeerCase("the object was made again by another writer", _LETS_GO),
    PeerCase(
        "an expired token in the state: a warning, and the plan still finds drift",
        f"{_HERE}/test_stale_credentials.py::"
        "test_a_plan_finds_drift_with_the_credentials_of_the_configuration_and_an_apply_stores_them",
    ),
    PeerCase("an ignored field is taken by another manager: an empty plan", _IGNORED),
    PeerCase("a field that is no longer ignored is set back", _IGNORED),
    PeerCase("a predicate in ignore_fields", _ELEMENT),
    PeerCase("import, and a plan without inconsistency", _IMPORTED),
    PeerCase("import with a generated configuration", _IMPORT_BLOCK),
    PeerCase(
        "import of an object that does not exist",
        f"{_HERE}/test_import_and_ownership.py::test_an_import_of_an_object_that_does_not_exist_is_an_error",
    ),
    PeerCase("an existing object of another writer", _IMPORTED),
    PeerCase(
        "lost annotations are restored",
        _INFERRED,
        differs="Restored without a warning: the plan shows the update, and the uid says that it is the same object.",
    ),
    PeerCase(
        "finalizers: force_destroy removes them",
        _HELD,
        differs="Never removed: a finalizer is another controller's. The error names it and what it waits for.",
    ),
    PeerCase("finalizers: delete_timeout ends the wait", _HELD),
    PeerCase(
        "a forced takeover",
        _CONFLICT,
        differs="Only with force_conflicts = true: taking a field from another tool is the author's decision.",
    ),
    PeerCase("a field of two managers with one value", _INFERRED),
    PeerCase("all conflicts are listed", _HELD),
    PeerCase(
        "the plan shows the manager before and after",
        _CONFLICT,
        differs="No attribute has the managers: an error at plan names the holder of each field before it is taken.",
    ),
    PeerCase("log in by a token", _LOGINS),
    PeerCase("log in by a client certificate", _LOGINS),
    PeerCase("log in by a context of a kubeconfig", _LOGINS),
    PeerCase("log in by a command", _LOGINS),
    PeerCase("another log-in to the same cluster is in place", _OTHER_CLUSTER),
)

_SATISFIED: Final = (
    f"{_HERE}/test_peer_waits.py::test_every_wait_is_satisfied_with_its_value_and_a_changed_one_waits_again_in_place"
)
_UNSATISFIED: Final = f"{_HERE}/test_peer_waits.py::test_a_wait_that_cannot_be_satisfied_says_why_and_leaves_the_object"
_LATER: Final = f"{_HERE}/test_wait.py::test_an_object_that_is_created_later_is_waited_for"
_RETRIED: Final = (
    f"{_HERE}/test_wait.py::test_a_wait_that_times_out_is_not_in_the_state_and_continues_with_the_next_apply"
)

WAITS: Final = (
    PeerCase("field status.phase of a Namespace, in an output", _SATISFIED),
    PeerCase("field_value with one entry", _SATISFIED),
    PeerCase("field_value with several entries", _SATISFIED),
    PeerCase("a claim that is bound", _SATISFIED),
    PeerCase("a condition", _SATISFIED),
    PeerCase("the rollout of a Deployment", _SATISFIED),
    PeerCase("the rollout of a StatefulSet", _SATISFIED),
    PeerCase("the rollout of a DaemonSet", _SATISFIED),
    PeerCase("waits other than field have no value", _SATISFIED),
    PeerCase("an impossible field times out, and the object exists", _UNSATISFIED),
    PeerCase("a path that is none", _UNSATISFIED),
    PeerCase("an object that never appears", _UNSATISFIED),
    PeerCase(
        "an unknown kind fails at once",
        _UNSATISFIED,
        differs="A kind may come later, by an operator or a chart: it is waited for until the timeout.",
    ),
    PeerCase("a value of the spec: volumeName", _SATISFIED),
    PeerCase("a value of the spec: clusterIP", _SATISFIED),
    PeerCase("a value of the metadata: uid", _SATISFIED),
    PeerCase("a value of the status: ingress with unlike elements", _SATISFIED),
    PeerCase("a failed Job shows its status", _UNSATISFIED),
    PeerCase("a changed wait_for waits again in place", _SATISFIED),
    PeerCase("a changed timeout is in place", _SATISFIED),
    PeerCase("a negative timeout is refused at validation", _UNSATISFIED),
    PeerCase("a timeout of zero is refused at validation", _UNSATISFIED),
    PeerCase("the rollout of a kind without one is refused at validation", _UNSATISFIED),
    PeerCase("a retry after a timeout succeeds with the same configuration", _RETRIED),
    PeerCase("a field that changed is refreshed", _LATER),
    PeerCase("an object that is created later, in a namespace", _LATER),
    PeerCase(
        "an object that is created later, cluster-scoped",
        f"{_HERE}/test_peer_waits.py::test_a_cluster_scoped_object_that_is_created_later_is_waited_for",
    ),
)

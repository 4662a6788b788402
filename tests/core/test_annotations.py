"""The annotations of ours and of Config Connector's: which are refused, which are warned of, and with which words."""

import pytest

from setpoint.core.schema.annotations import (
    ANNOTATIONS,
    KNOWN,
    AnnotationProblem,
    AnnotationScope,
    AnnotationTarget,
    annotation_problems,
    annotation_value,
    annotation_warnings,
    check_annotations,
)
from setpoint.core.values.messages import AnnotationTerm, Message, field_named_by
from setpoint.errors import ManifestInvalid

BUCKET = AnnotationTarget(
    "StorageBucket", ("cnrm.cloud.google.com/project-id", "cnrm.cloud.google.com/force-destroy", "setpoint.dev/own")
)
INSTANCE = AnnotationTarget("SQLInstance", ("cnrm.cloud.google.com/project-id",))
OBJECT = AnnotationTarget("KubernetesObject")
OWNER = AnnotationTarget("TrusteeConfig", is_owner=True)
STATE_INTO_SPEC = (
    "cnrm.cloud.google.com/state-into-spec has no effect on a StorageBucket: no live value is written into the spec "
    "here. Config Connector keeps the live value of a field that the spec leaves out, with merge and with absent: "
    'cnrm.cloud.google.com/ignore-unspecified-fields: "true" does so here, and "false" says that such a field goes '
    "back to its default"
)


def _problems(target: AnnotationTarget, **named: str) -> list[tuple[str, bool]]:
    """What is wrong, and whether it is refused, with `__` for the prefix and `_` for a dash."""
    prefixes = {"cnrm": "cnrm.cloud.google.com/", "ours": "setpoint.dev/"}
    found = {}
    for name, text in named.items():
        prefix, _, rest = name.partition("__")
        found[prefixes[prefix] + rest.replace("_", "-")] = text
    return [(str(one.message), one.is_refused) for one in annotation_problems(found, target)]


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("cnrm.cloud.google.com/ignore-unspecified-field", "cnrm.cloud.google.com/ignore-unspecified-fields"),
        ("cnrm.cloud.google.com/deletion-polcy", "cnrm.cloud.google.com/deletion-policy"),
        ("cnrm.cloud.google.com/Deletion-Policy", "cnrm.cloud.google.com/deletion-policy"),
        ("cnrm.cloud.google.com/project", "cnrm.cloud.google.com/project-id"),
        ("setpoint.dev/managment", "setpoint.dev/management"),
        ("setpoint.dev/deletion-policy", "cnrm.cloud.google.com/deletion-policy"),
        ("cnrm.cloud.google.com/management", "setpoint.dev/management"),
    ],
)
def test_a_key_near_a_known_one_is_refused_with_the_one_that_may_be_meant(key: str, meant: str) -> None:
    with pytest.raises(ManifestInvalid) as refused:
        check_annotations({"team": "a", key: "x"}, BUCKET)

    assert str(refused.value) == f"{key} is unknown: did you mean {meant}?"
    assert field_named_by(refused.value) == AnnotationTerm(key)


def test_any_other_unknown_key_is_a_warning() -> None:
    check_annotations({"setpoint.dev/colour": "red"}, BUCKET)

    problem = "setpoint.dev/colour is unknown, and has no effect: correct its name, or leave it out"
    assert annotation_warnings({"setpoint.dev/colour": "red"}, BUCKET) == (
        AnnotationProblem("setpoint.dev/colour", Message(problem)),
    )


@pytest.mark.parametrize(
    "key",
    [
        "deletion-policy",
        "example.com/deletion-policy",
        "alpha.cnrm.cloud.google.com/reconciler",
        "test.cnrm.cloud.google.com/reconcile-cookie",
        "my.setpoint.dev/management",
        "a.setpoint.dev/management",
        "setpoint.development.example/management",
        "setpont.dev/colour",
        "kubectl.kubernetes.io/last-applied-configuration",
    ],
)
def test_annotations_of_other_tools_are_not_judged(key: str) -> None:
    assert list(annotation_problems({key: "x"}, BUCKET)) == []


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("setpont.dev/management", "setpoint.dev/management"),
        ("cnrm.cloud.gogle.com/deletion-policy", "cnrm.cloud.google.com/deletion-policy"),
        ("Cnrm.cloud.google.com/deletion-policy", "cnrm.cloud.google.com/deletion-policy"),
    ],
)
def test_a_known_name_after_a_misspelt_prefix_is_refused(key: str, meant: str) -> None:
    (problem,) = annotation_problems({key: "x"}, BUCKET)

    assert (str(problem.message), problem.is_refused) == (f"{key} is unknown: did you mean {meant}?", True)


def test_of_many_unknown_annotations_only_the_first_are_looked_into() -> None:
    found = list(annotation_problems({f"setpoint.dev/x{number}": "" for number in range(1000)}, BUCKET))

    assert len(found) == 51
    assert found[-1].is_refused
    assert str(found[-1].message) == "setpoint.dev/x50 is unknown, and 50 others are: leave them out"


def test_an_annotation_that_a_kind_reads_is_known_on_that_kind() -> None:
    assert _problems(BUCKET, ours__own="x") == []
    assert _problems(INSTANCE, ours__own="x") == [
        ("setpoint.dev/own is unknown, and has no effect: correct its name, or leave it out", False)
    ]


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("cnrm__deletion_policy", "ABANDON", "is 'ABANDON': write abandon or delete, in lower case"),
        ("cnrm__deletion_policy", "", "is '': write abandon or delete, in lower case"),
        ("cnrm__deletion_policy", "abandon\n", "is 'abandon\\n': write abandon or delete, in lower case"),
        ("cnrm__force_destroy", "yes", 'is \'yes\': write "true" or "false"'),
        ("cnrm__ignore_unspecified_fields", "True", 'is \'True\': write "true" or "false"'),
        ("ours__management", "pause", "is 'pause': write one of full, observe, paused"),
        (
            "cnrm__reconcile_interval_in_seconds",
            "10m",
            'is \'10m\': write whole seconds, such as "600", or "0" for never again',
        ),
        ("cnrm__state_into_spec", "Merge", "is 'Merge': write merge or absent, or leave it out"),
    ],
)
def test_a_value_that_is_not_allowed_is_refused_with_those_that_are(key: str, text: str, message: str) -> None:
    ((found, is_refused),) = _problems(BUCKET, **{key: text})

    assert is_refused
    assert found.partition(" ")[2] == message


def test_the_values_that_are_allowed_are_no_problem() -> None:
    for text in ("abandon", "delete"):
        assert _problems(BUCKET, cnrm__deletion_policy=text) == []
    for text in ("full", "observe", "paused"):
        assert _problems(BUCKET, ours__management=text) == []
    for text in ("true", "false"):
        assert _problems(BUCKET, cnrm__force_destroy=text, cnrm__ignore_unspecified_fields=text) == []
    for text in ("0", "600"):
        assert _problems(BUCKET, cnrm__reconcile_interval_in_seconds=text) == []
    for text in ("three-way", "two-way"):
        assert _problems(OWNER, ours__merge=text) == []
    assert _problems(OBJECT, ours__delete_protection="false", cnrm__deletion_policy="abandon") == []
    assert _problems(OBJECT, ours__delete_protection="true") == [
        (
            "setpoint.dev/delete-protection is 'true': write \"false\" to lift the protection; spec.deleteProtection "
            "sets it",
            True,
        )
    ]


@pytest.mark.parametrize("text", ["merge", "absent"])
def test_state_into_spec_names_the_annotation_that_means_the_same_here(text: str) -> None:
    assert _problems(BUCKET, cnrm__state_into_spec=text) == [(STATE_INTO_SPEC, False)]
    assert _problems(BUCKET, cnrm__state_into_spec=text, cnrm__ignore_unspecified_fields="true") == []
    assert _problems(BUCKET, cnrm__state_into_spec=text, cnrm__ignore_unspecified_fields="false") == []


@pytest.mark.parametrize(
    ("target", "key", "message"),
    [
        (
            INSTANCE,
            "cnrm__force_destroy",
            "has no effect on a SQLInstance: it is for StorageBucket and kinds of plug-ins that read it; leave it out",
        ),
        (
            OBJECT,
            "cnrm__project_id",
            "has no effect on a KubernetesObject: it is for SQLInstance, SQLDatabase, SQLUser, StorageBucket, "
            "IAMPolicy, IAMPartialPolicy, IAMPolicyMember, IAMServiceAccountKey and kinds of plug-ins that read it; "
            "leave it out",
        ),
        (
            BUCKET,
            "ours__merge",
            "has no effect on a StorageBucket: it is for kinds that generate other objects, such as "
            "TrusteeConfig and KbsConfig; leave it out",
        ),
        (
            BUCKET,
            "ours__delete_protection",
            "has no effect on a StorageBucket: it is for KubernetesObject; leave it out",
        ),
        (
            BUCKET,
            "ours__google_service_account",
            "has no effect on a StorageBucket: it is for a Namespace; leave it out",
        ),
        (
            BUCKET,
            "cnrm__folder_id",
            "has no effect on a StorageBucket: the kinds here belong to a project: write "
            "cnrm.cloud.google.com/project-id",
        ),
        (
            BUCKET,
            "cnrm__remove_default_node_pool",
            "has no effect on a StorageBucket: Config Connector reads it on a ContainerCluster: leave it out",
        ),
    ],
)
def test_a_known_one_of_other_kinds_is_a_warning(target: AnnotationTarget, key: str, message: str) -> None:
    ((found, is_refused),) = _problems(target, **{key: "nonsense"})

    assert not is_refused
    assert found.partition(" ")[2] == message


@pytest.mark.parametrize("name", ["unmanaged", "default_to_gcp_fields", "ignore_unspecified_fields"])
def test_a_kubernetes_object_refuses_field_policies(name: str) -> None:
    assert _problems(OBJECT, **{f"cnrm__{name}": "x"}) == [
        (
            f"cnrm.cloud.google.com/{name.replace('_', '-')} has no effect on a KubernetesObject: fields that its "
            "manifest leaves out are not managed anyway; list others to ignore in spec.ignoreFields",
            True,
        )
    ]


@pytest.mark.parametrize(
    "key",
    [
        "cnrm__deletion_policy",
        "cnrm__unmanaged",
        "cnrm__default_to_gcp_fields",
        "cnrm__ignore_unspecified_fields",
        "cnrm__state_into_spec",
        "cnrm__project_id",
        "cnrm__force_destroy",
        "ours__delete_protection",
        "ours__google_service_account",
    ],
)
def test_an_owner_refuses_what_has_no_effect_on_it(key: str) -> None:
    ((found, is_refused),) = _problems(OWNER, **{key: "x"})

    assert is_refused
    assert " has no effect on a TrusteeConfig: " in found


def test_an_owner_takes_what_has_an_effect_on_it() -> None:
    assert (
        _problems(
            OWNER,
            ours__management="observe",
            ours__merge="two-way",
            ours__reconcile_requested_at="now",
            cnrm__reconcile_interval_in_seconds="60",
        )
        == []
    )


@pytest.mark.parametrize("target", [BUCKET, OBJECT, OWNER], ids=lambda target: target.kind)
def test_records_of_controllers_are_silent(target: AnnotationTarget) -> None:
    keys = (
        "last-changed-cookie",
        "observed-secret-versions",
        "mutable-but-unreadable-fields",
        "management-conflict-prevention-policy",
        "supports-ssa",
        "blueprint",
    )
    theirs = {f"cnrm.cloud.google.com/{key}": "{}" for key in keys}
    ours = {"setpoint.dev/management-before-export": "full", "setpoint.dev/abandoned-by-migration": "true"}

    assert list(annotation_problems({**theirs, **ours}, target)) == []


def test_the_value_of_an_annotation_is_checked_wherever_it_is_read() -> None:
    assert annotation_value({}, "cnrm.cloud.google.com/deletion-policy") is None
    assert annotation_value({"cnrm.cloud.google.com/project-id": "p"}, "cnrm.cloud.google.com/project-id") == "p"
    with pytest.raises(ManifestInvalid, match="write abandon or delete, in lower case"):
        annotation_value({"cnrm.cloud.google.com/deletion-policy": "keep"}, "cnrm.cloud.google.com/deletion-policy")


def test_every_key_is_listed_once_with_a_meaning() -> None:
    assert len(KNOWN) == len(ANNOTATIONS)
    assert [one.key for one in ANNOTATIONS if not one.meaning] == []
    assert {one.scope for one in ANNOTATIONS} == set(AnnotationScope)

"""The merge of an edited KbsConfig, case by case."""

import pytest

from setpoint.core.merge.merge_report import Resolution, report_summary
from setpoint.core.merge.threeway import remember
from setpoint.core.schema.shape import paths_of, shape_of
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path
from setpoint.kinds.trustee.kbs_config import KbsConfigSpec
from setpoint.kinds.trustee.trustee_config import editable_fields
from tests.kinds.trustee.edit_policies import EditPolicy, field_policies
from tests.kinds.trustee.upstream import MergeDialect, dialect_fields, merge_kbs_config

OURS = editable_fields("tc")


def spec(**fields: Json) -> dict[str, Json]:
    return {"kbsConfigMapName": "tc-kbs-config", "KbsDeploymentSpec": {"replicas": 1}, **fields}


def resolutions(last: Json, live: Json, generated: Json) -> dict[str, Resolution]:
    merged = merge_kbs_config(remember(last, OURS), live, generated, OURS)
    return {str(one.path): one.resolution for one in merged.findings}


def test_every_field_has_one_policy() -> None:
    leaves = {path for path in paths_of(shape_of(KbsConfigSpec)) if "[" not in path}
    holders = {path for path in leaves if any(other.startswith(f"{path}.") for other in leaves)}

    assert set(field_policies()) == leaves - holders


def test_six_fields_are_editable() -> None:
    theirs = {field: policy for field, policy in field_policies().items() if policy is not EditPolicy.MANAGED}

    assert theirs == {
        "KbsDeploymentSpec.replicas": EditPolicy.SCALAR,
        "KbsEnvVars": EditPolicy.MAP,
        "kbsSecretResources": EditPolicy.LIST,
        "kbsLocalCertCacheSpec.secrets": EditPolicy.LIST,
        "ibmSEConfigSpec.certStorePvc": EditPolicy.SCALAR,
        "kbsAttestationPolicyConfigMapName": EditPolicy.SCALAR,
    }


@pytest.mark.parametrize(
    ("dialect", "kept"),
    [
        (MergeDialect.SETPOINT, "mine"),
        (MergeDialect.HEAD, "generated"),
        (MergeDialect.V0_17_TO_V0_19, "generated"),
        (MergeDialect.BRIEF, "mine"),
        (MergeDialect.INITIAL, "mine"),
    ],
)
def test_dialects_differ_in_the_attestation_policy(dialect: MergeDialect, kept: str) -> None:
    live, generated = ({"kbsAttestationPolicyConfigMapName": name} for name in ("mine", "generated"))

    merged = merge_kbs_config(None, live, generated, dialect_fields("tc", dialect))

    assert merged.spec == {"kbsAttestationPolicyConfigMapName": kept}


@pytest.mark.parametrize(
    ("dialect", "is_kept"), [(MergeDialect.SETPOINT, False), (MergeDialect.HEAD, False), (MergeDialect.BRIEF, True)]
)
def test_the_generated_claim_is_no_edit_in_the_newer_dialects(dialect: MergeDialect, is_kept: bool) -> None:
    live: Json = {"ibmSEConfigSpec": {"certStorePvc": "tc-ibmse-certstore-pvc"}}

    merged = merge_kbs_config(None, live, {}, dialect_fields("tc", dialect))

    assert bool(merged.changed) is is_kept
    assert (merged.spec == live) is is_kept


def test_a_profile_switch_removes_the_debug_log() -> None:
    live = spec(KbsEnvVars={"RUST_LOG": "debug", "MINE": "1"})
    last = remember(spec(KbsEnvVars={"RUST_LOG": "debug"}), OURS)

    merged = merge_kbs_config(last, live, spec(), OURS)

    assert merged.spec == spec(KbsEnvVars={"MINE": "1"})
    assert (
        report_summary(merged.findings)
        == "1 preserved: KbsConfig KbsEnvVars.MINE; 1 retired: KbsConfig KbsEnvVars.RUST_LOG"
    )


def test_the_merge_report_says_which_edit_was_kept_and_why() -> None:
    last = spec(KbsEnvVars={"A": "1", "B": "1"}, kbsSecretResources=["old", "status"])
    live = spec(KbsEnvVars={"A": "2", "C": "3"}, kbsSecretResources=["old", "mine"], kbsConfigMapName="mine")
    generated = spec(KbsEnvVars={"A": "3", "B": "1"}, kbsSecretResources=["status"])

    assert resolutions(last, live, generated) == {
        "KbsEnvVars.A": Resolution.CONFLICTING,
        "KbsEnvVars.B": Resolution.PRESERVED,
        "KbsEnvVars.C": Resolution.PRESERVED,
        "kbsSecretResources.mine": Resolution.PRESERVED,
        "kbsSecretResources.status": Resolution.PRESERVED,
        "kbsConfigMapName": Resolution.REVERTED,
        "kbsSecretResources.old": Resolution.RETIRED,
    }


def test_the_merge_report_distinguishes_a_removal_from_a_value() -> None:
    merged = merge_kbs_config(
        remember(spec(KbsEnvVars={"A": "1"}, kbsSecretResources=["a"]), OURS),
        spec(KbsEnvVars={}, kbsSecretResources=["a", "b"]),
        spec(KbsEnvVars={"A": "1"}, kbsSecretResources=["a"]),
        OURS,
    )

    assert [str(one) for one in merged.findings] == [
        "KbsConfig KbsEnvVars.A: removed by a person, and stays so: this field is theirs to set",
        "KbsConfig kbsSecretResources.b: a person's value is kept: this field is theirs to set",
    ]


def test_a_two_way_merge_restores_a_removed_entry() -> None:
    live, generated = spec(kbsSecretResources=[]), spec(kbsSecretResources=["status"])
    last = remember(generated, OURS)

    three = merge_kbs_config(last, live, generated, OURS)
    two = merge_kbs_config(None, live, generated, OURS)

    assert three.spec is live
    assert two.spec == generated


def test_another_order_is_an_edit_without_last_generated_values_and_is_always_kept() -> None:
    live, generated = spec(kbsSecretResources=["b", "a"]), spec(kbsSecretResources=["a", "b"])

    first = merge_kbs_config(None, live, generated, OURS)
    then = merge_kbs_config(first.memory, live, generated, OURS)

    assert first.changed == (Path.parse("kbsSecretResources"),)
    assert first.spec is live
    assert then.spec is live


def test_a_map_without_an_entry_counts_as_changed() -> None:
    live, generated = spec(KbsEnvVars={"A": "1"}), spec(KbsEnvVars={"A": "1", "B": "2"})

    merged = merge_kbs_config(None, live, generated, OURS)

    assert merged.changed == (Path.parse("KbsEnvVars"),)
    assert merged.spec == generated

"""Laws of the merge of an edited KbsConfig, in every dialect."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.merge.threeway import last_generated_from_data, last_generated_to_data, remember
from setpoint.core.values.json_types import Missing
from setpoint.core.values.paths import Path, get_at
from tests.kinds.trustee.cases import full
from tests.kinds.trustee.edit_policies import field_policies
from tests.kinds.trustee.upstream import MergeDialect, dialect_fields, merge_kbs_config

pytestmark = pytest.mark.laws

Spec = dict[str, Any]

names = st.sampled_from(("a", "b", "c"))
texts = st.sampled_from(("", "x", "y", "tc-ibmse-certstore-pvc"))
cache = st.fixed_dictionaries({"secretName": names}, optional={"mountPath": st.sampled_from(("", "/1", "/2"))})
specs: st.SearchStrategy[Spec] = st.fixed_dictionaries(
    {},
    optional={
        "KbsDeploymentSpec": st.fixed_dictionaries({}, optional={"replicas": st.sampled_from((None, 0, 1, 2))}),
        "KbsEnvVars": st.none() | st.dictionaries(names, texts, max_size=3),
        "kbsSecretResources": st.none() | st.lists(names, max_size=3, unique=True),
        "kbsLocalCertCacheSpec": st.fixed_dictionaries(
            {}, optional={"secrets": st.lists(cache, max_size=3, unique_by=lambda one: one["secretName"])}
        ),
        "ibmSEConfigSpec": st.fixed_dictionaries({}, optional={"certStorePvc": texts}),
        "kbsAttestationPolicyConfigMapName": texts,
        "kbsConfigMapName": texts,
        "kbsHttpsKeySecretName": texts,
        "kbsServiceType": texts,
    },
)
tables = st.sampled_from(MergeDialect).map(lambda dialect: dialect_fields("tc", dialect))


@given(specs, specs, specs, tables)
def test_a_merge_is_idempotent(last: Spec, live: Spec, new: Spec, table: Any) -> None:
    once = merge_kbs_config(remember(last, table), live, new, table)
    again = merge_kbs_config(once.memory, once.spec, new, table)

    assert again.spec is once.spec
    assert again.conflicts == ()


@given(specs, specs, tables)
def test_a_two_way_merge_is_idempotent(live: Spec, new: Spec, table: Any) -> None:
    once = merge_kbs_config(None, live, new, table)

    assert merge_kbs_config(None, once.spec, new, table).spec is once.spec


@given(specs, specs, tables)
def test_without_changes_and_removals_both_merges_agree(edited: Spec, new: Spec, table: Any) -> None:
    live = with_all_entries(edited, new)

    three = merge_kbs_config(remember(new, table), live, new, table)
    two = merge_kbs_config(None, live, new, table)

    assert full(three.spec) == full(two.spec)
    assert three.conflicts == ()


def with_all_entries(edited: Spec, new: Spec) -> Spec:
    """`edited` with every entry of `new` that it lacks."""
    live = {**edited, "KbsEnvVars": {**(new.get("KbsEnvVars") or {}), **(edited.get("KbsEnvVars") or {})}}
    live["kbsSecretResources"] = list(dict.fromkeys([*secrets(edited), *secrets(new)]))
    known = {one["secretName"] for one in cached(edited)}
    more = [one for one in cached(new) if one["secretName"] not in known]
    return {**live, "kbsLocalCertCacheSpec": {"secrets": [*cached(edited), *more]}}


def secrets(spec: Spec) -> list[str]:
    return spec.get("kbsSecretResources") or []


def cached(spec: Spec) -> list[Spec]:
    return (spec.get("kbsLocalCertCacheSpec") or {}).get("secrets") or []


@given(specs, specs, specs, tables)
def test_managed_fields_are_always_as_generated(last: Spec, live: Spec, new: Spec, table: Any) -> None:
    merged = merge_kbs_config(remember(last, table), live, new, table)

    for field in field_policies():
        path = Path.parse(field)
        if path not in table:
            assert empty_to_none(get_at(merged.spec, path)) == empty_to_none(get_at(new, path))


@given(specs, specs, specs, tables)
def test_null_is_empty(last: Spec, live: Spec, new: Spec, table: Any) -> None:
    memory = remember(last, table)

    merged = merge_kbs_config(memory, live, new, table)
    trimmed = merge_kbs_config(remember(full(last) or {}, table), full(live) or {}, full(new) or {}, table)

    assert full(trimmed.spec) == full(merged.spec)
    assert trimmed.conflicts == merged.conflicts


@given(specs, specs, specs, tables)
def test_every_merged_value_is_live_or_generated(last: Spec, live: Spec, new: Spec, table: Any) -> None:
    merged = merge_kbs_config(remember(last, table), live, new, table)

    for path in (*table, *map(Path.parse, field_policies())):
        made = get_at(merged.spec, path)
        sides = [get_at(live, path), get_at(new, path)]
        for part in parts(made):
            assert any(part in parts(side) for side in sides), path


@given(specs, specs, specs, tables)
def test_a_list_keeps_its_order_and_grows_at_its_end(last: Spec, live: Spec, new: Spec, table: Any) -> None:
    merged = merge_kbs_config(remember(last, table), live, new, table).spec
    assert isinstance(merged, dict)
    mine, theirs = (spec.get("kbsSecretResources") or [] for spec in (live, new))

    made = merged.get("kbsSecretResources") or []

    stayed = [entry for entry in made if entry in mine]
    assert stayed == [entry for entry in mine if entry in made]
    assert made[: len(stayed)] == stayed
    assert made[len(stayed) :] == [entry for entry in theirs if entry in made and entry not in mine]


@given(specs, specs, specs, tables)
def test_a_list_loses_exactly_the_entries_that_are_no_longer_generated(
    last: Spec, live: Spec, new: Spec, table: Any
) -> None:
    merged = merge_kbs_config(remember(last, table), live, new, table).spec
    assert isinstance(merged, dict)
    then, mine, now = (set(spec.get("kbsSecretResources") or ()) for spec in (last, live, new))

    assert set(merged.get("kbsSecretResources") or ()) == (mine - (then - now)) | (now - then)


@given(specs, tables)
def test_last_generated_values_survive_the_status(spec: Spec, table: Any) -> None:
    memory = remember(spec, table)

    assert last_generated_from_data(last_generated_to_data(memory)) == memory


def parts(value: Any) -> list[Any]:
    """The entries of a value, or the value itself."""
    if isinstance(value, dict):
        return list(value.items())
    return value if isinstance(value, list) else [empty_to_none(value)]


def empty_to_none(value: Any) -> Any:
    return None if isinstance(value, Missing) or value in ("", [], {}) else value

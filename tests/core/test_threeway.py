"""Three-way merge: 47 cases of trustee-operator, then one claim at a time."""

import json
from pathlib import Path as File
from typing import Any, NamedTuple

import pytest

from setpoint.core.merge.threeway import (
    EditableFields,
    EntryList,
    EntryMap,
    LastGenerated,
    WholeValue,
    last_generated_from_data,
    last_generated_to_data,
    merge,
    remember,
)
from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path

Case = dict[str, Any]

CASES: list[Case] = json.loads((File(__file__).parents[1] / "data" / "merge_cases.json").read_text("utf-8"))
REMEMBERED = [case for case in CASES if "last_generated" in case]

ALSO_EDITABLE = {
    "head": (),
    "v0.17-v0.19": (),
    "brief": ("kbsAttestationPolicyConfigMapName",),
    "initial": (
        "kbsAttestationPolicyConfigMapName",
        "kbsHttpsKeySecretName",
        "kbsHttpsCertSecretName",
        "tdxConfigSpec.kbsTdxConfigMapName",
    ),
}


def table_of(case: Case) -> EditableFields:
    """The editable fields, as trustee-operator had them in the dialect of `case`."""
    auto = (f"{case['trusteeconfig_name']}-ibmse-certstore-pvc",) if case["dialect"] == "head" else ()
    return {
        Path.parse("KbsDeploymentSpec.replicas"): WholeValue(),
        Path.parse("KbsEnvVars"): EntryMap(),
        Path.parse("kbsSecretResources"): EntryList(),
        Path.parse("kbsLocalCertCacheSpec.secrets"): EntryList("secretName"),
        Path.parse("ibmSEConfigSpec.certStorePvc"): WholeValue(own=auto),
        **{Path.parse(field): WholeValue() for field in ALSO_EDITABLE[case["dialect"]]},
    }


def full(value: Any, name: str = "") -> Any:
    """`value` without what is empty; a mountPath of "" is a value."""
    if isinstance(value, dict):
        members = {key: full(member, key) for key, member in value.items()}
        return {key: member for key, member in members.items() if member is not None} or None
    if isinstance(value, list):
        return [full(element) for element in value] or None
    return None if value == "" and name != "mountPath" else value


def covered(field: str, paths: tuple[Path, ...]) -> set[Path]:
    return {path for path in paths if Path.parse(field).covers(path)}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_without_last_generated_the_two_way_rules_apply(case: Case) -> None:
    merged = merge(None, case["current"], case["generated"], table_of(case))

    assert full(merged.value) == full(case["expected"])
    assert merged.conflicts == ()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_two_way_merge_reports_the_edited_fields(case: Case) -> None:
    edits = merge(None, case["current"], case["generated"], table_of(case)).edits
    by_field = {field: covered(field, edits) for field in case["detected_fields"]}

    assert bool(edits) is case["manual_change_detected"]
    assert all(by_field.values())
    assert set().union(*by_field.values()) == set(edits)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_two_way_merge_writes_only_where_the_child_differs(case: Case) -> None:
    value = merge(None, case["current"], case["generated"], table_of(case)).value

    assert (full(value) != full(case["current"])) is case["update_called"]
    assert (value is not case["current"]) is case["update_called"]


@pytest.mark.parametrize("case", REMEMBERED, ids=lambda case: case["name"])
def test_with_last_generated_the_three_way_rules_apply(case: Case) -> None:
    last = remember(case["last_generated"], table_of(case))

    merged = merge(last, case["current"], case["generated"], table_of(case))

    assert full(merged.value) == full(case["expected_three_way"])
    assert texts(merged.conflicts) == case["three_way_conflicts"]


# --- One claim at a time ------------------------------------------------------------------------------------

TABLE: EditableFields = {
    Path.parse("size.replicas"): WholeValue(),
    Path.parse("size.claim"): WholeValue(own=("auto",)),
    Path.parse("env"): EntryMap(),
    Path.parse("secrets"): EntryList(),
    Path.parse("volumes"): EntryList("name"),
}


class MergeSummary(NamedTuple):
    """A merge, its paths as text."""

    value: Json
    edits: list[str]
    conflicts: list[str]
    reverted: list[str]


def summarize_merge(last: Json, live: Json, generated: Json) -> MergeSummary:
    merged = merge(remember(last, TABLE), live, generated, TABLE)
    return MergeSummary(merged.value, texts(merged.edits), texts(merged.conflicts), texts(merged.reverted))


def texts(paths: tuple[Path, ...]) -> list[str]:
    return [str(path) for path in paths]


def replicas(count: Json) -> Json:
    return {"size": {"replicas": count}}


def volume(name: str, path: str = "/old") -> Json:
    return {"name": name, "path": path}


def test_a_scalar_that_both_sides_changed_keeps_the_edit_and_is_a_conflict() -> None:
    value, edits, conflicts, _ = summarize_merge(replicas(1), replicas(5), replicas(2))

    assert value == {"size": {"replicas": 5}}
    assert (edits, conflicts) == (["size.replicas"], ["size.replicas"])


@pytest.mark.parametrize("edit", [0, False])
def test_zero_and_false_are_values(edit: Json) -> None:
    value, edits, _, _ = summarize_merge(replicas(1), replicas(edit), replicas(1))

    assert same(value, {"size": {"replicas": edit}})
    assert edits == ["size.replicas"]


@pytest.mark.parametrize("emptied", [{}, {"size": None}, {"size": {}}, {"size": {"replicas": None}}])
def test_an_emptied_scalar_takes_the_generated_value(emptied: Json) -> None:
    assert summarize_merge(replicas(1), emptied, replicas(2)) == ({"size": {"replicas": 2}}, [], [], [])


def test_an_object_with_only_empty_members_counts_as_empty() -> None:
    merged = summarize_merge(replicas({"min": 1}), replicas({"min": None, "max": {}}), replicas({"min": 2}))

    assert merged == ({"size": {"replicas": {"min": 2}}}, [], [], [])


def test_a_value_of_the_owners_own_is_never_an_edit() -> None:
    merged = summarize_merge({"size": {"claim": "old"}}, {"size": {"claim": "auto"}}, {"size": {"claim": "new"}})

    assert merged == ({"size": {"claim": "new"}}, [], [], [])


@pytest.mark.parametrize("last", [None, "old a", "mine"], ids=["no memory", "another version", "an edit"])
def test_a_value_that_was_generated_before_stays_in_its_variant_and_is_replaced_in_another(last: Json) -> None:
    table = {Path(("text",)): WholeValue(variant_of=lambda text: str(text)[-1] if str(text)[-2:-1] == " " else None)}
    memory = None if last is None else remember({"text": last}, table)

    kept = merge(memory, {"text": "old a"}, {"text": "new a"}, table)
    replaced = merge(memory, {"text": "old a"}, {"text": "new b"}, table)
    edited = merge(memory, {"text": "edited"}, {"text": "new b"}, table)

    assert (kept.value, kept.edits) == ({"text": "old a"}, ())
    assert (replaced.value, replaced.edits, replaced.conflicts) == ({"text": "new b"}, (), ())
    assert edited.value == {"text": "edited"}


def test_in_a_map_an_empty_text_is_a_value_and_null_is_absent() -> None:
    last, live, generated = {"A": "1"}, {"A": "", "B": None}, {"A": "1", "B": "2"}

    value, edits, _, _ = summarize_merge({"env": last}, {"env": live}, {"env": generated})

    assert value == {"env": {"A": "", "B": "2"}}
    assert edits == ["env.A"]


def test_a_map_entry_that_the_owner_renames_is_renamed() -> None:
    assert summarize_merge({"env": {"A": "1"}}, {"env": {"A": "1"}}, {"env": {"B": "1"}}).value == {"env": {"B": "1"}}


def test_a_removed_map_entry_stays_removed_and_is_a_conflict_once_the_owner_changes_it() -> None:
    last, live, generated = {"A": "1", "B": "1", "C": "1"}, {"C": "1"}, {"A": "1", "B": "2", "C": "1"}

    value, edits, conflicts, _ = summarize_merge({"env": last}, {"env": live}, {"env": generated})

    assert value == {"env": {"C": "1"}}
    assert (edits, conflicts) == (["env.A", "env.B"], ["env.B"])


def test_a_list_keeps_the_live_order_drops_retired_entries_and_appends_new_ones() -> None:
    value, edits, conflicts, _ = summarize_merge(
        {"secrets": ["a", "b", "gone", "kept"]},
        {"secrets": ["mine", "kept", "gone", "a"]},
        {"secrets": ["new", "a", "b", "kept"]},
    )

    assert value == {"secrets": ["mine", "kept", "a", "new"]}
    assert (edits, conflicts) == (["secrets.b", "secrets.mine"], [])


def test_a_tuple_is_a_list() -> None:
    live: Json = {"secrets": ("mine", "a"), "tags": (1, 2), "none": ()}

    assert summarize_merge({"secrets": ("a",)}, live, {"secrets": ["a"], "tags": [1, 2]}).value is live


def test_the_order_of_the_last_generated_list_is_ignored() -> None:
    there, back = remember({"secrets": ["a", "b"]}, TABLE), remember({"secrets": ["b", "a"]}, TABLE)

    assert there == back


def test_a_keyed_entry_is_kept_replaced_or_retired_by_its_own_history() -> None:
    value, edits, conflicts, _ = summarize_merge(
        {"volumes": [volume("same"), volume("edited"), volume("gone"), volume("torn")]},
        {"volumes": [volume("torn", "/mine"), volume("edited", "/mine"), volume("gone"), volume("same")]},
        {"volumes": [volume("same", "/new"), volume("edited")]},
    )

    assert value == {"volumes": [volume("torn", "/mine"), volume("edited", "/mine"), volume("same", "/new")]}
    assert edits == ["volumes[name=edited]", "volumes[name=torn]"]
    assert conflicts == ["volumes[name=torn]"]


def test_a_list_of_objects_without_a_key_is_one_value() -> None:
    table: EditableFields = {Path.parse("rules"): WholeValue()}
    live: Json = {"rules": [{"port": 1}, {"port": 2}]}

    merged = merge(remember({"rules": [{"port": 1}]}, table), live, {"rules": [{"port": 3}]}, table)

    assert merged.value is live
    assert merged.conflicts == (Path.parse("rules"),)


# --- Lists with duplicate or missing keys -----------------------------------------------------------------------


def test_entries_with_the_same_name_are_distinguished_by_their_order() -> None:
    value, edits, conflicts, _ = summarize_merge(
        {"volumes": [volume("x", "/1")]},
        {"volumes": [volume("x", "/1"), volume("x", "/2")]},
        {"volumes": [volume("x", "/3")]},
    )

    assert value == {"volumes": [volume("x", "/3"), volume("x", "/2")]}
    assert (edits, conflicts) == (['volumes[name="x#2"]'], [])


def test_an_entry_without_its_key_is_identified_by_its_content() -> None:
    last: Json = [{"path": "/old"}]
    live: Json = ["text", {"path": "/mine"}, {"path": "/old"}]

    value, _, conflicts, _ = summarize_merge({"volumes": last}, {"volumes": live}, {})

    assert value == {"volumes": ["text", {"path": "/mine"}]}
    assert conflicts == []


def test_a_number_names_an_entry_as_json_prints_it() -> None:
    value, edits, _, _ = summarize_merge({"volumes": [{"name": 1}]}, {}, {"volumes": [{"name": 1.0}]})

    assert value == {}
    assert edits == ["volumes[name=1]"]


@pytest.mark.parametrize("field", ["env", "secrets", "volumes"])
@pytest.mark.parametrize(("live", "generated"), [("text", ["a"]), (["a"], 7), ({"a": "b"}, "text")])
def test_a_value_of_the_wrong_shape_is_overwritten(field: str, live: Json, generated: Json) -> None:
    merged = summarize_merge({}, {field: live}, {field: generated})

    assert merged == ({field: generated}, [], [], [field])


# --- Managed fields and sharing -----------------------------------------------------------------------------


def test_an_edited_managed_field_is_reverted_and_reported() -> None:
    merged = summarize_merge({"a": {"b": 1, "c": [1]}}, {"a": {"b": 2, "c": []}}, {"a": {"b": 1, "c": [1]}})

    assert merged == ({"a": {"b": 1, "c": [1]}}, [], [], ["a.b", "a.c"])


def test_a_managed_field_that_only_the_owner_changed_is_not_reported() -> None:
    merged = summarize_merge({"a": {"b": 1}, "gone": "x"}, {"a": {"b": 1}, "gone": "x"}, {"a": "text", "new": 1})

    assert merged == ({"a": "text", "new": 1}, [], [], [])


def test_a_managed_field_that_both_sides_changed_is_reported_because_the_edit_is_lost() -> None:
    merged = summarize_merge({"a": 1}, {"a": 2}, {"a": 3})

    assert merged == ({"a": 3}, [], [], ["a"])


def test_a_two_way_merge_reports_every_managed_difference() -> None:
    merged = merge(None, {"a": 1, "same": 1, "empty": []}, {"b": 2, "same": 1}, TABLE)

    assert merged.value == {"same": 1, "empty": [], "b": 2}
    assert merged.reverted == (Path.parse("a"), Path.parse("b"))


def test_another_form_of_empty_is_not_written() -> None:
    live: Json = {"a": {}, "env": {"A": None}, "secrets": None, "size": "", "list": [{"b": None}]}
    generated: Json = {"size": {"claim": None}, "volumes": [], "env": {}, "list": [{"b": ""}], "c": {"d": {}}}

    merged = merge(remember({}, TABLE), live, generated, TABLE)

    assert merged.value is live
    assert (merged.edits, merged.conflicts, merged.reverted) == ((), (), ())


def test_parts_that_did_not_change_are_shared() -> None:
    live: dict[str, Json] = {"a": {"x": 1}, "env": {"A": "mine"}, "b": {"y": 1}}
    generated: dict[str, Json] = {"a": {"x": 1}, "env": {"A": "yours"}, "b": {"y": 2}}

    value = merge(remember(generated, TABLE), live, generated, TABLE).value

    assert isinstance(value, dict)
    assert value["a"] is live["a"]
    assert value["env"] is live["env"]
    assert value["b"] is generated["b"]


def test_the_whole_object_may_be_editable() -> None:
    table: EditableFields = {Path(): EntryMap()}

    merged = merge(remember({"a": 1}, table), {"b": 2}, {"a": 1, "c": 3}, table)

    assert merged.value == {"b": 2, "c": 3}


def test_an_object_as_deep_as_json_may_be_is_merged() -> None:
    live: Json = "mine"
    generated: Json = "yours"
    for _ in range(253):
        live, generated = {"a": live}, {"a": generated}

    assert merge(remember(generated, TABLE), live, generated, TABLE).value is generated


# --- Last generated ---------------------------------------------------------------------------------------------


def test_last_generated_holds_digests_by_field_and_by_entry() -> None:
    size: Json = {"replicas": 1, "claim": ""}
    generated: Json = {"zone": 1, "size": size, "env": {"A": 1}, "volumes": [{"name": "v"}]}
    one = "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"
    named_v = "eda90041b5303ba3200e0795bf4b4cd29ba9f6da0d72a08d3ec50aa7c0772b47"

    data = last_generated_to_data(remember(generated, TABLE))

    assert data == {
        "version": "v1",
        "digests": {"zone": one, "size": {"replicas": one}, "env": {"A": one}, "volumes": {"v": named_v}},
    }


@pytest.mark.parametrize("data", [None, [], {"version": "v1"}, {"version": 1, "digests": {}}])
def test_unreadable_last_generated_makes_a_two_way_merge(data: object) -> None:
    assert last_generated_from_data(data) is None


@pytest.mark.parametrize("field", [None, 7, "text", "A" * 64, "0" * 65, ["0" * 64], {1: "0" * 64}])
def test_damaged_last_generated_makes_a_two_way_merge(field: object) -> None:
    assert last_generated_from_data({"version": "v1", "digests": {"a": {"b": field}}}) is None


def test_a_field_stored_under_other_editable_fields_is_merged_two_way() -> None:
    some = "0" * 64
    last = LastGenerated({"size": some, "env": {"A": {"deep": some}}, "secrets": some, "whole": {"a": some}})
    table: EditableFields = {**TABLE, Path.parse("whole"): WholeValue()}
    live: Json = {"size": {"replicas": 3}, "env": {"B": "b"}, "secrets": ["b"], "whole": "b"}
    generated: Json = {"size": {"replicas": 1}, "env": {"A": "a"}, "secrets": ["a"], "whole": "a"}

    merged = merge(last, live, generated, table)

    kept = {"size": {"replicas": 3}, "secrets": ["b"], "whole": "b"}
    assert merged.value == {**kept, "env": {"B": "b", "A": "a"}}
    assert merged.conflicts == ()

"""The overlay of spec and live state under each rule, case by case."""

from typing import Any

import msgspec
import pytest

from setpoint.core.overlay import Declared, keeping_rule_at, overlay, overlay_at, rule_at
from setpoint.core.schema.policy import IGNORE, PRUNE, FieldPolicy, Rule
from setpoint.core.schema.shape import Mark, with_defaults, with_marks
from setpoint.core.values.json_types import MISSING, Json, JsonObject
from setpoint.core.values.paths import Path
from setpoint.errors import ManifestInvalid
from tests.laws.declared_specs import SHAPE, Backup, Database, Flag, Metadata, Settings, Spec

UNMANAGED_TIER = FieldPolicy(unmanaged=(Path.parse("spec.settings.tier"),))
LISTED_TIER = FieldPolicy(listed=(Path.parse("spec.settings.tier"),))


def _settings(written: Json, live: Json, policy: FieldPolicy = PRUNE) -> Json:
    """The settings after an overlay of settings over settings."""
    wanted: Any = overlay(_declared(written, policy), {"spec": {"settings": live}})
    return wanted["spec"].get("settings", MISSING)  # type: ignore[no-any-return]


def _declared(written: Json, policy: FieldPolicy = PRUNE) -> Declared:
    return Declared({"spec": {"settings": written}}, SHAPE, policy)


@pytest.mark.parametrize(
    ("written", "live", "policy", "wanted"),
    [
        ({"tier": "a"}, {"tier": "b", "size": 1}, UNMANAGED_TIER, {"tier": "b", "resize": True}),
        ({"tier": "a"}, {"tier": "b", "size": 1}, PRUNE, {"tier": "a", "resize": True}),
        ({"tier": "a"}, {"tier": "b", "size": 1}, LISTED_TIER, {"tier": "a", "resize": True}),
        ({}, {"tier": "b", "size": 1}, LISTED_TIER, {"tier": "b", "resize": True}),
        ({"tier": "a"}, {"tier": "b", "size": 1}, IGNORE, {"tier": "a", "size": 1}),
        ({}, {"tier": "b", "size": 1}, PRUNE, {"resize": True}),
        ({}, {"resize": False}, PRUNE, {"resize": True}),
    ],
    ids=["unmanaged", "spec", "listed but specified", "listed and absent", "ignored", "pruned", "default"],
)
def test_the_strongest_rule_decides(written: Json, live: Json, policy: FieldPolicy, wanted: Json) -> None:
    assert _settings(written, live, policy) == wanted


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.settings.tier", "a"),
        ("spec.settings.size", MISSING),
        ("spec.settings.resize", True),
        ("spec.settings.edition", "plus"),
        ("spec.settings.tier.deeper", MISSING),
        ("spec.region", MISSING),
        ("metadata.labels", MISSING),
        ("spec.settings[0]", MISSING),
    ],
    ids=["specified", "pruned", "default", "protected", "below a text", "nowhere", "no parent", "no list"],
)
def test_one_value_is_laid_over_without_the_rest(path: str, value: Json) -> None:
    live: JsonObject = {"spec": {"settings": {"tier": "b", "size": 1, "edition": "plus"}}}

    assert overlay_at(_declared({"tier": "a"}), live, Path.parse(path)) == value


@pytest.mark.parametrize("value", [0, "", False, []])
def test_zero_and_empty_values_are_values(value: Json) -> None:
    names = {int: "size", str: "tier", bool: "resize", list: "networks"}
    name = names[type(value)]

    assert _settings({name: value}, {name: "other"}, IGNORE) == {name: value}


def test_an_explicit_null_unsets_a_field_or_returns_it_to_its_default_in_every_mode() -> None:
    assert _settings({"tier": None, "resize": None}, {"tier": "b", "resize": False}, IGNORE) == {"resize": True}


def test_an_explicit_null_gives_up_protection() -> None:
    live: Json = {"edition": "plus", "backup": {"enabled": True, "start": "03:00"}}

    assert _settings({"edition": None, "backup": None}, live) == {"backup": {"start": "12:00"}, "resize": True}


def test_an_explicit_null_leaves_unmanaged_fields_alone() -> None:
    policy = FieldPolicy(unmanaged=(Path.parse("spec.settings.backup.enabled"),))

    wanted = _settings({"backup": None}, {"backup": {"enabled": True, "location": "eu"}}, policy)

    assert wanted == {"backup": {"enabled": True, "start": "12:00"}, "resize": True}


def test_an_unspecified_protected_field_keeps_its_live_value() -> None:
    live: Json = {"edition": "plus", "retention": {"location": "eu"}, "backup": {"enabled": True, "location": "eu"}}

    assert _settings({}, live) == {
        "edition": "plus",
        "retention": {"location": "eu"},
        "backup": {"enabled": True, "start": "12:00"},
        "resize": True,
    }


def test_an_unspecified_immutable_field_keeps_its_live_value() -> None:
    assert overlay(Declared({"spec": {}}, SHAPE), {"spec": {"region": "eu"}}) == {"spec": {"region": "eu"}}


def test_an_unspecified_object_is_unset_with_all_its_fields() -> None:
    assert _settings({}, {"flags": [{"name": "x"}], "networks": ["a"]}) == {"resize": True}


def test_a_null_in_the_live_object_counts_as_absent() -> None:
    assert _settings({}, {"tier": None, "resize": True}) == {"tier": None, "resize": True}
    assert _settings({}, {"resize": None}) == {"resize": True}


def test_output_only_fields_keep_their_live_value() -> None:
    wanted = overlay(Declared({"spec": {"address": "mine"}}, SHAPE), {"spec": {"address": "theirs"}})

    assert wanted == {"spec": {"address": "theirs"}}


def test_the_spec_s_list_decides_membership_and_the_rules_decide_inside_an_element() -> None:
    written: Json = {"flags": [{"name": "z"}, {"name": "x", "note": "mine"}]}
    live: Json = {"flags": [{"name": "x", "value": "1", "note": "-"}, {"name": "y", "value": "2"}]}

    pruned, kept = _settings(written, live), _settings(written, live, IGNORE)

    assert pruned == {"flags": [{"name": "z", "note": "-"}, {"name": "x", "note": "mine"}], "resize": True}
    assert kept == {"flags": [{"name": "z"}, {"name": "x", "value": "1", "note": "mine"}]}


def test_a_keyed_list_in_another_order_is_the_live_list() -> None:
    live: Json = {"flags": [{"name": "x", "note": "-"}, {"name": "y", "note": "-"}], "resize": True}

    assert _settings({"flags": [{"name": "y"}, {"name": "x"}]}, live) is live


def test_a_listed_element_stays_though_the_spec_leaves_it_out() -> None:
    live: Json = {"flags": [{"name": "w"}, {"name": "x"}, {"name": "y"}]}
    element = (Path.parse("spec.settings.flags[name=x]"),)
    inside = (Path.parse("spec.settings.flags[name=y].value"),)

    for policy in (FieldPolicy(unmanaged=element, listed=inside), FieldPolicy(listed=element + inside)):
        wanted = _settings({"flags": [{"name": "z"}]}, live, policy)
        assert wanted == {"flags": [{"name": "z", "note": "-"}, {"name": "x"}], "resize": True}


def test_an_element_with_a_listed_field_stays() -> None:
    live: Json = {"flags": [{"name": "x", "value": "1", "note": "n"}, {"name": "y", "value": "2"}]}
    inside = (Path.parse("spec.settings.flags[name=x].value"),)

    for policy in (FieldPolicy(unmanaged=inside), FieldPolicy(listed=inside)):
        silent, empty = _settings({}, live, policy), _settings({"flags": []}, live, policy)
        assert silent == empty == {"flags": [{"name": "x", "value": "1", "note": "-"}], "resize": True}


def test_the_keeping_rule_of_an_element_is_that_of_the_listed_field_in_it() -> None:
    policy = FieldPolicy(unmanaged=(Path.parse("spec.settings.flags[name=x].value"),))

    declared = _declared({"flags": []}, policy)

    assert keeping_rule_at(declared, Path.parse("spec.settings.flags[name=x]")) is Rule.UNMANAGED
    assert keeping_rule_at(declared, Path.parse("spec.settings.flags[name=y]")) is Rule.SPEC
    assert keeping_rule_at(_declared({}, policy), Path.parse("spec.settings.flags[name=x]")) is Rule.UNMANAGED
    assert keeping_rule_at(declared, Path.parse("spec.settings.edition")) is Rule.PROTECTED
    assert rule_at(declared, Path.parse("spec.settings.flags[name=x]")) is Rule.SPEC


def test_an_unmanaged_element_that_is_not_live_is_not_created() -> None:
    policy = FieldPolicy(unmanaged=(Path.parse("spec.settings.flags[name=x]"),))

    assert _settings({"flags": [{"name": "x"}]}, {"resize": True, "flags": []}, policy) == {"resize": True, "flags": []}


def test_two_elements_with_one_key_are_refused() -> None:
    with pytest.raises(ManifestInvalid, match=r"two elements of one list are \[name=x\]: each name may stand once"):
        _settings({"flags": [{"name": "x"}, {"name": "x"}]}, {})


def test_a_keyed_list_of_other_values_than_objects_is_replaced_as_a_whole() -> None:
    assert _settings({"flags": ["x"]}, {"flags": [{"name": "x"}]}, IGNORE) == {"flags": ["x"]}
    assert _settings({"flags": [{"name": "x"}]}, {"flags": "x"}, IGNORE) == {"flags": [{"name": "x"}]}


def test_maps_are_exact_under_prune_and_merged_by_key_when_unspecified_fields_stay() -> None:
    live: JsonObject = {"metadata": {"labels": {"a": "1", "b": "2"}}}
    written: JsonObject = {"metadata": {"labels": {"a": "9", "c": "3"}}}

    assert overlay(Declared(written, SHAPE), live) == {"metadata": {"labels": {"a": "9", "c": "3"}}}
    assert overlay(Declared(written, SHAPE, IGNORE), live) == {"metadata": {"labels": {"a": "9", "b": "2", "c": "3"}}}


def test_a_null_removes_one_key_of_a_merged_map() -> None:
    live: JsonObject = {"metadata": {"labels": {"a": "1", "b": "2"}}}

    wanted = overlay(Declared({"metadata": {"labels": {"a": None}}}, SHAPE, IGNORE), live)

    assert wanted == {"metadata": {"labels": {"b": "2"}}}


def test_one_listed_key_of_a_map_stays_when_the_rest_is_pruned() -> None:
    policy = FieldPolicy(listed=(Path.parse("metadata.labels.a"),))
    live: JsonObject = {"metadata": {"labels": {"a": "1", "b": "2"}}}

    assert overlay(Declared({}, SHAPE, policy), live) == {"metadata": {"labels": {"a": "1"}}}


def test_a_live_value_of_another_type_is_replaced() -> None:
    assert _settings({"backup": {"location": "eu"}}, {"backup": "on"}) == {
        "backup": {"location": "eu", "start": "12:00"},
        "resize": True,
    }


def test_a_spec_value_of_another_type_is_passed_to_the_service() -> None:
    assert _settings({"backup": "on"}, {"backup": {"enabled": True}}, IGNORE) == {"backup": "on"}


def test_a_new_object_has_the_values_of_the_spec_and_the_defaults() -> None:
    assert overlay(_declared({"tier": "a"}), MISSING) == {"spec": {"settings": {"tier": "a", "resize": True}}}


def test_a_new_object_leaves_unspecified_fields_to_the_service() -> None:
    assert overlay(_declared({"tier": "a"}, IGNORE), MISSING) == {"spec": {"settings": {"tier": "a"}}}


def test_a_new_object_starts_with_the_spec_s_value_of_an_unmanaged_field() -> None:
    wanted = overlay(_declared({"tier": "a"}, UNMANAGED_TIER), MISSING)

    assert wanted == {"spec": {"settings": {"tier": "a", "resize": True}}}


def test_without_a_change_the_result_is_the_live_object_itself() -> None:
    live: JsonObject = {"spec": {"settings": {"tier": "a", "resize": True}}, "metadata": {"labels": {}}}

    assert overlay(_declared({"tier": "a"}), live) is live
    assert overlay(Declared({}, SHAPE, FieldPolicy(unmanaged=(Path(),))), live) is live


def test_an_object_with_a_default_of_its_own_is_created_when_absent() -> None:
    shape = with_defaults(SHAPE, {"spec.settings.backup": {"location": "eu"}, "spec.settings.networks": ["any"]})
    wanted = overlay(Declared({"spec": {"settings": {}}}, shape), {"spec": {"settings": {"backup": {"enabled": True}}}})

    assert wanted == {
        "spec": {
            "settings": {
                "backup": {"enabled": True, "location": "eu", "start": "12:00"},
                "resize": True,
                "networks": ["any"],
            }
        }
    }


@pytest.mark.parametrize("written", [{}, {"tier": None}])
@pytest.mark.parametrize("policy", [PRUNE, IGNORE])
def test_a_value_that_the_service_chose_stays_until_the_spec_has_one(written: Json, policy: FieldPolicy) -> None:
    chosen = with_marks(SHAPE, {"spec.settings.tier": Mark.CHOSEN})
    live: JsonObject = {"spec": {"settings": {"tier": "b"}}}

    assert _chosen_tier(overlay(Declared({"spec": {"settings": written}}, chosen, policy), live)) == "b"
    assert _chosen_tier(overlay(Declared({"spec": {"settings": {"tier": "a"}}}, chosen, policy), live)) == "a"


def _chosen_tier(wanted: Any) -> Json:
    tier: Json = wanted["spec"]["settings"]["tier"]
    return tier


def test_a_field_that_the_service_chooses_has_its_own_rule() -> None:
    declared = Declared({"spec": {}}, with_marks(SHAPE, {"spec.settings.tier": Mark.CHOSEN}))

    assert rule_at(declared, Path.parse("spec.settings.tier")) is Rule.CHOSEN


def test_the_overlay_of_typed_specs_is_of_the_same_type() -> None:
    spec = Database(Spec(settings=Settings(tier="a", flags=[Flag("x", "1")], backup=None)))
    live = Database(
        Spec(region="eu", settings=Settings(tier="b", size=3, flags=[Flag("x", "0", "n")], backup=Backup(True))),
        Metadata({"a": "1"}),
    )

    tree = overlay(Declared(msgspec.to_builtins(spec), SHAPE, IGNORE), msgspec.to_builtins(live))
    created = overlay(Declared(msgspec.to_builtins(spec), SHAPE), MISSING)

    assert msgspec.convert(tree, Database) == Database(
        Spec(
            region="eu", settings=Settings(tier="a", size=3, flags=[Flag("x", "1", "n")], backup=Backup(start="12:00"))
        ),
        Metadata({"a": "1"}),
    )
    assert msgspec.convert(created, Database) == Database(
        Spec(settings=Settings(tier="a", resize=True, flags=[Flag("x", "1", "-")]))
    )


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("spec.settings.tier", Rule.SPEC),
        ("spec.settings.size", Rule.PRUNED),
        ("spec.settings.resize", Rule.DEFAULT),
        ("spec.settings.edition", Rule.PROTECTED),
        ("spec.settings.retention.start", Rule.PROTECTED),
        ("spec.region", Rule.FIXED),
        ("spec.settings.flags[name=x]", Rule.SPEC),
        ("spec.settings.flags[name=gone]", Rule.SPEC),
        ("spec.settings.flags[name=x].value", Rule.PRUNED),
        ("spec.settings.backup.enabled", Rule.SPEC),
        ("spec.settings.networks", Rule.LISTED),
        ("metadata.labels.a", Rule.UNMANAGED),
        ("metadata.labels.b", Rule.PRUNED),
    ],
)
def test_the_rule_at_a_path_is_the_one_that_decided(path: str, rule: Rule) -> None:
    policy = FieldPolicy(unmanaged=(Path.parse("metadata.labels.a"),), listed=(Path.parse("spec.settings.networks"),))
    declared = _declared({"tier": "a", "flags": [{"name": "x"}], "backup": None}, policy)

    assert rule_at(declared, Path.parse(path)) is rule


def test_the_rule_of_an_unspecified_field_under_ignore_unspecified_is_ignored() -> None:
    assert rule_at(_declared({}, IGNORE), Path.parse("spec.settings.size")) is Rule.IGNORED

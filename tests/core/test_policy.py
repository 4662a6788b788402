"""Field policies: annotations, read once, checked and compiled."""

from typing import Annotated, ClassVar

import msgspec
import pytest

from setpoint.core.schema.policy import DEFAULT_TO_GCP, IGNORE, IGNORE_UNSPECIFIED, PRUNE, UNMANAGED, FieldPolicy, Rule
from setpoint.core.schema.shape import Mark, shape_of
from setpoint.core.values.paths import Path, Selector
from setpoint.errors import ManifestInvalid, UnknownField
from tests.laws.declared_specs import SHAPE


def test_no_annotation_means_prune() -> None:
    assert FieldPolicy.parse({}, SHAPE) == PRUNE


@pytest.mark.parametrize(("text", "policy"), [("true", IGNORE), ("false", PRUNE)])
def test_ignore_unspecified_is_true_or_false(text: str, policy: FieldPolicy) -> None:
    assert FieldPolicy.parse({IGNORE_UNSPECIFIED: text}, SHAPE) == policy


def test_other_values_of_ignore_unspecified_are_refused() -> None:
    with pytest.raises(ManifestInvalid, match='ignore-unspecified-fields is \'yes\': write "true" or "false"'):
        FieldPolicy.parse({IGNORE_UNSPECIFIED: "yes"}, SHAPE)


def test_paths_are_listed_with_commas_and_spaces() -> None:
    policy = FieldPolicy.parse({UNMANAGED: " spec.region , spec.settings.tier,"}, SHAPE)

    assert policy.unmanaged == (Path.parse("spec.region"), Path.parse("spec.settings.tier"))


def test_commas_inside_brackets_and_quotes_do_not_separate_paths() -> None:
    policy = FieldPolicy.parse({DEFAULT_TO_GCP: 'metadata.labels["a,b\\"]"],spec.settings.flags[name="x,y"]'}, SHAPE)

    assert policy.listed == (
        Path(("metadata", "labels", 'a,b"]')),
        Path(("spec", "settings", "flags", Selector((("name", "x,y"),)))),
    )


def test_an_unknown_path_names_the_annotation_and_the_nearest_real_paths() -> None:
    with pytest.raises(UnknownField) as caught:
        FieldPolicy.parse({UNMANAGED: "spec.setings"}, SHAPE)

    assert str(caught.value).startswith(f"{UNMANAGED}: no field spec.setings; nearest: spec.settings")
    assert caught.value.nearest[0] == "spec.settings"


def test_a_malformed_path_names_the_annotation() -> None:
    with pytest.raises(ManifestInvalid, match=f"{DEFAULT_TO_GCP}: the path 'spec.' breaks off"):
        FieldPolicy.parse({DEFAULT_TO_GCP: "spec."}, SHAPE)


class Reference(msgspec.Struct):
    name: str = ""

    __unit__: ClassVar = True


class Referring(msgspec.Struct):
    network: Reference


def test_a_path_into_a_reference_is_refused() -> None:
    message = r"network\.name points into a reference that is one unit: name network itself"

    with pytest.raises(UnknownField, match=message):
        FieldPolicy.parse({UNMANAGED: "network.name"}, shape_of(Referring))


def test_a_path_into_an_atomic_list_is_refused() -> None:
    with pytest.raises(
        UnknownField, match=r"points into a list that is one unit: name spec\.settings\.networks itself"
    ):
        FieldPolicy.parse({UNMANAGED: "spec.settings.networks[0]"}, SHAPE)


def test_the_compiled_policy_has_the_strongest_rule_that_covers_a_field() -> None:
    policy = FieldPolicy(
        unmanaged=(Path.parse("spec.settings.tier"),),
        listed=(Path.parse("spec.settings"), Path.parse("spec.settings.tier.deeper")),
        unspecified=Rule.IGNORED,
    )
    settings = policy.compiled.at("spec").at("settings")

    assert policy.compiled.at("metadata").rule is Rule.IGNORED
    assert settings.rule is Rule.LISTED
    assert settings.at("size").at("deeper").rule is Rule.LISTED
    assert settings.at("tier").at("deeper").rule is Rule.UNMANAGED


def test_on_create_an_unmanaged_field_has_the_value_of_the_spec() -> None:
    policy = FieldPolicy(unmanaged=(Path.parse("spec.region"),), unspecified=Rule.PRUNED)

    assert policy.on_create() == FieldPolicy(listed=(Path.parse("spec.region"),))
    assert PRUNE.on_create() is PRUNE


class JsonText(msgspec.Struct):
    """A spec with JSON that is a text."""

    schema: Annotated[str, Mark.JSON_TEXT] = ""
    name: str = ""


def test_a_path_into_json_that_is_a_text_is_kept_apart() -> None:
    policy = FieldPolicy.parse({UNMANAGED: "schema.fields.tags,name"}, shape_of(JsonText))

    assert (policy.unmanaged, policy.inside_texts) == ((Path.parse("name"),), (Path.parse("schema.fields.tags"),))
    with pytest.raises(UnknownField):
        FieldPolicy.parse({UNMANAGED: "other.fields.tags"}, shape_of(JsonText))

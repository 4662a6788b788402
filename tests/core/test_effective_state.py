"""The effective desired state of structs, and the plan of a creation from it."""

from dataclasses import replace
from typing import Annotated

import pytest
from msgspec import UNSET, Struct, UnsetType

from setpoint.core.decide import Decision
from setpoint.core.overlay import (
    Declared,
    EffectiveState,
    effective_of_trees,
    effective_state,
    struct_of,
    tree_of,
    tree_overlay_of,
)
from setpoint.core.plan import (
    Action,
    Plan,
    PlanOptions,
    ProjectSource,
    ResolvedProject,
    WriteStage,
    plan_effective,
    plan_fields,
)
from setpoint.core.schema.policy import IGNORE, PRUNE, FieldPolicy, Rule
from setpoint.core.schema.shape import Default, Keyed, Mark, shape_of
from setpoint.core.values.json_types import MISSING, JsonObject, Missing
from setpoint.core.values.paths import Path


class Flag(Struct, frozen=True):
    name: str
    value: str | None | UnsetType = UNSET


class Nested(Struct, frozen=True):
    colour: Annotated[str | None | UnsetType, Default("red")] = UNSET
    inner: "Nested | UnsetType" = UNSET


class Plain(Struct, frozen=True):
    colour: str | UnsetType = UNSET
    weight: int | None | UnsetType = UNSET


class Tree(Struct, frozen=True):
    size: int
    plain: Plain | UnsetType = UNSET
    state: Annotated[str | UnsetType, Mark.OUTPUT_ONLY] = UNSET
    secret: Annotated[str | UnsetType, Mark.WRITE_ONLY] = UNSET
    kept: Annotated[str | None | UnsetType, Mark.PROTECTED, Default("low")] = UNSET
    flags: Annotated[list[Flag] | None | UnsetType, Keyed("name")] = UNSET
    rules: list[Flag] | UnsetType = UNSET
    names: list[str] | UnsetType = UNSET
    labels: dict[str, str] | UnsetType = UNSET
    by_name: dict[str, Flag] | UnsetType = UNSET
    nested: Annotated[Nested | None | UnsetType, Default({})] = UNSET


FULL: JsonObject = {
    "size": 1,
    "kept": "high",
    "flags": [{"name": "a", "value": "1"}],
    "rules": [{"name": "b", "value": None}],
    "names": ["x"],
    "labels": {"team": "red"},
    "by_name": {"c": {"name": "c"}},
    "nested": {"colour": "blue", "inner": {"colour": "green"}},
    "plain": {"colour": "black"},
}


@pytest.mark.parametrize("tree", [FULL, {}, {"size": None, "flags": None, "nested": None}, {"flags": [], "nested": {}}])
def test_a_tree_is_the_same_after_it_was_a_struct(tree: JsonObject) -> None:
    assert tree_of(struct_of(tree, Tree)) == tree


def test_a_tree_becomes_structs_all_the_way_down() -> None:
    found = struct_of(FULL, Tree)

    assert found.flags == [Flag("a", "1")]
    assert found.rules == [Flag("b", None)]
    assert found.nested == Nested("blue", Nested("green"))
    assert found.plain == Plain("black")
    assert tree_of(found)["by_name"] == {"c": {"name": "c"}}


def test_a_live_value_that_no_spec_may_declare_is_kept() -> None:
    assert tree_of(struct_of({"size": "large", "flags": "none"}, Tree)) == {"size": "large", "flags": "none"}


@pytest.mark.parametrize(
    ("policy", "wanted"),
    [
        (PRUNE, {"size": 2, "kept": "high", "nested": {"colour": "red", "inner": {"colour": "red"}}}),
        (IGNORE, {**FULL, "size": 2}),
    ],
)
def test_the_spec_is_laid_over_the_live_object(policy: FieldPolicy, wanted: JsonObject) -> None:
    spec, live = Tree(2), struct_of(FULL, Tree)

    found = effective_state(spec, live, policy)

    assert found.tree == wanted
    assert found.live == FULL
    assert (spec, live) == (Tree(2), struct_of(FULL, Tree))


def test_parts_that_stay_are_those_of_the_live_object() -> None:
    found = effective_state(Tree(2), struct_of(FULL, Tree), IGNORE)

    assert isinstance(found.live, dict)
    assert [name for name, part in found.tree.items() if part is not found.live[name]] == ["size"]


@pytest.mark.parametrize(
    ("policy", "wanted"),
    [(PRUNE, {"size": 2, "kept": "low", "nested": {"colour": "red"}}), (IGNORE, {"size": 2})],
)
def test_a_new_object_is_the_spec_with_its_defaults_unless_they_are_left_to_the_service(
    policy: FieldPolicy, wanted: JsonObject
) -> None:
    assert effective_state(Tree(2), MISSING, policy).tree == wanted


def test_the_live_object_may_change_what_is_declared() -> None:
    def fitted(declared: Declared, live: JsonObject) -> Declared:
        return replace(declared, tree={**declared.tree, "size": live["size"]})

    found = effective_state(Tree(2), Tree(7), PRUNE, fitted)

    assert (found.state.size, found.declared.tree) == (7, {"size": 7})


class ByStructs:
    def effective(self) -> str:
        return "structs"


class ByTrees(ByStructs):
    def effective_tree(self, declared: Declared, live: JsonObject | Missing) -> EffectiveState[Tree]:
        return effective_of_trees(declared, live, Tree)


class WithRules(ByTrees):
    def effective(self) -> str:
        return "rules"


@pytest.mark.parametrize(("kind", "is_found"), [(ByStructs(), False), (ByTrees(), True), (WithRules(), False)])
def test_a_kind_overlays_trees_unless_a_class_below_overlays_structs_otherwise(kind: object, is_found: bool) -> None:
    assert (tree_overlay_of(kind) is not None) is is_found


def test_an_object_that_is_no_kind_overlays_nothing() -> None:
    assert tree_overlay_of(object()) is None


@pytest.mark.parametrize("live", [FULL, MISSING])
def test_trees_have_the_effective_state_of_their_structs(live: JsonObject | Missing) -> None:
    by_trees = tree_overlay_of(ByTrees())
    assert by_trees is not None

    found = by_trees(Declared({"size": 2}, shape_of(Tree), PRUNE), live)

    typed = live if isinstance(live, Missing) else struct_of(live, Tree)
    assert found == effective_state(Tree(2), typed, PRUNE)


@pytest.mark.parametrize("with_kept", [True, False])
def test_kept_fields_are_listed_if_they_are_asked_for(with_kept: bool) -> None:
    found = effective_state(Tree(2), struct_of(FULL, Tree), IGNORE)

    plan = plan_effective(
        Decision.INTENT_CHANGED,
        found.declared,
        found.live,
        wanted=found.tree,
        options=PlanOptions(),
        with_kept=with_kept,
    )

    assert bool(plan.kept) is with_kept
    assert [str(change.path) for change in plan.changes] == ["size"]


CREATED: JsonObject = {
    "size": 1,
    "state": "RUNNING",
    "secret": "hunter2",
    "kept": "low",
    "flags": [{"name": "a", "value": "1"}],
    "names": [],
    "labels": {},
    "nested": {"colour": "red"},
}


def created(wanted: JsonObject, options: PlanOptions) -> Plan:
    declared = Declared({"size": 1, "secret": "hunter2", "flags": [{"name": "a", "value": "1"}]}, shape_of(Tree))
    return plan_effective(Decision.CREATE, declared, MISSING, wanted=wanted, options=options)


def test_the_plan_of_a_creation_lists_every_field_that_is_sent() -> None:
    [write] = created(CREATED, PlanOptions()).writes

    assert write.action is Action.CREATE
    assert [(str(one.path), one.before, one.after, one.rule) for one in write.changes] == [
        ("size", MISSING, 1, Rule.SPEC),
        ("secret", MISSING, "(redacted)", Rule.SPEC),
        ("kept", MISSING, "low", Rule.DEFAULT),
        ("flags[name=a]", MISSING, {"name": "a", "value": "1"}, Rule.SPEC),
        ("names", MISSING, [], Rule.DEFAULT),
        ("nested.colour", MISSING, "red", Rule.DEFAULT),
    ]


def test_what_a_creation_cannot_send_follows_in_its_stage() -> None:
    kept = Path(("kept",))
    options = PlanOptions((WriteStage("protection", (kept,)),), after_creation=(kept,))

    writes = created({"size": 1, "kept": "low"}, options).writes

    assert [(one.action, one.name, [str(change.path) for change in one.changes]) for one in writes] == [
        (Action.CREATE, "create", ["size"]),
        (Action.UPDATE, "protection", ["kept"]),
    ]


def test_the_plan_of_a_tree_is_that_of_its_overlay() -> None:
    declared = Declared({"size": 2}, shape_of(Tree))

    assert [str(one.path) for one in plan_fields(Decision.DRIFTED, declared, {"size": 1}).changes] == ["size"]
    assert [str(one.path) for one in plan_fields(Decision.CREATE, declared, MISSING).changes] == [
        *("size", "kept", "nested.colour"),
    ]


def test_a_plan_says_which_project_the_object_is_in() -> None:
    plan = Plan(Decision.IN_SYNC, project=ResolvedProject("demo", ProjectSource.ENVIRONMENT))

    assert plan.to_data()["project"] == {"id": "demo", "source": "environment"}
    assert "project" not in Plan(Decision.IN_SYNC).to_data()

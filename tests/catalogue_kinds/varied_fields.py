"""The field of a row that the lifecycle contract varies: which one, and three values of it."""

from collections.abc import Mapping
from typing import Any, Final

from setpoint.catalogue.rows import FieldFacts, KindFacts
from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.core.values.paths import Path, get_at, set_at
from setpoint.engine.resource import Resource
from setpoint.testing import Spec, SpecifiedField
from tests.catalogue_kinds.spec_values import FieldPath, external_of, facts_at, member_of, plain_fields, value_of

# The last step of the path of a reference.
EXTERNAL: Final = "external"


class CannotUpdate(BaseException):
    """A claim needs another value of a field, and no update can set one."""


class FixedField(SpecifiedField):
    """A field that is declared, and that no update can set: CannotUpdate when a claim asks for another value of it."""

    def __getattribute__(self, name: str) -> Any:
        if name in ("then", "drifted"):
            raise CannotUpdate("no update can set a field to a second and a third value")
        return super().__getattribute__(name)


class NoField(FixedField):
    """The field of a kind whose objects are there or not, and nothing else: it has no value, and none is declared."""

    def declared_in(self, resource: Resource) -> Json | Missing:
        return MISSING


NO_FIELD: Final = NoField("spec.nothing", MISSING, MISSING, MISSING)  # type: ignore[arg-type] # there is no value


def fields_to_vary(row: KindFacts) -> list[FieldPath]:
    """The fields that an update can set to three values, the plainest first."""
    ranked = [(rank, path) for path, facts in plain_fields(row.fields) if (rank := _rank(row, path, facts)) is not None]
    return [path for _, path in sorted(ranked, key=lambda one: one[0])] or _references_to_vary(row)


def _references_to_vary(row: KindFacts) -> list[FieldPath]:
    """The references that an update can set, for a row without plain fields."""
    if row.update_style in ("none", "put-request"):
        return []
    methods = _fields_with_methods(row) if row.update_style == "per-field" else row.fields
    return [
        (name, EXTERNAL)
        for name, facts in row.fields.items()
        if facts.ref is not None and facts.ref.form in ("name", "link") and facts.type == "object" and name in methods
        if not (facts.immutable or facts.output_only or facts.input_only or facts.later or facts.grows or facts.within)
        and facts.to not in ("url", "id", "?", "-", ".")
    ]


def _rank(row: KindFacts, path: FieldPath, facts: FieldFacts) -> tuple[int, int] | None:
    if row.update_style == "none" or any(one.immutable for one in facts_at(row, path)):
        return None
    if row.update_style == "per-field" and path[0] not in _fields_with_methods(row):
        return None
    values = [value_of(facts, position) for position in range(3)]
    if len({str(one) for one in values}) < 3 or facts.type in ("boolean", "any", "object", "map"):
        return None
    if row.update_style == "put-request" and member_of(row, path).partition(".")[0] not in _sent_in_updates(row):
        return None
    return len(path), _SORTS.index(facts.type) + (1 if facts.enum or facts.format else 0)


def _fields_with_methods(row: KindFacts) -> set[str]:
    """The fields that a method sets which takes nothing else."""
    members = [
        {one for one in row.other_methods[name].sends if "ingerprint" not in one} for name in row.per_field_methods
    ]
    return {name for name, facts in row.fields.items() if {facts.to or name} in members}


# The types of fields to vary, those that services rewrite least first.
_SORTS: Final = ("string", "integer", "number", "list")


def _sent_in_updates(row: KindFacts) -> set[str]:
    return {one.partition(".")[0] for one in row.methods["update"].sends_as}


def fixed_fields(row: KindFacts) -> list[FieldPath]:
    """The fields that can be declared, for a row without any that an update can set."""
    plain = [path for path, facts in plain_fields(row.fields) if facts.type in ("string", "integer", "boolean")]
    return sorted(plain, key=len)


def specified_field(row: KindFacts, path: FieldPath, *, is_fixed: bool) -> SpecifiedField:
    """The field at the path, with three values of it; or one, of a field that no update can set."""
    at = f"spec.{'.'.join(path)}"
    if path[-1] != EXTERNAL:
        first, then, drifted = (value_of(facts_at(row, path)[-1], position) for position in range(3))
        made = FixedField if is_fixed else SpecifiedField
        return made(at, first, then, drifted, member_of(row, path))
    facts = row.fields[path[0]]
    assert facts.ref is not None
    origin = "https://www.googleapis.com/compute/v1/" if row.api == "compute" else ""
    text = f"{origin}{external_of(facts.ref)}"
    return SpecifiedField(at, text, f"{text}-2", f"{text}-3", member_of(row, path[:1]))


def with_containers(row: KindFacts, minimal: Spec, path: FieldPath) -> Spec:
    """The spec with the objects that the field is in, each with the fields that it must have."""
    for depth in range(1, len(path) if path[-1] != EXTERNAL else 1):
        at = Path(("spec", *path[:depth]))
        tree: Any = {"spec": minimal}
        if not isinstance(get_at(tree, at), Mapping):
            facts = facts_at(row, path[:depth])[-1]
            made = {name: value_of(its) for name, its in facts.fields.items() if its.required and not its.output_only}
            minimal = set_at(tree, at, made)["spec"]  # type: ignore[index,call-overload,assignment]
    return minimal

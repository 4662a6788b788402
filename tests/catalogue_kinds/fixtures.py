"""The lifecycle fixture of any kind of the catalogue, with the parts that its row says."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from setpoint.catalogue.index import kinds_by_group
from setpoint.catalogue.rows import KindFacts, facts_of
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.paths import Path, set_at
from setpoint.engine.resource import ResourceRef
from setpoint.kinds.gcp.generic.requests import api_of
from setpoint.kinds.gcp.generic.spec_types import can_label, group_of, has_default
from setpoint.testing import (
    ImmutableChange,
    MovedObject,
    Part,
    ReferringSpec,
    Spec,
    UnspecifiedField,
)
from setpoint.testing.kind_parts import PART_MEMBERS
from tests.catalogue_kinds.overrides import FIELDS, NAMES, OTHER_NAMES, SPECS
from tests.catalogue_kinds.row_fixture import RowFixture
from tests.catalogue_kinds.spec_values import (
    FieldPath,
    external_of,
    facts_at,
    location_of,
    member_of,
    minimal_spec,
    plain_fields,
    value_of,
)
from tests.catalogue_kinds.variant_fixtures import fixture_class
from tests.catalogue_kinds.varied_fields import (
    EXTERNAL,
    NO_FIELD,
    fields_to_vary,
    fixed_fields,
    specified_field,
    with_containers,
)
from tests.kinds.lifecycle_google import NAMESPACE, PROJECT, TOLD

NAME: Final = "some-object"
OTHER_NAME: Final = "another-object"


@cache
def fixture_of(name: GroupKind) -> type[RowFixture]:
    """The fixture of a kind."""
    row = facts_of(name)
    named = NAMES.get(row.kind, NAME)
    own = row.own_id.replace("{id}", named).replace("{project}", PROJECT) if row.own_id else named
    fixture = fixture_class(row)
    location: str = vars(fixture).get("location") or location_of(row, own)
    found: dict[str, Any] = {
        "row": row,
        "service": kinds_by_group()[name],
        "location": location,
        "api_kind": row.kind,
        "ref": ResourceRef(row.group, row.kind, NAMESPACE, named),
    }
    if Part.OUTPUTS not in fixture.without:
        found["outputs"] = {"externalRef": location}
    own_members = {} if fixture is RowFixture else vars(fixture)
    if "path" not in own_members:
        found["path"] = f"/{api_of(row, location).host}/{row.prefix}{location}"
    parts = _Parts(row)
    taken = {*own_members, *(PART_MEMBERS[part] for part in fixture.without if part in PART_MEMBERS)}
    found |= {name: one for name, one in parts.members().items() if name not in taken}
    found["without"] = {**TOLD, **_LACKED, **parts.lacked(), **fixture.without}
    return type(f"{row.kind}Fixture", (fixture,), found)


_LACKED: Final[Mapping[Part, str]] = {
    Part.OWN_ABANDON: "the spec does not speak of deletion",
    Part.STATELESS: "it keeps a cookie",
    Part.PROTECTION: "no field is protected",
    Part.PRUNING: "the service fills in what the spec never had",
    Part.MOVING_OUTPUT: "no output is known to move by itself",
}


class _Parts:
    """The parts of a fixture that a row says."""

    def __init__(self, row: KindFacts) -> None:
        self.row = row
        self.minimal: Spec = {**minimal_spec(row), **SPECS.get(row.kind, {})}
        self.fields = fields_to_vary(row)

    def members(self) -> dict[str, Any]:
        """The members of the fixture; those of parts that the kind lacks are left out."""
        varied = FIELDS[self.row.kind] if self.row.kind in FIELDS else self.fields[0] if self.fields else None
        found: dict[str, Any] = {"bare": self.minimal, "minimal": self.minimal, "can_update": varied is not None}
        varied = varied or next(iter(fixed_fields(self.row)), None)
        if varied is None:
            found["field"] = NO_FIELD
        else:
            found["minimal"] = with_containers(self.row, self.minimal, varied)
            found["field"] = specified_field(self.row, varied, is_fixed=not found["can_update"])
            found["is_number_as_text"] = varied[-1] != EXTERNAL and facts_at(self.row, varied)[-1].int64_text
        if self.row.labels and "labels" not in self.row.fields and can_label(self.row):
            found["labels_member"] = self.row.labels
        found |= {"moved": self._moved(found["minimal"])} if self._can_move else {}
        for name, made in (
            ("unspecified", self._unspecified(varied)),
            ("immutable", self._immutable()),
            ("referring", self._referring(varied)),
        ):
            found |= {} if made is None else {name: made}
        return found | self._secret(found)

    def lacked(self) -> dict[Part, str]:
        members = self.members()
        operations = self.row.operations
        reasons = {
            Part.LABELS: ("labels_member", "its objects have no labels of the metadata that can change"),
            Part.MOVE: ("moved", "no resourceID in its spec names another object"),
            Part.UNSPECIFIED: ("unspecified", "it has no second field that the service may fill in"),
            Part.IMMUTABLE: ("immutable", "it has no plain field that is fixed at creation"),
            Part.REFERENCES: ("referring", "it refers to no other object"),
            Part.SECRET: ("with_secret", "nothing in it is secret"),
        }
        found = {part: why for part, (member, why) in reasons.items() if member not in members}
        if "update" not in operations:
            found[Part.OPERATIONS] = "the service answers an update when it is done"
        if "create" not in operations:
            found[Part.SLOW_CREATE] = "the service answers a creation when it is done"
        return found

    @property
    def _can_move(self) -> bool:
        is_named = self.row.id.where != "service" and (not self.row.own_id or "{id}" in self.row.own_id)
        return is_named and "resourceID" in self.row.fields

    def _moved(self, minimal: Spec) -> MovedObject:
        other = OTHER_NAMES.get(self.row.kind, OTHER_NAME)
        own = self.row.own_id.replace("{id}", other).replace("{project}", PROJECT) or other
        return MovedObject({**minimal, "resourceID": other}, own)

    def _unspecified(self, varied: FieldPath | None) -> UnspecifiedField | None:
        for path in self.fields:
            if varied is None or len(path) > 1 or path[0] in (*self.minimal, varied[0]):
                continue
            facts = facts_at(self.row, path)[-1]
            if not (facts.required or facts.pruned or has_default(facts)):
                return UnspecifiedField(f"spec.{path[0]}", value_of(facts, 1), member=member_of(self.row, path))
        return None

    def _immutable(self) -> ImmutableChange | None:
        for path, facts in plain_fields(self.row.fields):
            if facts.type in ("list", "map", "object", "any") or len(path) > 1 or not facts.immutable:
                continue
            first, second = value_of(facts, 0), value_of(facts, 1)
            if first != second and first and second and not facts.to.count("."):
                before, after = ({**self.minimal, path[0]: one} for one in (first, second))
                return ImmutableChange(before, after, f"spec.{path[0]} cannot change from")
        return None

    def _referring(self, varied: FieldPath | None) -> ReferringSpec | None:
        # What is never shown is set by a method of its own, in a write beside those that the claims count.
        for name, facts in sorted(self.row.fields.items(), key=lambda one: one[1].input_only):
            ref = facts.ref
            if varied is not None and name == varied[0]:
                continue
            if (
                facts.later
                or ref is None
                or facts.type == "list"
                or ref.form not in ("name", "link", "id", "bare")
                or facts.output_only
            ):
                continue
            kind = ref.kinds[0] if ref.kinds else ""
            if name == "projectRef" or not group_of(kind) or facts.to in ("url", "id", "?", "-", "."):
                continue
            named = {"name": "target", **({"kind": kind} if len(ref.kinds) > 1 else {})}
            target = {
                "apiVersion": f"{group_of(kind)}/v1beta1",
                "kind": kind,
                "metadata": {"name": "target", "namespace": NAMESPACE},
                "spec": {},
            }
            outputs = {"setpoint": {"location": external_of(ref)}}
            return ReferringSpec({**self.minimal, name: named}, target, f"reference {kind} {NAMESPACE}/target", outputs)
        return None

    def _secret(self, members: Mapping[str, Any]) -> dict[str, Any]:
        source = {"valueFrom": {"secretKeyRef": {"name": "s", "key": "password"}}}
        declared = members["minimal"]
        if members["field"] is not NO_FIELD:
            at, first = Path.parse(members["field"].path), members["field"].first
            tree: Any = set_at({"spec": declared}, at, first)
            declared = tree["spec"]
        for name, facts in self.row.fields.items():
            if facts.secret:
                is_bytes = facts.format == "byte"
                spec = {**declared, name: source}
                return {"with_secret": spec, "secret": facts.to or name, "is_secret_in_base64": is_bytes}
        return {}

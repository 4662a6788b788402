"""Every field of every row: it arrives in the creation at the member that the row says, and its change in an update."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from setpoint.catalogue.index import kinds_by_group
from setpoint.catalogue.parts import member_path
from setpoint.catalogue.rows import FieldFacts, KindFacts, facts_of
from setpoint.core.decide import Decision
from setpoint.core.plan import Plan, PlannedWrite, plan_fields
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.json_types import MISSING
from setpoint.engine.intent import intent_of
from setpoint.engine.kind import Intent, ResolvedReferences
from setpoint.errors import ImmutableFieldChanged
from setpoint.kinds.gcp.generic.kind import GoogleKind
from setpoint.kinds.gcp.generic.members import member_at
from setpoint.kinds.gcp.generic.part_requests import request_of
from setpoint.kinds.gcp.generic.requests import GoogleRequest, members_of
from setpoint.kinds.gcp.generic.shared_members import shared_paths
from setpoint.kinds.gcp.generic.spec_types import LABELS, has_own_labels
from tests.catalogue_kinds.full_specs import changed_specs, full_spec
from tests.kinds.effective_states import effective_over
from tests.kinds.test_catalogue_requests import kind_of, resource

# What a method of its own sends, and tests of its own hold: a statement, a call of another service, an identity.
_VARIANTS = ("SpannerDatabase", "Project", "ServiceIdentity", "ServiceNetworkingConnection", "DNSRecordSet")
# Of two fields for one member, or for two places, an author gives one.
_EITHER_OR = ("ComputeNodeGroup", "Folder", "PrivateCACertificateAuthority")
_KINDS = [name for name in kinds_by_group() if name[1] not in (*_VARIANTS, *_EITHER_OR)]
_MASKED = ("patch-mask-query", "put-mask-query", "patch-paths-query", "patch-mask-body")


def _intent(kind: GoogleKind, spec: dict[str, Any]) -> Intent:
    return intent_of(resource(kind, spec), kind, ResolvedReferences())


def _creation(kind: GoogleKind, spec: dict[str, Any]) -> GoogleRequest:
    intent = _intent(kind, spec)
    return kind.creation_request(intent, effective_over(kind, intent).tree)


def _object_in(request: GoogleRequest, wrap: str) -> dict[str, Any]:
    assert isinstance(request.body, Mapping)
    inner = request.body.get(wrap) if wrap else None
    return dict(inner if isinstance(inner, Mapping) else request.body)


def _leaves(value: Any) -> Iterator[Any]:
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else None
    if inner is None:
        yield value
    for one in inner or ():
        yield from _leaves(one)


@pytest.mark.parametrize("name", _KINDS, ids=lambda name: name[1])
def test_every_field_arrives_in_the_creation_at_its_member(name: GroupKind) -> None:
    kind, row = kind_of(name[1]), facts_of(name)
    spec = full_spec(row)

    sent = _object_in(_creation(kind, spec), row.methods["create"].wrap)

    lost = [
        field
        for field in spec
        if (path := member_path(field, row.fields[field]))
        and not (row.fields[field].later or row.fields[field].toggle or None in row.fields[field].values.values())
        and member_at(sent, path) is MISSING
    ]
    assert lost == []


@pytest.mark.parametrize("name", _KINDS, ids=lambda name: name[1])
def test_a_change_of_any_field_is_sent_with_its_new_value_and_a_mask_that_names_it(name: GroupKind) -> None:
    kind, row = kind_of(name[1]), facts_of(name)
    spec = full_spec(row)
    live = {"name": "one", **_object_in(_creation(kind, spec), row.methods["create"].wrap)}

    lost = [
        f"{field} in {write.name}"
        for field, changed in changed_specs(row, spec)
        # Those are compared as the labels of the metadata, and have tests of their own.
        if not (field == LABELS and has_own_labels(row))
        for intent in [_intent(kind, changed)]
        for write, wanted in _writes(kind, intent, live, field)
        if not _is_sent(row, field, wanted, request_of(row, intent, wanted, write, live))
    ]
    assert lost == []


def _writes(
    kind: GoogleKind, intent: Intent, live: Mapping[str, Any], field: str
) -> Iterator[tuple[PlannedWrite, dict[str, Any]]]:
    """The updates that change the field; none where it is fixed."""
    if kind.row.update_style not in (*_MASKED, "merge-patch", "put", "patch-whole"):
        return
    effective = effective_over(kind, intent, kind.view(kind.present(live, intent.location).live))
    try:
        plan: Plan = plan_fields(Decision.INTENT_CHANGED, effective.declared, effective.live, kind.sending(intent))
    except ImmutableFieldChanged:
        return
    for write in plan.writes:
        is_update = write.name.partition(" ")[0] == "update"
        if is_update and any(str(one.path.steps[1]) == field for one in write.changes):
            yield write, dict(effective.tree)


def _is_sent(row: KindFacts, field: str, wanted: dict[str, Any], request: GoogleRequest) -> bool:
    """Whether each value of the field is in the member of the request, and the mask names that."""
    path, method = member_path(field, row.fields[field]), row.methods.get("patch") or row.methods["update"]
    is_body = row.update_style == "patch-mask-body"
    assert isinstance(request.body, Mapping)
    sent = member_at(_object_in(request, method.wrap or ("resource" if is_body else "")), path)
    expected = members_of(row, {"spec": {field: wanted["spec"][field]}})
    values = list(_leaves(sent))
    if any(one is not None and one not in values for one in _leaves(member_at(expected, path))):
        return False
    if row.update_style not in _MASKED:
        return True
    mask = str(request.body.get(method.mask or "updateMask") if is_body else request.call.query.get("updateMask"))
    dotted = ".".join(path)
    return any(dotted.startswith(one) or one.startswith(dotted) for one in mask.split(","))


@pytest.mark.parametrize("name", _KINDS, ids=lambda name: name[1])
def test_a_change_of_any_field_keeps_what_a_newer_service_has_in_each_object(name: GroupKind) -> None:
    kind, row = kind_of(name[1]), facts_of(name)
    spec = full_spec(row)
    live = {"name": "one", **_object_in(_creation(kind, spec), row.methods["create"].wrap)}
    for one in _objects(live, row.fields):
        one["addedTomorrow"] = {"x": 1}

    lost = [
        field
        for field, changed in changed_specs(row, spec)
        if not (field == LABELS and has_own_labels(row))
        for intent in [_intent(kind, changed)]
        for write, wanted in _writes(kind, intent, live, field)
        for one in _objects(_sent_object(row, request_of(row, intent, wanted, write, live)), row.fields)
        if "addedTomorrow" not in one
    ]
    assert lost == []


def _objects(body: dict[str, Any], fields: Mapping[str, FieldFacts]) -> Iterator[dict[str, Any]]:
    """The objects of a body that are objects in the spec, too, at any depth; not a map that has fields of its own."""
    paths = {name: member_path(name, facts) for name, facts in fields.items()}
    shared = shared_paths(paths)
    for name, facts in fields.items():
        found = member_at(body, paths[name]) if paths[name] and name not in shared else MISSING
        is_plain = facts.type == "object" and facts.shape is None and facts.ref is None and not facts.one_of_refs
        if is_plain and facts.fields and isinstance(found, dict):
            yield found
            yield from _objects(found, facts.fields)


def _sent_object(row: KindFacts, request: GoogleRequest) -> dict[str, Any]:
    method = row.methods.get("patch") or row.methods["update"]
    return _object_in(request, method.wrap or ("resource" if row.update_style == "patch-mask-body" else ""))

"""A reference of any row, written in each of its forms: the same is sent, and a live object in another has no drift."""

from collections.abc import Mapping
from typing import Any, Final

import pytest

from setpoint.catalogue.index import kinds_by_group
from setpoint.catalogue.rows import FieldFacts, KindFacts, ReferenceFacts, facts_of
from setpoint.core.values.paths import Path
from setpoint.engine.kind import ResolvedReferences
from setpoint.engine.resource import Resource
from setpoint.kinds.gcp.generic.equivalence import fitted
from setpoint.kinds.gcp.generic.members import from_members, to_members
from setpoint.kinds.gcp.generic.placement import GLOBAL, PLACES, PlacedResource, templates_of, variables_of
from setpoint.kinds.gcp.generic.references import resolved_fields
from tests.kinds.test_catalogue_requests import kind_of, resource
from tests.kinds.test_catalogue_tenants import REFERENCES, spec_with

ACCOUNT: Final = "robot@acme.iam.gserviceaccount.com"
_ROWS: Final = {name[1]: facts_of(name) for name in kinds_by_group()}
_LINKS: Final = ("name", "link", "id", "dotted")
_Reference = tuple[KindFacts, Path, ReferenceFacts, KindFacts]
_FOUND: Final[list[_Reference]] = [
    (row, path, facts.ref, _ROWS[target])
    for row, path, facts in REFERENCES
    if facts.ref is not None and facts.ref.form in _LINKS
    for target in facts.ref.kinds
    if target in _ROWS and target != "Project"
]


def _name(target: KindFacts) -> str:
    """A relative name of an object of a kind, in the project of the resource; in no region, where it may be."""
    template = next((one for one in templates_of(target) if f"/{GLOBAL}/" in one), templates_of(target)[0])
    for variable in variables_of(template):
        own = "acme" if variable == "project" else GLOBAL if variable in PLACES else f"some-{variable}".lower()
        template = template.replace(f"{{{variable}}}", own)
    return template


def _full_forms(target: KindFacts, form: str) -> list[str]:
    name = _name(target)
    # Where a name is sent, a link of Compute Engine is sent as it is: the service returns such links.
    compute = [_compute_link(target)] if target.api == "compute" and form != "name" else []
    return [name, f"https://{target.host}/{target.prefix}{name}", f"//{target.host}/{name}", *compute]


def _compute_link(target: KindFacts) -> str:
    return f"https://www.googleapis.com/compute/v1/{_name(target)}"


def _members(found: _Reference, text: str) -> dict[str, Any]:
    """What is sent for an external reference."""
    row, _, _, _ = found
    return to_members(_resolved(found, {"external": text}), row.fields)


def _resolved(found: _Reference, value: Mapping[str, str], target: Resource | None = None) -> dict[str, Any]:
    row, path, ref, refers_to = found
    kind = kind_of(row.kind)
    kinded = {"kind": refers_to.kind} if len(ref.kinds) > 1 else {}
    at = str(Path(("spec", *path.steps)))
    resolved = ResolvedReferences(resources={at: target} if target is not None else {})
    placed = PlacedResource(row, resource(kind, {}), resolved, kind.projects)
    return resolved_fields(spec_with(path, {**kinded, **value}), row.fields, Path(("spec",)), placed)


def _declared(found: _Reference) -> dict[str, Any]:
    """What is sent for a resource that the reference names."""
    target, name = found[3], _name(found[3])
    document: dict[str, Any] = {
        "apiVersion": f"{target.group}/{target.version}",
        "kind": target.kind,
        "metadata": {"name": name.rpartition("/")[2], "namespace": "team"},
        "spec": {},
        "status": {"setpoint": {"location": name}},
    }
    return to_members(_resolved(found, {"name": "target"}, Resource(document)), found[0].fields)


def _described(found: _Reference) -> str:
    return f"{found[0].kind} {found[1]}: {found[2].form} of {found[3].kind}"


def _sends_ids_alone(found: _Reference) -> bool:
    """Whether an id is sent for a resource, and a full name of another service's as its author wrote it."""
    return found[2].form == "id" and found[0].host != found[3].host


def test_each_full_form_of_a_reference_is_sent_as_one() -> None:
    different = {
        _described(found): [_members(found, one) for one in _full_forms(found[3], found[2].form)]
        for found in _FOUND
        if len({str(_members(found, one)) for one in _full_forms(found[3], found[2].form)}) > 1
    }

    assert len(_FOUND) > 300
    assert different == {}


def test_a_link_of_compute_engine_is_sent_as_it_is_where_a_name_is() -> None:
    names = [one for one in _FOUND if one[2].form == "name" and one[3].api == "compute"]
    changed = [
        _described(one) for one in names if _compute_link(one[3]) not in str(_members(one, _compute_link(one[3])))
    ]

    assert len(names) > 20
    assert changed == []


def test_a_full_name_is_sent_as_the_resource_of_that_name_is() -> None:
    different = {
        _described(found): (_members(found, _name(found[3])), _declared(found))
        for found in _FOUND
        if not _sends_ids_alone(found) and _members(found, _name(found[3])) != _declared(found)
    }

    assert different == {}


def test_an_id_is_sent_as_the_full_name_in_the_project_of_the_resource() -> None:
    different = {
        _described(found): (_members(found, own), _declared(found))
        for found in _FOUND
        for own in [_name(found[3]).rpartition("/")[2]]
        if _is_placed(found[3]) and _members(found, own) != _declared(found)
    }

    assert different == {}


def _is_placed(target: KindFacts) -> bool:
    """Whether the id of an object says which it is: it is in a project or a place, and in no other object."""
    others = variables_of(_template(target))[:-1]
    return all(one in ("project", *PLACES) for one in others) and not target.own_id


def _template(target: KindFacts) -> str:
    return next((one for one in templates_of(target) if f"/{GLOBAL}/" in one), templates_of(target)[0])


def test_a_live_object_in_any_full_form_has_no_drift() -> None:
    drifted = [
        f"{_described(found)}: {declared} over {live}"
        for found in _FOUND
        for declared in _full_forms(found[3], found[2].form)
        for live in _live_forms(found)
        if _has_drifted(found, declared, live)
    ]

    assert drifted == []


def _live_forms(found: _Reference) -> list[dict[str, Any]]:
    """The object with the reference as the service may return it: in full, by a link or by the number of the project.

    A text with something before the name has one form alone.
    """
    sent, name = _members(found, _name(found[3])), _name(found[3])
    text = _leaf(sent)
    others = [*_full_forms(found[3], found[2].form), name.replace("projects/acme/", "projects/123/")]
    return [sent, *(_with_leaf(sent, name, one) for one in others if text == name)]


def _with_leaf(value: Any, text: str, other: str) -> Any:
    if isinstance(value, dict):
        return {name: _with_leaf(one, text, other) for name, one in value.items()}
    if isinstance(value, list):
        return [_with_leaf(one, text, other) for one in value]
    return other if value == text else value


def _has_drifted(found: _Reference, declared: str, live: Mapping[str, Any]) -> bool:
    shown = from_members(live, found[0].fields)
    own = _resolved(found, {"external": declared})
    return not _is_within(fitted(own, shown, found[0].fields), shown)


def _is_within(part: Any, whole: Any) -> bool:
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(_is_within(value, whole.get(name)) for name, value in part.items())
    return bool(part == whole)


@pytest.mark.parametrize(
    "text",
    [
        ACCOUNT,
        f"serviceAccount:{ACCOUNT}",
        f"projects/-/serviceAccounts/{ACCOUNT}",
        f"projects/acme/serviceAccounts/{ACCOUNT}",
        f"//iam.googleapis.com/projects/acme/serviceAccounts/{ACCOUNT}",
        f"https://iam.googleapis.com/v1/projects/acme/serviceAccounts/{ACCOUNT}",
    ],
)
def test_a_service_account_is_sent_by_its_address_where_the_field_has_that(text: str) -> None:
    accounts = [one for one in REFERENCES if one[2].ref is not None and one[2].ref.form == "email"]

    assert len(accounts) > 30
    assert {_leaf(_account_sent(row, path, facts, text)) for row, path, facts in accounts} == {ACCOUNT}


def _account_sent(row: KindFacts, path: Path, facts: FieldFacts, text: str) -> dict[str, Any]:
    assert facts.ref is not None
    return _resolved((row, path, facts.ref, _ROWS["IAMServiceAccount"]), {"external": text})


def _leaf(value: Any) -> Any:
    while isinstance(value, dict | list):
        value = next(iter(value.values())) if isinstance(value, dict) else value[0]
    return value

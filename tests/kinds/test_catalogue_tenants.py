"""With a tenant, a kind of the catalogue names objects of the tenant's project alone, however a spec writes another."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.catalogue.index import kinds_by_group
from setpoint.catalogue.rows import FieldFacts, KindFacts, ReferenceFacts, facts_of
from setpoint.clients.google.client import GoogleAuth, GoogleClient, GoogleSettings
from setpoint.clients.http import HttpClient
from setpoint.core.values.paths import Path
from setpoint.engine.kind import ResolvedReferences
from setpoint.engine.resource import Resource
from setpoint.engine.tenancy.tenants import Tenant
from setpoint.errors import ProjectRefused
from setpoint.kinds.gcp.generic.kind import GoogleKind
from setpoint.kinds.gcp.generic.members import member_path
from setpoint.kinds.gcp.generic.spec_types import choices_of, is_choice
from setpoint.kinds.gcp.generic.tenant_references import named_project

TENANT = Tenant("team", "own", default_project="own")
FOREIGN = "projects/other/things/thing"
KEYS = {"KMSCryptoKey", "KMSCryptoKeyVersion"}


def references_of(fields: Mapping[str, FieldFacts], at: Path) -> Iterator[tuple[Path, FieldFacts]]:
    """Every reference that is sent, by its path; elements of lists by a zero."""
    for name, facts in fields.items():
        if not member_path(name, facts):
            continue
        here = at / name / 0 if facts.type == "list" else at / name
        if is_choice(facts):
            yield from references_of(choices_of(facts), here)
        elif facts.ref is not None:
            yield here, facts
        elif facts.fields:
            yield from references_of(facts.fields, here)


REFERENCES = [
    (row, path, facts)
    for name in kinds_by_group()
    for row in [facts_of(name)]
    for path, facts in references_of(row.fields, Path())
]


def declared(row: KindFacts, spec: dict[str, Any], tenant: Tenant = TENANT) -> Any:
    google = GoogleClient(HttpClient(), GoogleSettings(auth=GoogleAuth.ANONYMOUS))
    kind = GoogleKind.of(row, google).for_tenant(tenant)
    metadata = {"name": "thing", "namespace": "team"}
    manifest: dict[str, Any] = {
        "apiVersion": f"{row.group}/{row.version}",
        "kind": row.kind,
        "metadata": metadata,
        "spec": spec,
    }
    return kind.declare(Resource(manifest), ResolvedReferences())


def spec_with(path: Path, value: Any) -> dict[str, Any]:
    for step in reversed(path.steps):
        value = [value] if isinstance(step, int) else {step: value}
    assert isinstance(value, dict)
    return value


@given(st.sampled_from(REFERENCES))
def test_a_reference_to_another_project_is_refused_in_every_field_unless_it_is_shared(
    found: tuple[KindFacts, Path, FieldFacts],
) -> None:
    row, path, facts = found
    spec = spec_with(path, {"external": FOREIGN})
    shared = replace(TENANT, shared_projects=frozenset({"other"}))

    declared(row, spec, shared)
    declared(row, spec_with(path, {"external": "projects/own/things/thing"}))
    if facts.ref is not None and facts.ref.kinds and set(facts.ref.kinds) <= KEYS:
        declared(row, spec)
    else:
        with pytest.raises(ProjectRefused, match="of the project 'other'"):
            declared(row, spec)


@pytest.mark.parametrize(
    ("text", "kinds", "expected"),
    [
        ("projects/other/topics/t", (), "other"),
        ("https://www.googleapis.com/compute/v1/projects/other/global/networks/n", ("ComputeNetwork",), "other"),
        ("//pubsub.googleapis.com/projects/other/topics/t", (), "other"),
        ("projects/debian-cloud/global/images/family/debian-12", ("ComputeImage",), None),
        ("projects/debian-cloud/global/networks/n", ("ComputeNetwork",), "debian-cloud"),
        ("projects/other/locations/eu/keyRings/r/cryptoKeys/k", ("KMSCryptoKey",), None),
        ("other", ("Project",), "other"),
        ("thing", ("ComputeNetwork",), None),
        ("robot@other.iam.gserviceaccount.com", (), "other"),
        ("robot@id.example.com.iam.gserviceaccount.com", (), "example.com:id"),
        ("123-compute@developer.gserviceaccount.com", (), "123"),
        ("other@appspot.gserviceaccount.com", (), "other"),
        ("service-123@gcp-sa-pubsub.iam.gserviceaccount.com", (), None),
        ("see projects/other/topics/t, which is ours", (), None),
        ('resource.labels.project="projects/other"', (), None),
    ],
)
def test_the_project_that_a_text_names(text: str, kinds: tuple[str, ...], expected: str | None) -> None:
    facts = FieldFacts(ref=ReferenceFacts(kinds)) if kinds else FieldFacts()

    assert named_project(text, facts) == expected

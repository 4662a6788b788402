"""The API server and the check of a manifest accept the same specs, and the API server stores them unchanged."""

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from setpoint.core.values.canonical import same
from setpoint.engine.intent import check_manifest
from setpoint.engine.kind import ResourceType
from setpoint.engine.resource import Resource
from setpoint.errors import SetpointError
from setpoint.kinds.gcp.sql_database import SqlDatabaseKind, SqlDatabaseSpec
from setpoint.kinds.gcp.sql_instance.kind import SqlInstanceKind
from setpoint.kinds.gcp.sql_instance.spec import SqlInstanceSpec
from setpoint.kinds.gcp.sql_user import SqlUserKind
from setpoint.kinds.gcp.sql_user.spec import SqlUserSpec
from setpoint.kinds.gcp.storage_bucket.kind import StorageBucketKind
from setpoint.kinds.gcp.storage_bucket.spec import StorageBucketSpec
from setpoint.kinds.trustee.kbs_config import KbsConfigOwner, KbsConfigSpec
from setpoint.kinds.trustee.trustee_config import TrusteeConfigOwner, TrusteeConfigSpec
from tests.cluster.crds.resources import CustomResources, manifest
from tests.laws.odd_specs import odd_specs, right_specs

# A check sends no request.
NO_CLIENT: Any = None
KINDS: list[tuple[ResourceType, type[msgspec.Struct]]] = [
    (SqlDatabaseKind(NO_CLIENT), SqlDatabaseSpec),
    (SqlInstanceKind(NO_CLIENT), SqlInstanceSpec),
    (SqlUserKind(NO_CLIENT), SqlUserSpec),
    (StorageBucketKind(NO_CLIENT), StorageBucketSpec),
    (TrusteeConfigOwner(), TrusteeConfigSpec),
    (KbsConfigOwner({}), KbsConfigSpec),
]
# Refusals that no schema can express: other names of the same region, and elements that are there twice.
NOT_IN_SCHEMAS = (
    "dataLocations has to name two regions",
    "is there more than once",
    # Names that would change the path of a URL.
    "spec.resourceID is",
    "spec.host is",
)
# Each example is a request.
_few = settings(max_examples=30, suppress_health_check=list(HealthCheck))


def _refusal(document: Any, kind: ResourceType) -> str:
    """The refusal of the check of the manifest; empty when it accepts."""
    resource = Resource({**document, "metadata": {**document["metadata"], "namespace": "default"}})
    try:
        check_manifest(resource, kind)
    except SetpointError as error:
        return str(error)
    return ""


def _has_right_types(spec: Any, type_: type[msgspec.Struct]) -> bool:
    try:
        msgspec.convert(spec, type_)
    except msgspec.ValidationError:
        return False
    return True


def _has_duplicate_flags(spec: Any) -> bool:
    """Two flags of one name: the API server refuses them, the engine when it compares."""
    flags = ((spec.get("settings") or {}).get("databaseFlags")) or []
    names = [flag["name"] for flag in flags]
    return len(set(names)) < len(names)


@pytest.mark.parametrize(("kind", "type_"), KINDS, ids=[kind.name for kind, _ in KINDS])
@_few
@given(data=st.data())
def test_the_api_server_accepts_what_the_check_accepts_and_stores_it_unchanged(
    resources: CustomResources, kind: ResourceType, type_: type[msgspec.Struct], data: st.DataObject
) -> None:
    spec = data.draw(right_specs(type_))
    document = manifest(kind.name, spec)
    refusal, answer = _refusal(document, kind), resources.create_dry_run(document)

    if refusal or _has_duplicate_flags(spec):
        assert answer.status == 422 or any(words in refusal for words in NOT_IN_SCHEMAS)
    else:
        assert answer.status == 201, answer.body
        assert same(answer.body["spec"], spec)


@pytest.mark.parametrize(("kind", "type_"), KINDS, ids=[kind.name for kind, _ in KINDS])
@_few
@given(data=st.data())
def test_the_api_server_refuses_wrong_types(
    resources: CustomResources, kind: ResourceType, type_: type[msgspec.Struct], data: st.DataObject
) -> None:
    spec = data.draw(odd_specs(type_))

    if not _has_right_types(spec, type_):
        assert resources.create_dry_run(manifest(kind.name, spec)).status in (400, 422)

"""A cluster and our own check take the same specs, and a cluster gives them back unchanged."""

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from setpoint.core.values.canonical import same
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
from tests.cluster.crds.resources import Corner, manifest
from tests.laws.odd_specs import odd_specs, right_specs

# A check asks nothing of any service.
NO_CLIENT: Any = None
KINDS: list[tuple[ResourceType, type[msgspec.Struct]]] = [
    (SqlDatabaseKind(NO_CLIENT), SqlDatabaseSpec),
    (SqlInstanceKind(NO_CLIENT), SqlInstanceSpec),
    (SqlUserKind(NO_CLIENT), SqlUserSpec),
    (StorageBucketKind(NO_CLIENT), StorageBucketSpec),
    (TrusteeConfigOwner(), TrusteeConfigSpec),
    (KbsConfigOwner({}), KbsConfigSpec),
]
# What a cluster cannot know: whether a field is unmanaged, and which words mean the same place. And what the schemas of
# trustee-operator, which are kept as they are, leave to the controller.
LATER = (
    "spec.settings.edition is",
    "dataLocations has to name two regions",
    "spec.ibmSE.pvName must be set",
    "is there more than once",
)
# Each example is a question to a server.
_few = settings(max_examples=30, suppress_health_check=list(HealthCheck))


def _refusal(document: Any, kind: ResourceType) -> str:
    """What our own check says; nothing where it has nothing against it."""
    try:
        kind.check(Resource({**document, "metadata": {**document["metadata"], "namespace": "default"}}))
    except SetpointError as error:
        return str(error)
    return ""


def _has_right_types(spec: Any, type_: type[msgspec.Struct]) -> bool:
    try:
        msgspec.convert(spec, type_)
    except msgspec.ValidationError:
        return False
    return True


def _has_namesakes(spec: Any) -> bool:
    """Two flags of one name: a cluster refuses them at once, the embedded engine when it compares."""
    flags = ((spec.get("settings") or {}).get("databaseFlags")) or []
    names = [flag["name"] for flag in flags]
    return len(set(names)) < len(names)


@pytest.mark.parametrize(("kind", "type_"), KINDS, ids=[kind.name for kind, _ in KINDS])
@_few
@given(data=st.data())
def test_a_cluster_takes_what_our_check_takes_and_keeps_it_as_it_is(
    corner: Corner, kind: ResourceType, type_: type[msgspec.Struct], data: st.DataObject
) -> None:
    spec = data.draw(right_specs(type_))
    document = manifest(kind.name, spec)
    refusal, answer = _refusal(document, kind), corner.try_out(document)

    if refusal or _has_namesakes(spec):
        assert answer.status == 422 or any(words in refusal for words in LATER)
    else:
        assert answer.status == 201, answer.body
        assert same(answer.body["spec"], spec)


@pytest.mark.parametrize(("kind", "type_"), KINDS, ids=[kind.name for kind, _ in KINDS])
@_few
@given(data=st.data())
def test_what_has_a_wrong_type_no_cluster_takes(
    corner: Corner, kind: ResourceType, type_: type[msgspec.Struct], data: st.DataObject
) -> None:
    spec = data.draw(odd_specs(type_))

    if not _has_right_types(spec, type_):
        assert corner.try_out(manifest(kind.name, spec)).status in (400, 422)

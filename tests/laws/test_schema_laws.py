"""A schema accepts what its type accepts, and nothing else."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.schema.openapi import schema_of
from setpoint.kinds.gcp.sql_database import SqlDatabaseSpec
from setpoint.kinds.gcp.sql_instance.spec import SqlInstanceSpec
from setpoint.kinds.gcp.sql_user.spec import SqlUserSpec
from setpoint.kinds.gcp.storage_bucket.spec import StorageBucketSpec
from tests.laws.odd_specs import odd_specs, right_specs
from tests.laws.structural import fits

pytestmark = pytest.mark.laws

TYPES: list[type[msgspec.Struct]] = [SqlDatabaseSpec, SqlInstanceSpec, SqlUserSpec, StorageBucketSpec]
SCHEMAS = {type_: schema_of(type_, lambda _: {}) for type_ in TYPES}


def _is_accepted(spec: Any, type_: type[msgspec.Struct]) -> bool:
    try:
        msgspec.convert(spec, type_)
    except msgspec.ValidationError:
        return False
    return True


@pytest.mark.parametrize("type_", TYPES)
@given(data=st.data())
def test_a_schema_accepts_every_spec_of_its_type(type_: type[msgspec.Struct], data: st.DataObject) -> None:
    spec = data.draw(right_specs(type_))

    assert _is_accepted(spec, type_)
    assert fits(spec, SCHEMAS[type_])


@pytest.mark.parametrize("type_", TYPES)
@given(data=st.data())
def test_a_schema_refuses_what_its_type_refuses(type_: type[msgspec.Struct], data: st.DataObject) -> None:
    spec = data.draw(odd_specs(type_))

    assert fits(spec, SCHEMAS[type_]) == _is_accepted(spec, type_)

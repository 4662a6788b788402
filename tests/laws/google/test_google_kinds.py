"""Any spec over any live object under any policy: one step is enough, and it loses nothing that it has to keep."""

import msgspec
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from setpoint.core.schema.policy import FieldPolicy
from setpoint.core.schema.shape import paths_of, shape_of
from setpoint.core.values.paths import Path
from tests.laws.google.bed import run
from tests.laws.google.bucket_ground import BucketGround
from tests.laws.google.cases import cases, meddled, reconsidered
from tests.laws.google.enough import is_kept_as_declared
from tests.laws.google.from_types import Author, field_paths, paths_in, specs
from tests.laws.google.ground import Ground
from tests.laws.google.inside_grounds import DatabaseGround, UserGround
from tests.laws.google.instance_ground import InstanceGround
from tests.laws.google.keeping import losses

pytestmark = pytest.mark.laws
GROUNDS: tuple[Ground, ...] = (BucketGround(), InstanceGround(), DatabaseGround(), UserGround())
every_kind = pytest.mark.parametrize("ground", GROUNDS, ids=lambda ground: ground.kind)
BACKUPS = "spec.settings.backupConfiguration"
PROTECTED = {
    "StorageBucket": [
        *("spec.uniformBucketLevelAccess", "spec.publicAccessPrevention"),
        *("spec.softDeletePolicy", "spec.softDeletePolicy.retentionDurationSeconds"),
        *("spec.retentionPolicy", "spec.retentionPolicy.isLocked"),
    ],
    "SQLInstance": [
        *(BACKUPS, f"{BACKUPS}.binaryLogEnabled", f"{BACKUPS}.enabled", f"{BACKUPS}.pointInTimeRecoveryEnabled"),
        *("spec.settings.deletionProtectionEnabled", "spec.settings.edition"),
        "spec.settings.ipConfiguration.privateNetworkRef",
    ],
    "SQLDatabase": [],
    "SQLUser": [],
}


# --- The law ---------------------------------------------------------------------------------------------------------


@every_kind
@given(data=st.data())
def test_one_step_is_enough_and_loses_nothing(ground: Ground, data: st.DataObject) -> None:
    case = data.draw(cases(ground))

    event(run(is_kept_as_declared(case)))

    assert losses(case) == []


@every_kind
@given(data=st.data())
def test_one_step_is_enough_after_somebody_meddled(ground: Ground, data: st.DataObject) -> None:
    case = data.draw(cases(ground))
    run(is_kept_as_declared(case))
    case = data.draw(meddled(case))

    event(run(is_kept_as_declared(case)))

    assert losses(case) == []


@every_kind
@given(data=st.data())
def test_one_step_is_enough_after_the_author_thought_again(ground: Ground, data: st.DataObject) -> None:
    case = data.draw(cases(ground))
    run(is_kept_as_declared(case))
    case = data.draw(reconsidered(case))

    event(run(is_kept_as_declared(case)))

    assert losses(case) == []


# --- Nothing is left out ---------------------------------------------------------------------------------------------


@every_kind
@settings(max_examples=1)
@given(data=st.data())
def test_every_field_of_a_spec_is_spoken_of(ground: Ground, data: st.DataObject) -> None:
    for path in ground.fields:
        spec = data.draw(specs(ground.spec_type, Author(ground.words, path)))

        assert path in set(paths_in(spec))
        msgspec.convert(spec, ground.spec_type)


@every_kind
def test_the_fields_are_those_that_the_type_names(ground: Ground) -> None:
    named = [
        path.replace("[name=…,value=…]", "[]").replace("[name=…]", "[]").replace("[…]", "[]")
        for path in paths_of(shape_of(ground.spec_type))
    ]

    assert sorted(field_paths(ground.spec_type)) == sorted(path for path in named if not path.endswith("[]"))


@every_kind
def test_what_protects_is_known(ground: Ground) -> None:
    assert sorted(map(str, ground.protected)) == sorted(PROTECTED[ground.kind])


@every_kind
def test_every_path_in_a_policy_is_a_real_one(ground: Ground) -> None:
    listed = {"cnrm.cloud.google.com/unmanaged": ",".join(ground.policy_paths)}

    parsed = FieldPolicy.parse(listed, ground.shape).unmanaged

    assert parsed == tuple(map(Path.parse, ground.policy_paths))

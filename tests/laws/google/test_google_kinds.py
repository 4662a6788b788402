"""Any spec over any live object under any policy: one step is enough, and it loses nothing that it has to keep.

A step is taken until there is nothing to wait for. Then either everything is as declared, and the next step finds
nothing to do; or it is refused, in words that stand in the status:

* by the kind: nothing was written, and nothing is written by the next step either;
* by the service: what was written before that is done. The next step sends the refused write again, and of the others
  only what nobody can see: a password.
"""

import msgspec
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from setpoint.core.paths import Path
from setpoint.core.policy import FieldPolicy
from setpoint.core.shape import paths_of, shape_of
from setpoint.engine.scene import Settled, Stopped
from setpoint.errors import RemoteRefused, SetpointError, UserError
from tests.laws.google.bed import authored, run
from tests.laws.google.bucket_ground import BucketGround
from tests.laws.google.cases import Case, cases, meddled
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

    run(is_kept_as_declared(case))

    assert losses(case) == []


@every_kind
@given(data=st.data())
def test_one_step_is_enough_after_somebody_meddled(ground: Ground, data: st.DataObject) -> None:
    case = data.draw(cases(ground))
    run(is_kept_as_declared(case))
    case = data.draw(meddled(case))

    run(is_kept_as_declared(case))

    assert losses(case) == []


async def is_kept_as_declared(case: Case) -> None:
    """Takes the step, and sees to it that the next one has nothing to do."""
    bed, ref = case.bed, (await case.bed.store.apply(case.manifest)).ref
    written = authored(await bed.resource(ref))
    outcome = await bed.go_on(ref)
    if case.is_clone:
        # Whatever has another's data has its root password, too, until it has been seen.
        outcome = await bed.go_on(ref)
    match outcome:
        case Settled():
            await _is_settled(case)
        case Stopped(error=error):
            await _is_refused(case, error)
        case _:
            raise AssertionError(outcome)
    assert authored(await bed.resource(ref)) == written


async def _is_settled(case: Case) -> None:
    bed, ref = case.bed, case.ground.ref
    written = bed.writes()
    event("created" if case.view is None else "changed" if written else "as declared")
    assert (await bed.ready(ref))[:2] == ("True", "UpToDate")
    assert (await bed.plan(ref)).writes == ()
    assert isinstance(await bed.go_on(ref), Settled)
    assert bed.writes() == []


async def _is_refused(case: Case, error: SetpointError) -> None:
    bed, ref = case.bed, case.ground.ref
    event(f"refused by the {'kind' if isinstance(error, UserError) else 'service'}")
    assert isinstance(error, UserError | RemoteRefused)
    status, _, message = await bed.ready(ref)
    assert (status, str(error) in message) == ("False", True)
    first = bed.writes()
    again = await bed.go_on(ref)
    assert isinstance(again, Stopped)
    assert (type(again.error), str(again.error)) == (type(error), str(error))
    second = bed.writes()
    if isinstance(error, UserError):
        # What is fixed about another's data shows when it is there.
        assert (first == [] or case.is_clone, second) == (True, [])
    else:
        assert [one for one in second if one not in first] == []


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

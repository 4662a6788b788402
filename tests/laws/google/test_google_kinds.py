"""Any spec over any live object under any policy: one step is enough, and it loses nothing that it has to keep."""

import msgspec
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from setpoint.core.plan import Action
from setpoint.core.schema.policy import FieldPolicy
from setpoint.core.schema.shape import paths_of, shape_of
from setpoint.core.values.paths import Path
from setpoint.errors import UserError
from tests.laws.google.cases import cases, new_cases, with_live_edit, with_new_spec
from tests.laws.google.cloud_harness import run
from tests.laws.google.convergence import step_and_check
from tests.laws.google.from_types import Author, field_paths, paths_in, specs
from tests.laws.google.fuzzed_bucket import FuzzedBucket
from tests.laws.google.fuzzed_in_instance import FuzzedDatabase, FuzzedUser
from tests.laws.google.fuzzed_instance import FuzzedInstance
from tests.laws.google.fuzzed_kind import FuzzedKind
from tests.laws.google.preserved_fields import losses
from tests.laws.google.sent_fields import planned_fields, sent_fields

pytestmark = [pytest.mark.laws, pytest.mark.slow]
FUZZED_KINDS: tuple[FuzzedKind, ...] = (FuzzedBucket(), FuzzedInstance(), FuzzedDatabase(), FuzzedUser())
every_kind = pytest.mark.parametrize("fuzzed", FUZZED_KINDS, ids=lambda fuzzed: fuzzed.kind)
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
def test_one_step_is_enough_and_loses_nothing(fuzzed: FuzzedKind, data: st.DataObject) -> None:
    case = data.draw(cases(fuzzed))

    event(run(step_and_check(case)))

    assert losses(case) == []


@every_kind
@given(data=st.data())
def test_one_step_is_enough_after_a_live_edit(fuzzed: FuzzedKind, data: st.DataObject) -> None:
    case = data.draw(cases(fuzzed))
    run(step_and_check(case))
    case = data.draw(with_live_edit(case))

    event(run(step_and_check(case)))

    assert losses(case) == []


@every_kind
@given(data=st.data())
def test_one_step_is_enough_after_an_edit_of_the_spec(fuzzed: FuzzedKind, data: st.DataObject) -> None:
    case = data.draw(cases(fuzzed))
    run(step_and_check(case))
    case = data.draw(with_new_spec(case))

    event(run(step_and_check(case)))

    assert losses(case) == []


@every_kind
@given(data=st.data())
def test_a_creation_sends_exactly_the_fields_of_its_plan(fuzzed: FuzzedKind, data: st.DataObject) -> None:
    case = data.draw(new_cases(fuzzed))
    assume(not case.is_clone)
    harness, ref = case.harness, run(case.harness.store.apply(case.manifest)).ref
    try:
        planned = run(harness.plan(ref)).writes[0]
    except UserError:
        assume(False)
    run(harness.step_until_done(ref))

    method, _, body = harness.writes()[0]
    assert (method, planned.action) == ("POST", Action.CREATE)
    assert sent_fields(fuzzed.kind, body) == planned_fields(planned)


# --- Nothing is left out ---------------------------------------------------------------------------------------------


@every_kind
@settings(max_examples=1)
@given(data=st.data())
def test_every_field_of_a_spec_is_generated(fuzzed: FuzzedKind, data: st.DataObject) -> None:
    for path in fuzzed.fields:
        spec = data.draw(specs(fuzzed.spec_type, Author(fuzzed.words, path)))

        assert path in set(paths_in(spec))
        msgspec.convert(spec, fuzzed.spec_type)


@every_kind
def test_the_fields_are_those_that_the_type_names(fuzzed: FuzzedKind) -> None:
    named = [
        path.replace("[name=…,value=…]", "[]").replace("[name=…]", "[]").replace("[…]", "[]")
        for path in paths_of(shape_of(fuzzed.spec_type))
    ]

    assert sorted(field_paths(fuzzed.spec_type)) == sorted(path for path in named if not path.endswith("[]"))


@every_kind
def test_the_protected_fields_are_known(fuzzed: FuzzedKind) -> None:
    assert sorted(map(str, fuzzed.protected)) == sorted(PROTECTED[fuzzed.kind])


@every_kind
def test_every_path_in_a_policy_is_a_real_one(fuzzed: FuzzedKind) -> None:
    listed = {"cnrm.cloud.google.com/unmanaged": ",".join(fuzzed.policy_paths)}

    parsed = FieldPolicy.parse(listed, fuzzed.shape).unmanaged

    assert parsed == tuple(map(Path.parse, fuzzed.policy_paths))

"""Cases that the laws once failed on."""

from typing import Final

import pytest

from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.core.values.paths import Path, get_at
from tests.laws.google.cases import Case, Policy, case_of
from tests.laws.google.cloud_harness import PROJECT, CloudHarness, run
from tests.laws.google.convergence import step_and_check
from tests.laws.google.fuzzed_bucket import FuzzedBucket
from tests.laws.google.fuzzed_in_instance import FuzzedDatabase
from tests.laws.google.fuzzed_instance import INSTANCES, FuzzedInstance, new_instance
from tests.laws.google.fuzzed_kind import Spec
from tests.laws.google.preserved_fields import losses

MYSQL: Final = "MYSQL_8_0"
PLUS: Final[Spec] = {"tier": "db-perf-optimized-N-2", "edition": "ENTERPRISE_PLUS"}
ENTERPRISE: Final[Spec] = {"tier": "db-custom-1-3840", "edition": "ENTERPRISE"}
TERMINAL: Final = Policy(unmanaged=("spec.autoclass.terminalStorageClass",))
UNRETAINED: Final[Spec] = {"retentionPolicy": None}
AUDIT: Final = "spec.settings.sqlServerAuditConfig"


def bucket_case(live: Spec, spec: Spec, policy: Policy) -> Case:
    """A bucket that another writer created."""
    fuzzed, harness = FuzzedBucket(), CloudHarness()
    run(harness.create_references(MYSQL))
    body = {"name": fuzzed.name, "labels": {"managed-by-cnrm": "true"}, **live}
    assert harness.ask("POST", f"/storage/v1/b?project={PROJECT}", body)
    return case_of(fuzzed, harness, spec, policy)


def instance_case(version: str, live: Spec, spec: Spec, policy: Policy) -> Case:
    """An instance that another writer created."""
    fuzzed, harness = FuzzedInstance(), CloudHarness()
    run(harness.create_references(version))
    new_instance(harness, fuzzed.name, version, live)
    return case_of(fuzzed, harness, {"settings": spec}, policy)


def now(case: Case, path: str) -> Json | Missing:
    """The value at `path` after the step."""
    return get_at(case.fuzzed.view(case.harness) or {}, Path.parse(path))


@pytest.mark.parametrize("spec", [{}, {"autoclass": None}, {"autoclass": {"enabled": False}}])
def test_the_terminal_class_is_removed_with_autoclass_even_when_it_is_unmanaged(spec: Spec) -> None:
    case = bucket_case({"autoclass": {"enabled": True, "terminalStorageClass": "ARCHIVE"}}, spec, TERMINAL)

    ending = run(step_and_check(case))

    assert (ending, losses(case)) == ("changed", [])
    assert now(case, "spec.autoclass") == {"enabled": False}


@pytest.mark.parametrize("policy", [TERMINAL, Policy(listed=TERMINAL.unmanaged), Policy(ignores=True)])
def test_an_unmanaged_terminal_class_is_kept_while_autoclass_is_on(policy: Policy) -> None:
    live = {"autoclass": {"enabled": True, "terminalStorageClass": "ARCHIVE"}}
    case = bucket_case(live, {"autoclass": {"enabled": True}}, policy)

    ending = run(step_and_check(case))

    assert (ending, losses(case)) == ("as declared", [])
    assert now(case, "spec.autoclass") == {"enabled": True, "terminalStorageClass": "ARCHIVE"}


@pytest.mark.parametrize("spec", [{"retentionPolicy": {"retentionPeriod": 3600, "isLocked": False}}, UNRETAINED])
def test_a_spec_that_would_unlock_a_retention_policy_writes_nothing(spec: Spec) -> None:
    case = bucket_case({"retentionPolicy": {"retentionPeriod": "3600"}}, {**spec, "requesterPays": True}, Policy())
    assert case.harness.ask("POST", f"{case.fuzzed.path}/lockRetentionPolicy?ifMetagenerationMatch=1")
    case = case.with_current_live()

    ending = run(step_and_check(case))

    assert (ending, now(case, "spec.requesterPays")) == ("refused by the kind", MISSING)


@pytest.mark.parametrize("policy", [Policy(ignores=True), Policy(unmanaged=("spec.settings.backupConfiguration",))])
def test_a_binary_log_that_is_off_stays_off_in_the_higher_edition(policy: Policy) -> None:
    live = {**PLUS, "backupConfiguration": {"enabled": True, "binaryLogEnabled": False}}
    case = instance_case(MYSQL, live, {**PLUS, "maintenanceWindow": {"day": 1}}, policy)

    ending = run(step_and_check(case))

    assert (ending, losses(case)) == ("changed", [])
    assert now(case, "spec.settings.backupConfiguration.binaryLogEnabled") is False


def test_an_audit_without_a_bucket_is_kept_as_it_is() -> None:
    live = {**ENTERPRISE, "sqlServerAuditConfig": {"uploadInterval": "600s"}}
    audit = {"bucketRef": {"external": "gs://logs"}, "uploadInterval": "600s"}
    spec = {**ENTERPRISE, "sqlServerAuditConfig": audit, "diskSize": 20}
    case = instance_case("SQLSERVER_2019_STANDARD", live, spec, Policy(unmanaged=(f"{AUDIT}.bucketRef",)))

    ending = run(step_and_check(case))

    assert (ending, losses(case)) == ("changed", [])


@pytest.mark.parametrize("version", ["MYSQL_8_0", "POSTGRES_15"])
def test_a_database_of_another_engine_gets_no_sql_server_details(version: str) -> None:
    fuzzed, harness = FuzzedDatabase(), CloudHarness()
    new_instance(harness, "main", version, ENTERPRISE)
    assert harness.ask("POST", f"{INSTANCES}/main/databases", {"name": fuzzed.name})

    assert not harness.ask("PATCH", fuzzed.path, {"sqlserverDatabaseDetails": {"recoveryModel": "FULL"}})

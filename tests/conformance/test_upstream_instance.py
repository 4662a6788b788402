"""SQLInstance sends the writes of Config Connector, in the same order, with the same bodies."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conformance.instance_shapes import MYSQL, POSTGRES, SERVER, SHAPES, instance
from tests.conformance.sql_service import SqlService
from tests.conformance.two_controllers import Shape, written_by_setpoint, written_upstream
from tests.conformance.wire import Wire, WireRequest, in_one_order

# The writes of each recording, with the deletion of all that it created.
CHANGED = ["POST", "PUT", "DELETE"]
CHANGED_MYSQL = ["POST", "DELETE users", "PUT", "DELETE"]
UPGRADED = ["POST", "PATCH", "PUT", "DELETE"]
KNOWN = {
    "backupconfiguration-binarylog-direct": CHANGED_MYSQL,
    "mysql-direct": CHANGED_MYSQL,
    "mysql-direct, with a root password": CHANGED_MYSQL,
    "retainedbackups-default": CHANGED_MYSQL,
    "retainedbackups-default-enterprise-plus": CHANGED_MYSQL,
    "backupconfiguration-diff": ["POST", "DELETE"],
    "unmanage-fields": ["POST", "DELETE users", "DELETE"],
    "datacacheconfig-direct": ["POST", "PATCH", "DELETE"],
    "mysql-minimal-direct": ["POST", "DELETE users", "PATCH", "PUT", "DELETE"],
    "postgres-minimal-direct": UPGRADED,
    "clone-minimal-direct": ["POST", "POST clone", "DELETE", "DELETE"],
    "replica-direct": ["POST", "DELETE users", "POST", "DELETE users", "DELETE", "DELETE"],
    "replicationcluster-direct": ["POST", "DELETE users", "POST", "DELETE users", "PUT", "DELETE", "DELETE"],
    "postgres-replication": ["POST", "PUT"],
    "sqlserver-direct": ["POST", "DELETE"],
    "sqlserver-minimal-direct": UPGRADED,
    "postgres-direct": UPGRADED,
}


def both(shape: Shape) -> tuple[list[WireRequest], list[WireRequest]]:
    """The writes of Config Connector and of setpoint, each to its own service."""
    theirs = written_upstream(shape, Wire(SqlService().answer))
    ours = written_by_setpoint(shape, Wire(SqlService().answer))
    return [replace(one, body=in_one_order(one.body)) for one in theirs], [
        replace(one, body=in_one_order(one.body)) for one in ours
    ]


def summary(request: WireRequest) -> str:
    inside = [step for step in request.steps[2:] if step in ("users", "clone")]
    return " ".join([request.method, *inside])


@pytest.mark.parametrize("name", SHAPES)
def test_a_recording_of_this_shape_is_reproduced_write_by_write(name: str) -> None:
    theirs, ours = both(SHAPES[name])

    assert ours == theirs
    assert [summary(one) for one in ours] == KNOWN.get(name, CHANGED)


# --- Any two specs ----------------------------------------------------------------------------------------------------

bools = st.booleans()


def any_members(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """An object with any of these members."""
    return st.fixed_dictionaries({}, optional=fields)


networks = st.fixed_dictionaries(
    {"value": st.sampled_from(["10.0.0.0/8", "192.0.2.0/24"])}, optional={"name": st.just("n")}
)
modes = st.sampled_from(
    [
        {"requireSsl": True, "sslMode": "TRUSTED_CLIENT_CERTIFICATE_REQUIRED"},
        {"requireSsl": True},
        {"requireSsl": False, "sslMode": "ENCRYPTED_ONLY"},
        {"requireSsl": False},
    ]
)
ip_configurations = st.builds(
    lambda network, mode: {**network, **mode},
    any_members(
        authorizedNetworks=st.lists(networks, max_size=2, unique_by=lambda one: (one.get("name"), one["value"])),
        enablePrivatePathForGoogleCloudServices=bools,
        ipv4Enabled=bools,
        pscConfig=st.just([{"pscEnabled": True, "allowedConsumerProjects": ["a", "b"]}]),
    ),
    modes,
)
# All protecting fields are specified: where they are not, setpoint differs on purpose.
backups = st.fixed_dictionaries(
    {"enabled": bools, "transactionLogRetentionDays": st.integers(1, 7)},
    optional={
        "backupRetentionSettings": st.fixed_dictionaries(
            {"retainedBackups": st.integers(1, 9)}, optional={"retentionUnit": st.just("COUNT")}
        ),
        "location": st.sampled_from(["us", "eu"]),
        "startTime": st.sampled_from(["03:00", "12:00"]),
    },
)
policies = st.fixed_dictionaries(
    {"enablePasswordPolicy": bools},
    optional={
        "complexity": st.just("COMPLEXITY_DEFAULT"),
        "disallowUsernameSubstring": bools,
        "minLength": st.integers(0, 9),
        "reuseInterval": st.integers(0, 3),
    },
)
settings = st.fixed_dictionaries(
    {"backupConfiguration": backups, "deletionProtectionEnabled": bools, "ipConfiguration": ip_configurations},
    optional={
        "activationPolicy": st.sampled_from(["ALWAYS", "NEVER"]),
        "advancedMachineFeatures": st.fixed_dictionaries({"threadsPerCore": st.integers(1, 2)}),
        "availabilityType": st.sampled_from(["ZONAL", "REGIONAL", "zonal"]),
        "connectorEnforcement": st.sampled_from(["REQUIRED", "NOT_REQUIRED"]),
        "dataCacheConfig": st.just({"dataCacheEnabled": False}),
        "databaseFlags": st.lists(
            st.fixed_dictionaries({"name": st.sampled_from(["x", "y"]), "value": st.sampled_from(["0", "on"])}),
            max_size=2,
            unique_by=lambda one: one["name"],
        ),
        "denyMaintenancePeriod": st.just({"startDate": "2030-01-01", "endDate": "2030-02-01", "time": "00:00:00"}),
        "diskAutoresizeLimit": st.sampled_from([0, 100]),
        "diskSize": st.just(30),
        "insightsConfig": any_members(
            queryInsightsEnabled=bools,
            queryPlansPerMinute=st.sampled_from([0, 5, 9]),
            queryStringLength=st.sampled_from([0, 1024, 2048]),
            recordApplicationTags=bools,
        ),
        "locationPreference": st.fixed_dictionaries({"zone": st.sampled_from(["us-central1-a", "us-central1-f"])}),
        "maintenanceWindow": st.fixed_dictionaries({"day": st.integers(1, 7), "hour": st.integers(0, 23)}),
        "passwordValidationPolicy": policies,
        "pricingPlan": st.sampled_from(["PER_USE", "PACKAGE"]),
        "sqlServerAuditConfig": st.just({"bucketRef": {"external": "b"}, "uploadInterval": "600s"}),
        "tier": st.sampled_from(["db-custom-1-3840", "db-custom-2-7680"]),
    },
)
versions = st.sampled_from([MYSQL, POSTGRES, SERVER])


@pytest.mark.laws
@given(versions, settings, settings)
def test_for_any_two_manifests_the_writes_are_config_connectors(
    version: str, before: dict[str, Any], after: dict[str, Any]
) -> None:
    logged = _with_its_own_log(version, before), _with_its_own_log(version, after)
    first, second = (instance(version, one, rootPassword={"value": "Pa55-word"}) for one in logged)

    theirs, ours = both(Shape(first, second))

    assert ours == theirs


def _with_its_own_log(version: str, one: dict[str, Any]) -> dict[str, Any]:
    """Point-in-time recovery, which is another field for each engine."""
    log = "binaryLogEnabled" if version == MYSQL else "pointInTimeRecoveryEnabled"
    backed_up = one["backupConfiguration"]
    return {**one, "backupConfiguration": {**backed_up, log: backed_up["enabled"]}}

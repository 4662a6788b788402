"""SQLInstance in the local cloud: the requests of an update and their order, and refused changes."""

from typing import Any

import pytest

from setpoint.core.values.json_types import MISSING
from setpoint.core.values.paths import Path as DataPath
from setpoint.core.values.paths import get_at
from setpoint.engine.step.reconcile import preview, step
from setpoint.errors import ImmutableFieldChanged, OperationRunning, RemoteConflict
from setpoint.localcloud.faults import RewriteField
from setpoint.localcloud.sql.users import password_matches
from setpoint.testing.kind_parts import Spec
from tests.kinds.instances import (
    IGNORE,
    MYSQL,
    PATH,
    POSTGRES,
    REF,
    create_as_another_writer,
    error_in,
    in_instance_harness,
    instance,
    is_settled,
    users,
    with_settings,
    write_calls,
)
from tests.kinds.kind_harness import PROJECT, KindHarness


def test_version_edition_and_maintenance_have_requests_of_their_own_and_the_rest_follows() -> None:
    after = with_settings({**POSTGRES, "databaseVersion": "POSTGRES_16"}, edition="ENTERPRISE_PLUS")
    after = with_settings(after, tier="db-perf-optimized-N-2", pricingPlan="PACKAGE")
    after["maintenanceVersion"] = "POSTGRES_16_9.R20990101.00_01"

    async def scenario(engine: KindHarness) -> tuple[list[str], list[tuple[str, Any]]]:
        await engine.settle(instance(POSTGRES))
        engine.cloud.journal.clear()
        await engine.apply(instance(after))
        plan = await preview(REF, engine.engine)
        await engine.step_until_done(REF)
        return [write.name for write in plan.writes], engine.sent

    names, sent = in_instance_harness(scenario)

    assert names == ["database version", "edition", "maintenance version", "update"]
    assert sent[:3] == [
        ("PATCH", {"databaseVersion": "POSTGRES_16"}),
        ("PATCH", {"settings": {"edition": "ENTERPRISE_PLUS", "tier": "db-perf-optimized-N-2"}}),
        ("PATCH", {"maintenanceVersion": "POSTGRES_16_9.R20990101.00_01"}),
    ]
    assert (len(sent), sent[3][0]) == (4, "PUT")
    assert sent[3][1]["maintenanceVersion"] == "POSTGRES_16_9.R20990101.00_01"
    assert sent[3][1]["settings"]["settingsVersion"] == "4"


def test_the_tier_is_sent_with_the_edition_only_when_it_changes() -> None:
    async def scenario(engine: KindHarness) -> list[tuple[str, Any]]:
        create_as_another_writer(
            engine,
            databaseVersion="POSTGRES_15",
            settings={"tier": "db-perf-optimized-N-2", "edition": "ENTERPRISE_PLUS"},
        )
        engine.cloud.edit(PATH, {"settings": {"edition": "ENTERPRISE", "userLabels": {"managed-by-cnrm": "true"}}})
        plus = with_settings(POSTGRES, edition="ENTERPRISE_PLUS", tier="db-perf-optimized-N-2")
        await engine.settle(instance(plus))
        return engine.sent

    assert in_instance_harness(scenario)[0] == ("PATCH", {"settings": {"edition": "ENTERPRISE_PLUS"}})


def test_a_maintenance_version_is_sent_after_the_creation() -> None:
    wanted = {**POSTGRES, "maintenanceVersion": "POSTGRES_15_9.R20990101.00_01"}

    async def scenario(engine: KindHarness) -> tuple[list[tuple[str, Any]], bool]:
        outcome = await engine.settle(instance(wanted))
        return engine.sent, is_settled(outcome)

    sent, settled = in_instance_harness(scenario)

    assert "maintenanceVersion" not in sent[0][1]
    assert sent[1:] == [("PATCH", {"maintenanceVersion": "POSTGRES_15_9.R20990101.00_01"})]
    assert settled


def test_settings_that_changed_since_the_observation_are_observed_again() -> None:
    async def scenario(engine: KindHarness) -> tuple[Exception, Any]:
        await engine.settle(instance(POSTGRES, annotations=IGNORE))

        def drift(request: Any) -> None:
            if request.method == "PUT":
                engine.http.interrupt = lambda request: None
                engine.cloud.edit(PATH, {"settings": {"pricingPlan": "PACKAGE"}})

        engine.http.interrupt = drift
        bigger = with_settings(POSTGRES, tier="db-custom-2-7680")
        conflict = await step(await engine.apply(instance(bigger, annotations=IGNORE)), engine.engine)
        await engine.step_until_done(REF)
        return error_in(conflict), engine.live(PATH)["settings"]

    conflict, settings = in_instance_harness(scenario)

    assert isinstance(conflict, RemoteConflict)
    assert (settings["tier"], settings["pricingPlan"]) == ("db-custom-2-7680", "PACKAGE")


def test_a_busy_instance_is_waited_for_without_a_failure() -> None:
    async def scenario(engine: KindHarness) -> tuple[Exception, str, Any]:
        await engine.settle(instance(POSTGRES))
        engine.cloud.call("PATCH", PATH, {"settings": {"activationPolicy": "ON_DEMAND"}})
        ref = await engine.apply(instance(with_settings(POSTGRES, tier="db-custom-2-7680")))
        busy = await step(ref, engine.engine)
        reason = (await engine.ready(ref))[1]
        await engine.step_until_done(ref)
        return error_in(busy), reason, engine.live(PATH)["settings"]["tier"]

    busy, reason, tier = in_instance_harness(scenario)

    assert isinstance(busy, OperationRunning)
    assert (reason, tier) == ("Updating", "db-custom-2-7680")


def test_unmodelled_settings_survive_an_update() -> None:
    async def scenario(engine: KindHarness) -> tuple[list[tuple[str, Any]], Any]:
        await engine.settle(instance(with_settings(POSTGRES, maintenanceWindow={"day": 1, "hour": 2})))
        engine.cloud.edit(PATH, {"settings": {"retainBackupsOnDelete": True}})
        version = engine.live(PATH)["settings"]["settingsVersion"]
        engine.cloud.journal.clear()
        await engine.settle(instance(with_settings(POSTGRES, tier="db-custom-2-7680")))
        return [(method, {**body, "version": version}) for method, body in engine.sent], engine.live(PATH)["settings"]

    sent, settings = in_instance_harness(scenario)

    changed = {"tier": "db-custom-2-7680", "maintenanceWindow": None, "settingsVersion": sent[0][1]["version"]}
    assert [(method, body["settings"]) for method, body in sent] == [("PATCH", changed)]
    assert settings["retainBackupsOnDelete"] is True
    assert "maintenanceWindow" not in settings


def test_the_start_time_of_backups_is_sent_once() -> None:
    def starting(time: str) -> dict[str, Any]:
        return instance(with_settings(POSTGRES, backupConfiguration={"enabled": True, "startTime": time}))

    async def scenario(engine: KindHarness) -> tuple[list[Any], tuple[str, str, str]]:
        engine.cloud.inject(RewriteField("sql#instance", "settings.backupConfiguration.startTime", "05:00"))
        await engine.settle(starting("03:00"))
        await engine.settle(starting("04:00"))
        engine.cloud.edit(PATH, {"settings": {"backupConfiguration": {"startTime": "06:00"}}})
        await engine.step_until_done(REF)
        sent = [body["settings"]["backupConfiguration"]["startTime"] for _, body in engine.sent]
        return sent, await engine.ready(REF)

    sent, ready = in_instance_harness(scenario)

    assert sent == ["03:00", "04:00"]
    assert ready[:2] == ("True", "UpToDate")


def test_a_disk_that_was_resized_automatically_is_not_changed() -> None:
    async def scenario(engine: KindHarness) -> list[str]:
        await engine.settle(instance(with_settings(POSTGRES, diskSize=10)))
        engine.cloud.edit(PATH, {"settings": {"dataDiskSizeGb": "25"}})
        await engine.step_until_done(REF)
        return write_calls(engine)

    assert in_instance_harness(scenario) == ["POST instances"]


FIXED = [
    ({"region": "europe-west1"}, "spec.region"),
    ({"instanceType": "READ_REPLICA_INSTANCE"}, "spec.instanceType"),
    ({"masterInstanceRef": {"external": "other"}}, "spec.masterInstanceRef.external"),
    ({"encryptionKMSCryptoKeyRef": {"external": "projects/p/k"}}, "spec.encryptionKMSCryptoKeyRef.external"),
    ({"settings": {"diskType": "PD_HDD"}}, "spec.settings.diskType"),
    ({"settings": {"collation": "Latin1_General_CI_AS"}}, "spec.settings.collation"),
    ({"settings": {"timeZone": "UTC"}}, "spec.settings.timeZone"),
    ({"settings": {"diskAutoresize": False, "diskSize": 9}}, "spec.settings.diskSize"),
    ({"settings": {"ipConfiguration": {"privateNetworkRef": None}}}, "spec.settings.ipConfiguration.privateNetworkRef"),
]


@pytest.mark.parametrize(("change", "named"), FIXED, ids=[named for _, named in FIXED])
def test_a_change_of_an_immutable_field_is_refused_by_name(change: Spec, named: str) -> None:
    private = {"ipConfiguration": {"privateNetworkRef": {"external": "projects/p/global/networks/n"}}}
    before = with_settings(POSTGRES, **private)
    settings = {**before["settings"], **change.get("settings", {})}

    async def scenario(engine: KindHarness) -> tuple[Exception, list[str]]:
        await engine.settle(instance(before))
        outcome = await engine.settle(instance({**before, **change, "settings": settings}))
        return error_in(outcome), write_calls(engine)

    error, sent = in_instance_harness(scenario)

    assert isinstance(error, ImmutableFieldChanged)
    assert any(path.startswith(named) for path in error.paths)
    assert sent == ["POST instances"]


REMOVED: dict[str, tuple[Any, str, Any]] = {
    # The former settings; the path in the API; the value after the removal.
    "authorizedNetworks": ([{"name": "n", "value": "192.0.2.0/24"}], "ipConfiguration.authorizedNetworks", []),
    "databaseFlags": ([{"name": "a", "value": "1"}], "databaseFlags", None),
    "denyMaintenancePeriod": (
        {"startDate": "2026-01-01", "endDate": "2026-02-01", "time": "00:00:00"},
        "denyMaintenancePeriods",
        None,
    ),
    "insightsConfig": ({"queryInsightsEnabled": True}, "insightsConfig.queryInsightsEnabled", None),
    "maintenanceWindow": ({"day": 3, "hour": 4}, "maintenanceWindow", None),
    "passwordValidationPolicy": ({"enablePasswordPolicy": True, "minLength": 8}, "passwordValidationPolicy", None),
}
WAYS = [
    (name, way)
    for name, (value, _, _) in REMOVED.items()
    for way in ({}, {name: None}, *([{name: []}] if isinstance(value, list) else []))
]


@pytest.mark.parametrize(("name", "after"), WAYS, ids=[f"{name} by {way or 'silence'}" for name, way in WAYS])
def test_a_field_removed_from_the_spec_is_removed_from_the_instance(name: str, after: dict[str, Any]) -> None:
    value, member, left = REMOVED[name]

    def settings(declared: dict[str, Any]) -> dict[str, Any]:
        return {"ipConfiguration": declared} if name == "authorizedNetworks" else declared

    async def scenario(engine: KindHarness) -> tuple[bool, bool, list[str], Any]:
        await engine.settle(instance(with_settings(POSTGRES, **settings({name: value}))))
        before = get_at(engine.live(PATH)["settings"], DataPath.parse(member))
        outcome = await engine.settle(instance(with_settings(POSTGRES, **settings(after))))
        now = get_at(engine.live(PATH)["settings"], DataPath.parse(member))
        return before not in (MISSING, left), is_settled(outcome), write_calls(engine), None if now is MISSING else now

    assert in_instance_harness(scenario) == (True, True, ["POST instances", "PUT some-instance"], left)


# --- Secrets ---------------------------------------------------------------------------------------------------------


def test_a_password_in_the_spec_is_sent_when_it_changes() -> None:
    async def scenario(engine: KindHarness) -> tuple[list[tuple[str, Any]], bool, list[str]]:
        await engine.settle(instance({**POSTGRES, "rootPassword": {"value": "first"}}))
        engine.cloud.journal.clear()
        changed = with_settings({**POSTGRES, "rootPassword": {"value": "second"}}, pricingPlan="PACKAGE")
        await engine.settle(instance(changed))
        await engine.step_until_done(REF)
        (user,) = engine.cloud.sql.state.instances[f"{PROJECT}/some-instance"].users
        return engine.sent, password_matches(user, "second"), write_calls(engine)

    sent, reached, calls = in_instance_harness(scenario)

    assert calls == ["PUT users", "PUT some-instance"]
    assert sent[0][1] == {"instance": "some-instance", "name": "postgres", "password": "[redacted]"}
    assert reached


def test_a_root_password_that_is_declared_later_creates_the_user_again() -> None:
    async def scenario(engine: KindHarness) -> tuple[list[str], bool]:
        await engine.settle(instance(MYSQL))
        await engine.settle(instance({**MYSQL, "rootPassword": {"value": "s3cret"}}))
        (root,) = engine.cloud.sql.state.instances[f"{PROJECT}/some-instance"].users
        return users(engine), password_matches(root, "s3cret")

    assert in_instance_harness(scenario) == (["root"], True)


def test_an_earlier_write_does_not_settle_the_secret_of_a_later_one() -> None:
    def replicating(version: str, password: str) -> Spec:
        return {
            **MYSQL,
            "databaseVersion": version,
            "replicaConfiguration": {"username": "u", "password": {"value": password}},
        }

    async def scenario(engine: KindHarness) -> list[str]:
        await engine.settle(instance(replicating("MYSQL_8_0", "first")))
        engine.cloud.journal.clear()
        await engine.settle(instance(replicating("MYSQL_8_0_43", "second")))
        bodies = [body for _, body in engine.sent]
        return [
            body.get("replicaConfiguration", {}).get("mysqlReplicaConfiguration", {}).get("password", "-")
            for body in bodies
        ]

    assert in_instance_harness(scenario) == ["-", "[redacted]"]


def test_a_password_is_in_no_status_event_plan_or_log() -> None:
    async def scenario(engine: KindHarness) -> str:
        await engine.settle(instance({**POSTGRES, "rootPassword": {"value": "s3cret"}}))
        await engine.apply(instance({**POSTGRES, "rootPassword": {"value": "n3w"}}))
        plan = await preview(REF, engine.engine)
        await engine.step_until_done(REF)
        return f"{plan.to_data()} {(await engine.resource(REF)).status} {await engine.store.events()}"

    shown = in_instance_harness(scenario)

    assert "s3cret" not in shown
    assert "n3w" not in shown

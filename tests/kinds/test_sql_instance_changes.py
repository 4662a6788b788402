"""SQLInstance in the local cloud: what is sent when something changes, in which order, and what is refused."""

from typing import Any

import pytest

from setpoint.core.values.json_types import MISSING
from setpoint.core.values.paths import Path as DataPath
from setpoint.core.values.paths import get_at
from setpoint.engine.step.reconcile import preview, step
from setpoint.errors import ImmutableFieldChanged, OperationRunning, RemoteConflict
from setpoint.localcloud.faults import RewriteField
from setpoint.localcloud.sql.users import password_matches
from tests.engine.kind_fixture import Spec
from tests.kinds.instances import (
    IGNORE,
    MYSQL,
    PATH,
    POSTGRES,
    REF,
    asked,
    error_in,
    instance,
    is_settled,
    plant,
    played,
    users,
    with_settings,
)
from tests.kinds.kind_harness import PROJECT, KindHarness


def test_version_edition_and_maintenance_go_by_themselves_and_the_rest_follows_from_what_they_left() -> None:
    after = with_settings({**POSTGRES, "databaseVersion": "POSTGRES_16"}, edition="ENTERPRISE_PLUS")
    after = with_settings(after, tier="db-perf-optimized-N-2", pricingPlan="PACKAGE")
    after["maintenanceVersion"] = "POSTGRES_16_9.R20990101.00_01"

    async def scenario(engine: KindHarness) -> tuple[list[str], list[tuple[str, Any]]]:
        await engine.settle(instance(POSTGRES))
        engine.cloud.journal.clear()
        await engine.apply(instance(after))
        plan = await preview(REF, engine.engine)
        await engine.go_on(REF)
        return [write.name for write in plan.writes], engine.sent

    names, sent = played(scenario)

    assert names == ["database version", "edition", "maintenance version", "update"]
    assert sent[:3] == [
        ("PATCH", {"databaseVersion": "POSTGRES_16"}),
        ("PATCH", {"settings": {"edition": "ENTERPRISE_PLUS", "tier": "db-perf-optimized-N-2"}}),
        ("PATCH", {"maintenanceVersion": "POSTGRES_16_9.R20990101.00_01"}),
    ]
    assert (len(sent), sent[3][0]) == (4, "PUT")
    assert sent[3][1]["maintenanceVersion"] == "POSTGRES_16_9.R20990101.00_01"
    assert sent[3][1]["settings"]["settingsVersion"] == "4"


def test_the_tier_goes_with_the_edition_only_when_it_changes() -> None:
    async def scenario(engine: KindHarness) -> list[tuple[str, Any]]:
        plant(
            engine,
            databaseVersion="POSTGRES_15",
            settings={"tier": "db-perf-optimized-N-2", "edition": "ENTERPRISE_PLUS"},
        )
        engine.cloud.edit(PATH, {"settings": {"edition": "ENTERPRISE", "userLabels": {"managed-by-cnrm": "true"}}})
        plus = with_settings(POSTGRES, edition="ENTERPRISE_PLUS", tier="db-perf-optimized-N-2")
        await engine.settle(instance(plus))
        return engine.sent

    assert played(scenario)[0] == ("PATCH", {"settings": {"edition": "ENTERPRISE_PLUS"}})


def test_a_maintenance_version_is_sent_once_the_instance_is_there() -> None:
    wanted = {**POSTGRES, "maintenanceVersion": "POSTGRES_15_9.R20990101.00_01"}

    async def scenario(engine: KindHarness) -> tuple[list[tuple[str, Any]], bool]:
        outcome = await engine.settle(instance(wanted))
        return engine.sent, is_settled(outcome)

    sent, settled = played(scenario)

    assert "maintenanceVersion" not in sent[0][1]
    assert sent[1:] == [("PATCH", {"maintenanceVersion": "POSTGRES_15_9.R20990101.00_01"})]
    assert settled


def test_settings_that_moved_since_the_look_are_looked_at_again() -> None:
    async def scenario(engine: KindHarness) -> tuple[Exception, Any]:
        await engine.settle(instance(POSTGRES, annotations=IGNORE))

        def meddle(request: Any) -> None:
            if request.method == "PUT":
                engine.http.interrupt = lambda request: None
                engine.cloud.edit(PATH, {"settings": {"pricingPlan": "PACKAGE"}})

        engine.http.interrupt = meddle
        bigger = with_settings(POSTGRES, tier="db-custom-2-7680")
        conflict = await step(await engine.apply(instance(bigger, annotations=IGNORE)), engine.engine)
        await engine.go_on(REF)
        return error_in(conflict), engine.live(PATH)["settings"]

    conflict, settings = played(scenario)

    assert isinstance(conflict, RemoteConflict)
    assert (settings["tier"], settings["pricingPlan"]) == ("db-custom-2-7680", "PACKAGE")


def test_an_instance_that_is_busy_is_waited_for_and_nothing_failed() -> None:
    async def scenario(engine: KindHarness) -> tuple[Exception, str, Any]:
        await engine.settle(instance(POSTGRES))
        engine.cloud.call("PATCH", PATH, {"settings": {"activationPolicy": "ON_DEMAND"}})
        ref = await engine.apply(instance(with_settings(POSTGRES, tier="db-custom-2-7680")))
        busy = await step(ref, engine.engine)
        reason = (await engine.ready(ref))[1]
        await engine.go_on(ref)
        return error_in(busy), reason, engine.live(PATH)["settings"]["tier"]

    busy, reason, tier = played(scenario)

    assert isinstance(busy, OperationRunning)
    assert (reason, tier) == ("Updating", "db-custom-2-7680")


def test_settings_that_the_spec_has_no_word_for_survive_a_change() -> None:
    async def scenario(engine: KindHarness) -> tuple[list[tuple[str, Any]], Any]:
        await engine.settle(instance(with_settings(POSTGRES, maintenanceWindow={"day": 1, "hour": 2})))
        engine.cloud.edit(PATH, {"settings": {"retainBackupsOnDelete": True}})
        version = engine.live(PATH)["settings"]["settingsVersion"]
        engine.cloud.journal.clear()
        await engine.settle(instance(with_settings(POSTGRES, tier="db-custom-2-7680")))
        return [(method, {**body, "version": version}) for method, body in engine.sent], engine.live(PATH)["settings"]

    sent, settings = played(scenario)

    changed = {"tier": "db-custom-2-7680", "maintenanceWindow": None, "settingsVersion": sent[0][1]["version"]}
    assert [(method, body["settings"]) for method, body in sent] == [("PATCH", changed)]
    assert settings["retainBackupsOnDelete"] is True
    assert "maintenanceWindow" not in settings


def test_a_time_for_backups_is_a_wish_that_is_sent_once() -> None:
    def starting(time: str) -> dict[str, Any]:
        return instance(with_settings(POSTGRES, backupConfiguration={"enabled": True, "startTime": time}))

    async def scenario(engine: KindHarness) -> tuple[list[Any], tuple[str, str, str]]:
        engine.cloud.inject(RewriteField("sql#instance", "settings.backupConfiguration.startTime", "05:00"))
        await engine.settle(starting("03:00"))
        await engine.settle(starting("04:00"))
        engine.cloud.edit(PATH, {"settings": {"backupConfiguration": {"startTime": "06:00"}}})
        await engine.go_on(REF)
        sent = [body["settings"]["backupConfiguration"]["startTime"] for _, body in engine.sent]
        return sent, await engine.ready(REF)

    sent, ready = played(scenario)

    assert sent == ["03:00", "04:00"]
    assert ready[:2] == ("True", "UpToDate")


def test_a_disk_that_grew_by_itself_is_left_alone() -> None:
    async def scenario(engine: KindHarness) -> list[str]:
        await engine.settle(instance(with_settings(POSTGRES, diskSize=10)))
        engine.cloud.edit(PATH, {"settings": {"dataDiskSizeGb": "25"}})
        await engine.go_on(REF)
        return asked(engine)

    assert played(scenario) == ["POST instances"]


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
def test_what_cannot_change_is_refused_by_name(change: Spec, named: str) -> None:
    private = {"ipConfiguration": {"privateNetworkRef": {"external": "projects/p/global/networks/n"}}}
    before = with_settings(POSTGRES, **private)
    settings = {**before["settings"], **change.get("settings", {})}

    async def scenario(engine: KindHarness) -> tuple[Exception, list[str]]:
        await engine.settle(instance(before))
        outcome = await engine.settle(instance({**before, **change, "settings": settings}))
        return error_in(outcome), asked(engine)

    error, sent = played(scenario)

    assert isinstance(error, ImmutableFieldChanged)
    assert any(path.startswith(named) for path in error.paths)
    assert sent == ["POST instances"]


REMOVED: dict[str, tuple[Any, str, Any]] = {
    # What was there; where the service has it; what is left.
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
def test_what_goes_from_the_spec_goes_from_the_instance(name: str, after: dict[str, Any]) -> None:
    value, member, left = REMOVED[name]

    def settings(said: dict[str, Any]) -> dict[str, Any]:
        return {"ipConfiguration": said} if name == "authorizedNetworks" else said

    async def scenario(engine: KindHarness) -> tuple[bool, bool, list[str], Any]:
        await engine.settle(instance(with_settings(POSTGRES, **settings({name: value}))))
        before = get_at(engine.live(PATH)["settings"], DataPath.parse(member))
        outcome = await engine.settle(instance(with_settings(POSTGRES, **settings(after))))
        now = get_at(engine.live(PATH)["settings"], DataPath.parse(member))
        return before not in (MISSING, left), is_settled(outcome), asked(engine), None if now is MISSING else now

    assert played(scenario) == (True, True, ["POST instances", "PUT some-instance"], left)


# --- Secrets ---------------------------------------------------------------------------------------------------------


def test_a_password_that_stands_in_the_spec_reaches_the_database_when_it_changes() -> None:
    async def scenario(engine: KindHarness) -> tuple[list[tuple[str, Any]], bool, list[str]]:
        await engine.settle(instance({**POSTGRES, "rootPassword": {"value": "first"}}))
        engine.cloud.journal.clear()
        changed = with_settings({**POSTGRES, "rootPassword": {"value": "second"}}, pricingPlan="PACKAGE")
        await engine.settle(instance(changed))
        await engine.go_on(REF)
        (user,) = engine.cloud.sql.state.instances[f"{PROJECT}/some-instance"].users
        return engine.sent, password_matches(user, "second"), asked(engine)

    sent, reached, calls = played(scenario)

    assert calls == ["PUT users", "PUT some-instance"]
    assert sent[0][1] == {"instance": "some-instance", "name": "postgres", "password": "[redacted]"}
    assert reached


def test_a_root_password_that_is_declared_later_brings_the_user_back() -> None:
    async def scenario(engine: KindHarness) -> tuple[list[str], bool]:
        await engine.settle(instance(MYSQL))
        await engine.settle(instance({**MYSQL, "rootPassword": {"value": "s3cret"}}))
        (root,) = engine.cloud.sql.state.instances[f"{PROJECT}/some-instance"].users
        return users(engine), password_matches(root, "s3cret")

    assert played(scenario) == (["root"], True)


def test_a_secret_of_a_later_write_is_not_forgotten_by_an_earlier_one() -> None:
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

    assert played(scenario) == ["-", "[redacted]"]


def test_a_password_shows_nowhere() -> None:
    async def scenario(engine: KindHarness) -> str:
        await engine.settle(instance({**POSTGRES, "rootPassword": {"value": "s3cret"}}))
        await engine.apply(instance({**POSTGRES, "rootPassword": {"value": "n3w"}}))
        plan = await preview(REF, engine.engine)
        await engine.go_on(REF)
        return f"{plan.to_data()} {(await engine.resource(REF)).status} {await engine.store.events()}"

    shown = played(scenario)

    assert "s3cret" not in shown
    assert "n3w" not in shown

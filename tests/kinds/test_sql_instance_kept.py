"""What an instance keeps of what others decided: settings that the spec has no word for, and what is unmanaged."""

import asyncio
from typing import Any

import pytest
from msgspec import UNSET

from setpoint.clients.google.client import AnonymousCredentials, GoogleClient, GoogleSettings
from setpoint.core.overlay import overlay
from setpoint.core.plan import Action, PlannedWrite
from setpoint.engine.kind import Present
from setpoint.engine.resource import Resource
from setpoint.kinds.gcp.sql_instance import SqlInstance, SqlInstanceKind
from setpoint.kinds.gcp.sql_instance.requests import patch_body
from tests.clients.scripted_http import ScriptedHttp, response
from tests.kinds.instance_bodies import KIND, differing, intent_for, looked_at, manifest, replaced
from tests.kinds.typed_overlay import instance_as_spec

UNMANAGED = "cnrm.cloud.google.com/unmanaged"
PLUS = {"edition": "ENTERPRISE_PLUS", "tier": "db-perf-optimized-N-2"}


@pytest.mark.parametrize(
    ("settings", "members", "others"),
    [
        ({}, {}, []),
        (
            {"ipConfiguration": {"pscConfig": {"networkAttachmentUri": "projects/p/x"}}},
            {},
            ["settings.ipConfiguration.pscConfig.networkAttachmentUri"],
        ),
        ({}, {"failoverReplica": {"name": "standby"}}, ["failoverReplica.name"]),
        # A replica that was stopped by hand; one that runs is as declared.
        ({"databaseReplicationEnabled": False}, {}, ["settings.databaseReplicationEnabled"]),
        ({"databaseReplicationEnabled": True}, {}, []),
    ],
)
def test_settings_without_a_word_in_the_spec_are_seen(
    settings: dict[str, Any], members: dict[str, Any], others: list[str]
) -> None:
    assert looked_at(settings, **members).live.others == others


def patched(resource: Resource, before: Present[SqlInstance]) -> Any:
    intent, view = intent_for(resource), KIND.view(before.live)
    declared = KIND.fit_to_live(intent.declared, view)
    return patch_body(intent, declared, overlay(declared, view), before)["settings"]


def test_what_is_removed_takes_nothing_with_it_that_the_spec_has_no_word_for() -> None:
    insights = {"queryInsightsEnabled": True, "queryStringLength": 2048, "enhancedQueryInsightsEnabled": True}
    window = {"day": 1, "hour": 3}

    body = patched(manifest({}), looked_at({"insightsConfig": insights, "maintenanceWindow": window}))

    assert body["insightsConfig"] == {"queryInsightsEnabled": None, "queryStringLength": None}
    assert body["maintenanceWindow"] is None


def test_backups_that_are_unmanaged_are_not_the_author_s_to_give_up() -> None:
    policy = {UNMANAGED: "spec.settings.backupConfiguration.enabled"}
    resource = manifest({**PLUS, "backupConfiguration": None, "pricingPlan": "PACKAGE"}, annotations=policy)
    live = looked_at({**PLUS, "backupConfiguration": {"enabled": True}})

    assert replaced(resource, live)["settings"]["backupConfiguration"]["enabled"] is True


def test_no_region_is_no_wish_to_be_nowhere() -> None:
    live = looked_at({}, region="us-central1")

    assert [differing(manifest({}, region=region), live) for region in (None, "")] == [[], []]


def test_a_root_password_that_is_unmanaged_is_not_sent() -> None:
    http = ScriptedHttp(response(500))
    kind = SqlInstanceKind(GoogleClient(http, GoogleSettings(), AnonymousCredentials()))
    resource = manifest({}, rootPassword={"value": "s3cret"}, annotations={UNMANAGED: "spec.rootPassword"})
    intent, before = intent_for(resource), looked_at({})
    wanted = overlay(intent.declared, KIND.view(before.live))

    sent = asyncio.run(kind.update(intent, wanted, PlannedWrite(Action.UPDATE, "root password"), before))

    assert (sent, http.requests) == (None, [])


def test_an_audit_whose_bucket_is_left_to_others_is_sent_without_one() -> None:
    policy = {UNMANAGED: "spec.settings.sqlServerAuditConfig.bucketRef"}
    audit = {"bucketRef": {"external": "gs://logs"}, "uploadInterval": "600s"}
    resource = manifest({"sqlServerAuditConfig": audit}, annotations=policy)

    sent = replaced(resource, looked_at({}))["settings"]["sqlServerAuditConfig"]

    assert sent == {"kind": "sql#sqlServerAuditConfig", "uploadInterval": "600s"}
    assert differing(resource, looked_at({"sqlServerAuditConfig": sent})) == []
    assert instance_as_spec(looked_at({"sqlServerAuditConfig": sent}).live).settings.sqlServerAuditConfig is UNSET


@pytest.mark.parametrize("policy", [{}, {"cnrm.cloud.google.com/ignore-unspecified-fields": "true"}])
def test_a_binary_log_that_others_turned_off_is_not_turned_on_by_the_higher_edition(policy: dict[str, str]) -> None:
    resource = manifest({**PLUS, "pricingPlan": "PACKAGE"}, annotations=policy)
    live = looked_at({**PLUS, "backupConfiguration": {"enabled": True, "binaryLogEnabled": False}})

    assert replaced(resource, live)["settings"]["backupConfiguration"]["binaryLogEnabled"] is False

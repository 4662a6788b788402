"""Databases of Spanner: the statements of a creation, of an update, and in the dialect of PostgreSQL."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from setpoint.clients.google.client import GoogleAuth, GoogleClient, GoogleSettings
from setpoint.core.diff import FieldChange
from setpoint.core.plan import Action, PlannedWrite
from setpoint.core.values.canonical import digest
from setpoint.core.values.json_types import MISSING
from setpoint.core.values.paths import Path
from setpoint.engine.intent import intent_of
from setpoint.engine.kind import Absent, Intent, Present, ResolvedReferences
from setpoint.engine.resource import Resource
from setpoint.engine.state import ENGINE_STATE
from setpoint.errors import ImmutableFieldChanged
from setpoint.kinds.gcp.generic.kind import GoogleKind
from tests.catalogue_kinds.in_process import URL, InProcessClient, RecordingCloud
from tests.kinds.test_catalogue_requests import resource, row_of

ONE, TWO, THREE = (f"CREATE TABLE t{n} (a INT64 NOT NULL,) PRIMARY KEY(a)" for n in (1, 2, 3))
POSTGRESQL = {"databaseDialect": "POSTGRESQL"}
AT = "projects/acme/instances/i"


def kind_on(cloud: RecordingCloud) -> GoogleKind:
    settings = GoogleSettings(URL, URL, GoogleAuth.ANONYMOUS, base=URL)
    return GoogleKind.of(row_of("SpannerDatabase"), GoogleClient(InProcessClient(cloud), settings))


def intent_for(kind: GoogleKind, spec: dict[str, Any], known: Sequence[str] | None = None) -> Intent:
    """The intent of a database whose statements on record are the known ones."""
    document: dict[str, Any] = dict(resource(kind, {"instanceRef": {"external": "i"}, **spec}).document)
    document["metadata"] = {**document["metadata"], "uid": "u"}
    if known is not None:
        document["status"] = {ENGINE_STATE: {"secrets": {"spec.ddl": digest(["u", "spec.ddl", list(known)])}}}
    return intent_of(Resource(document), kind, ResolvedReferences())


def cloud_with_instance() -> RecordingCloud:
    cloud = RecordingCloud()
    body = {"instanceId": "i", "instance": {"config": "projects/acme/instanceConfigs/eu", "displayName": "d"}}
    answer = cloud.call("POST", "/spanner.googleapis.com/v1/projects/acme/instances", body)
    assert answer.status == 200, answer
    cloud.advance(60)
    cloud.written.clear()
    return cloud


def created(cloud: RecordingCloud, spec: dict[str, Any]) -> Any:
    """The body of the creation."""
    kind = kind_on(cloud)
    intent = intent_for(kind, spec)
    asyncio.run(kind.create(intent, intent.effective.over(Absent(), kind).tree))
    cloud.advance(60)
    return cloud.written[-1]


def updated(
    cloud: RecordingCloud, spec: dict[str, Any], known: Sequence[str] | None, *fields: str, write: str = "updateDdl"
) -> Any:
    """The body of the write of these fields; None when nothing is sent."""
    kind = kind_on(cloud)
    intent = intent_for(kind, spec, known)
    changes = tuple(FieldChange(Path(("spec", name)), MISSING, None) for name in fields)
    before = asyncio.run(kind.observe(intent.location))
    assert isinstance(before, Present)
    cloud.written.clear()
    asyncio.run(kind.update(intent, {}, PlannedWrite(Action.UPDATE, write, changes), before))
    return cloud.written[-1] if cloud.written else None


def test_a_creation_has_the_statements_and_the_one_that_keeps_versions() -> None:
    body = created(cloud_with_instance(), {"ddl": [ONE], "versionRetentionPeriod": "2h"})

    assert body == {
        "createStatement": "CREATE DATABASE `one`",
        "extraStatements": [ONE, 'ALTER DATABASE `one` SET OPTIONS (version_retention_period="2h")'],
    }


def test_a_creation_for_postgresql_has_no_other_statement_than_its_own() -> None:
    body = created(cloud_with_instance(), {**POSTGRESQL, "ddl": ["CREATE TABLE t (a int)"]})

    assert body == {**POSTGRESQL, "createStatement": 'CREATE DATABASE "one"'}


@pytest.mark.parametrize(("known", "expected"), [([ONE], [TWO, THREE]), ([ONE, TWO], [THREE]), ([], [ONE, TWO, THREE])])
def test_an_update_has_what_follows_the_statements_on_record(known: list[str], expected: list[str]) -> None:
    cloud = cloud_with_instance()
    created(cloud, {"ddl": known})

    assert updated(cloud, {"ddl": [ONE, TWO, THREE]}, known, "ddl") == {"statements": expected}


def test_statements_that_were_carried_out_cannot_change() -> None:
    cloud = cloud_with_instance()
    created(cloud, {"ddl": [ONE]})

    with pytest.raises(ImmutableFieldChanged, match=r"spec\.ddl can only have further statements at its end"):
        updated(cloud, {"ddl": [TWO]}, [ONE], "ddl")


def test_a_plan_refuses_statements_that_would_change_what_was_carried_out() -> None:
    cloud = cloud_with_instance()
    created(cloud, {"ddl": [ONE]})
    kind = kind_on(cloud)
    observed = asyncio.run(kind.observe(intent_for(kind, {"ddl": [ONE]}, [ONE]).location))
    assert isinstance(observed, Present)
    write = PlannedWrite(Action.UPDATE, "updateDdl", (FieldChange(Path(("spec", "ddl")), MISSING, None),))

    kind.check_update(intent_for(kind, {"ddl": [ONE, TWO]}, [ONE]), [write], observed)
    with pytest.raises(ImmutableFieldChanged, match=r"spec\.ddl can only have further statements at its end"):
        kind.check_update(intent_for(kind, {"ddl": [TWO]}, [ONE]), [write], observed)


def test_without_a_record_the_database_says_which_statements_were_carried_out() -> None:
    cloud = cloud_with_instance()
    created(cloud, {"ddl": [ONE.replace(" (", "(\n  ").replace("t1", "`t1`")]})

    assert updated(cloud, {"ddl": [ONE, TWO]}, None, "ddl") == {"statements": [TWO]}
    assert updated(cloud, {"ddl": [ONE]}, None, "ddl") is None


def test_how_long_versions_are_kept_is_a_statement() -> None:
    cloud = cloud_with_instance()
    created(cloud, {})

    body = updated(cloud, {"versionRetentionPeriod": "3h"}, None, "versionRetentionPeriod")

    assert body == {"statements": ['ALTER DATABASE `one` SET OPTIONS (version_retention_period="3h")']}
    cloud.advance(60)
    assert cloud.google.state.objects[f"spanner/{AT}/databases/one"].body["versionRetentionPeriod"] == "3h"


def test_the_first_statements_of_postgresql_follow_the_creation() -> None:
    cloud, spec = cloud_with_instance(), {**POSTGRESQL, "ddl": ["CREATE TABLE t (a int)"]}
    created(cloud, spec)
    kind = kind_on(cloud)

    assert kind.sending(intent_for(kind, spec)).follow_up == "first statements"
    assert kind.sending(intent_for(kind, {"ddl": [ONE]})).follow_up is None
    assert updated(cloud, spec, spec["ddl"], write="first statements") == {"statements": spec["ddl"]}

"""Databases of Spanner: statements of a schema are carried out, and never read back as they were written.

Those that follow the ones on record are carried out by `updateDdl`. A statement sets how long versions are kept, too.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from setpoint.clients.google.calls import GoogleCall
from setpoint.clients.response_bodies import decode_object
from setpoint.core.plan import PlannedWrite, PlanOptions, WriteStage
from setpoint.core.values.canonical import digest
from setpoint.core.values.json_types import JsonObject
from setpoint.core.values.paths import Path
from setpoint.engine.kind import Intent, Present, RemoteOperation
from setpoint.engine.state import StoredState
from setpoint.errors import ImmutableFieldChanged
from setpoint.kinds.gcp.generic.kind import GoogleKind
from setpoint.kinds.gcp.generic.operations import started_operation
from setpoint.kinds.gcp.generic.requests import GoogleRequest, object_call
from setpoint.kinds.gcp.generic.spec_types import GoogleObject

_DDL: Final = Path(("spec", "ddl"))
_RETENTION: Final = Path(("spec", "versionRetentionPeriod"))
_STATEMENTS: Final = "updateDdl"
_FIRST: Final = "first statements"
# What a service may write otherwise than an author: space, quotes and the last comma of a list.
_INSIGNIFICANT: Final = re.compile(r"[\s`\";]+|,(?=\s*\))")


class DatabaseKind(GoogleKind):
    """A database of Spanner."""

    def sending(self, intent: Intent) -> PlanOptions:
        """Statements in a write of their own. A database with the dialect of PostgreSQL is created without any."""
        found = super().sending(intent)
        stages = (WriteStage(_STATEMENTS, (_DDL, _RETENTION)), *found.stages)
        if not _is_postgresql(intent):
            return replace(found, stages=stages)
        later, first = (*found.after_creation, _RETENTION), _FIRST if _declared(intent) else None
        return replace(found, stages=stages, after_creation=later, follow_up=first)

    def creation_request(self, intent: Intent, wanted: JsonObject) -> GoogleRequest:
        """The request that creates the database, with its statements where the dialect has them there."""
        request = super().creation_request(intent, wanted)
        assert isinstance(request.body, Mapping)
        body = dict[str, Any](request.body)
        if _is_postgresql(intent):
            body.pop("extraStatements", None)
            body["createStatement"] = body["createStatement"].replace("`", '"')
        elif body.pop("versionRetentionPeriod", None):
            body["extraStatements"] = [*_declared(intent), _retention_statement(intent)]
        return replace(request, body=body)

    def check_update(self, intent: Intent, writes: Sequence[PlannedWrite], observed: Present[GoogleObject]) -> None:
        """See SupportsUpdateCheck: statements that were carried out stay as they are."""
        super().check_update(intent, writes, observed)
        if any(change.path == _DDL for write in writes if write.name == _STATEMENTS for change in write.changes):
            _following_recorded(intent)

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[GoogleObject]
    ) -> RemoteOperation | None:
        """Sends one write of the plan."""
        if write.name not in (_STATEMENTS, _FIRST):
            return await super().update(intent, wanted, write, before)
        paths = {change.path for change in write.changes}
        statements = await self._new_statements(intent, write) if write.name == _FIRST or paths - {_RETENTION} else []
        if _RETENTION in paths:
            statements.append(_retention_statement(intent))
        if not statements:
            return None
        answer = await self.send(GoogleRequest("PATCH", self._schema(intent), {"statements": statements}))
        return started_operation(self.row, "update", answer, intent.location)

    async def _new_statements(self, intent: Intent, write: PlannedWrite) -> list[str]:
        """The statements to carry out: of those that follow the ones on record, what the schema does not have yet."""
        following = _declared(intent) if write.name == _FIRST else _following_recorded(intent)
        schema = decode_object(await self.google.get(self._schema(intent)), intent.location)
        there = {_significant(str(one)) for one in schema.get("statements") or ()}
        return [one for one in following if _significant(one) not in there]

    def _schema(self, intent: Intent) -> GoogleCall:
        database = object_call(self.row, intent.location)
        return replace(database, parts=(*database.parts, "ddl"))


def _declared(intent: Intent) -> list[str]:
    return list(dict[str, Any](intent.resource.spec).get("ddl") or ())


def _following_recorded(intent: Intent) -> list[str]:
    """What follows the statements on record, or all without one. ImmutableFieldChanged when others were changed."""
    declared = _declared(intent)
    known = StoredState.of(intent.resource).secrets.get(str(_DDL))
    if known is None:
        return declared
    for count in range(len(declared), -1, -1):
        if digest([intent.resource.uid, str(_DDL), declared[:count]]) == known:
            return declared[count:]
    raise ImmutableFieldChanged(
        f"{_DDL} can only have further statements at its end: the earlier ones were carried out. "
        "Put them back as they were, and write what changes the schema after them",
        (str(_DDL),),
    )


def _is_postgresql(intent: Intent) -> bool:
    return intent.resource.spec.get("databaseDialect") == "POSTGRESQL"


def _retention_statement(intent: Intent) -> str:
    own, period = intent.location.rpartition("/")[2], intent.resource.spec["versionRetentionPeriod"]
    if _is_postgresql(intent):
        return f"ALTER DATABASE \"{own}\" SET spanner.version_retention_period = '{period}'"
    return f'ALTER DATABASE `{own}` SET OPTIONS (version_retention_period="{period}")'


def _significant(statement: str) -> str:
    return _INSIGNIFICANT.sub("", statement).lower()

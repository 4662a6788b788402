"""Definitions that a cluster comes to serve while a process runs."""

import asyncio
import json
import logging
from typing import Any

import pytest

from setpoint.clients.http import HttpResponse
from setpoint.stores.kubernetes.served_definitions import ServedDefinitions
from tests.engine.clock import FakeClock

VERSION = "pubsub.cnrm.cloud.google.com/v1beta1"


class _OpenApiServer:
    """The OpenAPI documents of a cluster that serves these kinds of a version."""

    def __init__(self) -> None:
        self.kinds: list[str] = []

    async def read(self, path: str, _headers: object) -> HttpResponse:
        """The list of documents, or the document."""
        if path == "/openapi/v3":
            address = f"/openapi/v3/apis/{VERSION}?hash={len(self.kinds)}"
            paths = {f"apis/{VERSION}": {"serverRelativeURL": address}} if self.kinds else {}
            return HttpResponse(200, {}, json.dumps({"paths": paths}).encode())
        group, _, version = VERSION.partition("/")
        names = [{"group": group, "version": version, "kind": kind} for kind in self.kinds]
        schemas = {one["kind"]: {"x-kubernetes-group-version-kind": [one]} for one in names}
        return HttpResponse(200, {}, json.dumps({"components": {"schemas": schemas}}).encode())


def test_a_kind_that_comes_to_be_served_is_said_once_to_need_a_restart(caplog: pytest.LogCaptureFixture) -> None:
    server: Any = _OpenApiServer()
    found = ServedDefinitions(server, (), FakeClock(), {VERSION: ["PubSubTopic", "PubSubSchema"]})

    def refreshed(*kinds: str) -> list[Any]:
        server.kinds = list(kinds)
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            asyncio.run(found.refresh())
        return [(one.getMessage(), one.__dict__["kind"]) for one in caplog.records]

    assert refreshed() == []
    assert refreshed("PubSubTopic") == [("kind not handled", "PubSubTopic")]
    assert refreshed("PubSubTopic", "PubSubSchema") == [("kind not handled", "PubSubSchema")]
    assert refreshed("PubSubTopic", "PubSubSchema", "Another") == []

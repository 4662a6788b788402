"""The OpenAPI document of the API v1, made from its routes and the types of its answers."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from setpoint.core.values.json_types import Json
from setpoint.dashboard.api import models
from setpoint.dashboard.api.routes import API, EVENT_STREAM, ROUTES, ApiRoute

_TEMPLATE: Final = "#/components/schemas/{name}"
# Those of the events of the stream, which no route answers with.
_EVENTS: Final = (models.ResourceChanges, models.NextStepTimes, models.PlanProgress, models.StoreTrouble)
_DESCRIPTION: Final = (
    "What the dashboard of setpoint reads. Within v1, members are added and none is taken away or given another "
    "meaning. Every POST needs the header `X-Setpoint: 1` and a body of type application/json. Secret values are "
    "never sent: `(redacted)` stands for them."
)
_ID: Final[Json] = {
    "name": "id",
    "in": "path",
    "required": True,
    "description": "KIND.GROUP/NAMESPACE/NAME: three segments of the path.",
    "schema": {"type": "string"},
}
_ACTION: Final[Json] = {
    "name": "action",
    "in": "path",
    "required": True,
    "schema": {"enum": ["reconcile", "pause", "resume"]},
}


def openapi_document() -> dict[str, Any]:
    """The document, in OpenAPI 3.1."""
    bodies = [route.body for route in ROUTES if route.body is not None]
    answers = [route.answer for route in ROUTES if route.answer not in (None, Any)]
    types = list(dict.fromkeys([*answers, *bodies, *_EVENTS, models.ErrorAnswer]))
    schemas, components = msgspec.json.schema_components(types, ref_template=_TEMPLATE)
    by_type = dict(zip(types, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(f"{API}{route.path}", {})[route.method.lower()] = _operation(route, by_type)
    return {
        "openapi": "3.1.0",
        "info": {"title": "setpoint dashboard", "version": "v1", "description": _DESCRIPTION},
        "paths": paths,
        "components": {
            "schemas": dict(sorted(components.items())),
            "securitySchemes": {
                "session": {"type": "apiKey", "in": "cookie", "name": "setpoint-session-PORT"},
                "bearer": {"type": "http", "scheme": "bearer"},
            },
        },
    }


def _operation(route: ApiRoute, schemas: Mapping[Any, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": route.handler,
        "summary": route.summary,
        "security": [{"session": []}, {"bearer": []}] if route.needs_session else [],
        "parameters": _parameters(route),
        "responses": {str(route.status): _answer(route, schemas), "default": _error(schemas)},
    }
    if route.body is not None:
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": schemas[route.body]}}}
    return found


def _parameters(route: ApiRoute) -> list[Json]:
    in_path = [one for name, one in (("{id}", _ID), ("{action}", _ACTION)) if name in route.path]
    in_query: list[Json] = [
        {"name": one.name, "in": "query", "description": one.description, "schema": {"type": one.type}}
        for one in route.query
    ]
    return [*in_path, *in_query]


def _answer(route: ApiRoute, schemas: Mapping[Any, Any]) -> dict[str, Any]:
    if route.answer is None:
        return {"description": "A stream without an end.", "content": {EVENT_STREAM: {"schema": {"type": "string"}}}}
    schema = {} if route.answer is Any else schemas[route.answer]
    return {"description": "Done.", "content": {"application/json": {"schema": schema}}}


def _error(schemas: Mapping[Any, Any]) -> dict[str, Any]:
    return {
        "description": "What went wrong.",
        "content": {"application/json": {"schema": schemas[models.ErrorAnswer]}},
    }

"""Long-running operations: their names in answers, where they are polled, and how they end."""

import re
from collections.abc import Mapping
from typing import Any, Final

from setpoint.catalogue.rows import KindFacts
from setpoint.clients.google.calls import GoogleApi, GoogleCall
from setpoint.clients.google.client import GoogleClient
from setpoint.clients.response_bodies import decode_object
from setpoint.engine.kind import Location, RemoteOperation
from setpoint.errors import RemoteRefused, RemoteUnavailable
from setpoint.kinds.gcp.generic.equivalence import relative_name
from setpoint.kinds.gcp.generic.requests import api_of

# A name becomes a path: nothing else is polled.
_NAME: Final = re.compile(r"(?:[A-Za-z0-9_.~-]+/)*operations/[A-Za-z0-9_.~-]+")


def started_operation(row: KindFacts, verb: str, body: bytes, location: Location) -> RemoteOperation | None:
    """The operation that an answer names; None when there is none, or it is done already."""
    sort = row.operations.get(verb)
    return None if sort is None else operation_in(sort, body, location)


def operation_in(sort: str, body: bytes, location: Location) -> RemoteOperation | None:
    """The operation of this sort that an answer names; None when there is none, or it is done already."""
    answer = decode_object(body, location)
    name = _name(sort, answer, location)
    if not name or _is_done(answer, name):
        return None
    if _NAME.fullmatch(name) is None:
        raise RemoteUnavailable(f"the answer is not what it should be: {name!r} is no name of an operation")
    return RemoteOperation(name)


def _name(sort: str, answer: Mapping[str, Any], location: Location) -> str:
    own = str(answer.get("name") or "")
    match sort:
        case "longrunning":
            return own if "operations/" in own else ""
        case "dns":
            return f"{location}/operations/{answer['id']}" if "id" in answer else ""
        case _ if "selfLink" in answer:
            return relative_name(str(answer["selfLink"]))
        case _ if "zone" in answer or "location" in answer:
            project = location.split("/")[1]
            return f"projects/{project}/locations/{answer.get('location') or answer.get('zone')}/operations/{own}"
        case _:
            return ""


def _is_done(answer: Mapping[str, Any], name: str) -> bool:
    """Whether the operation has ended; RemoteRefused when it has failed."""
    if answer.get("done") is not True and str(answer.get("status", "")).upper() != "DONE":
        return False
    error = answer.get("error")
    if error:
        raise RemoteRefused(f"operation {answer.get('operationType') or name} failed: {_problem(error)}")
    return True


def _problem(error: Any) -> str:  # noqa: ANN401 - JSON
    found = error.get("errors") if isinstance(error, Mapping) else None
    if isinstance(found, list):
        told = [one for one in found if isinstance(one, Mapping)]
        return "; ".join(f"{one.get('code', '')}: {one.get('message', '')}" for one in told)
    return str(error.get("message") or "it does not say why") if isinstance(error, Mapping) else str(error)


async def is_operation_done(row: KindFacts, operation: RemoteOperation, google: GoogleClient) -> bool:
    """Whether the operation is done. One that has expired is: the next observation shows its result.

    So is a text that is no operation: the status of a resource may hold anything.
    """
    return await is_done_at(api_of(row, operation.name), operation, google)


async def is_done_at(api: GoogleApi, operation: RemoteOperation, google: GoogleClient) -> bool:
    """The same for an operation of any API."""
    return await finished_operation(api, operation, google) is not None


async def finished_operation(
    api: GoogleApi, operation: RemoteOperation, google: GoogleClient
) -> Mapping[str, Any] | None:
    """The answer of an operation that is done; None while it runs. Nothing is known of one that has expired."""
    if _NAME.fullmatch(operation.name) is None:
        return {}
    body = await google.get(GoogleCall(api, tuple(operation.name.split("/"))))
    if body is None:
        return {}
    answer = decode_object(body, operation.name)
    return answer if _is_done(answer, operation.name) else None

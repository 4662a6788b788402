"""Where an instance is, what its operations are called, and which calls they come to."""

import re
from collections.abc import Mapping
from typing import Final

from setpoint.clients.google import Call, Service
from setpoint.engine.kind import Location

_LOCATION: Final = re.compile(r"projects/([^/]+)/instances/([^/]+)")


def parts_of(location: Location) -> tuple[str, str]:
    """Project and instance."""
    found = _LOCATION.fullmatch(location)
    assert found is not None, location
    return found[1], found[2]


def project_in(location: Location) -> str | None:
    """The project; None when this is no instance's place."""
    found = _LOCATION.fullmatch(location)
    return None if found is None else found[1]


def instance_call(location: Location) -> Call:
    """The instance itself."""
    return Call(Service.SQL, ("projects", *_project_and("instances", location)))


def instances_call(project: str) -> Call:
    """All instances of a project: where a new one goes."""
    return Call(Service.SQL, ("projects", project, "instances"))


def clone_call(project: str, source: str) -> Call:
    """The order to make a new instance from another."""
    return Call(Service.SQL, ("projects", project, "instances", source, "clone"))


def users_call(location: Location, query: Mapping[str, str] | None = None) -> Call:
    """The users of an instance, or the one that the query names."""
    return Call(Service.SQL, ("projects", *_project_and("instances", location), "users"), query or {})


def _project_and(what: str, location: Location) -> tuple[str, str, str]:
    project, instance = parts_of(location)
    return project, what, instance

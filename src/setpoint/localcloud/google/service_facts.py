"""A new object with what its service fills in where the client left it out, as far as rows do not say it."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from setpoint.localcloud.clock import timestamp
from setpoint.localcloud.google.filled_members import FILLED_MEMBERS
from setpoint.localcloud.google.outputs import ObjectAddress, numeric_id
from setpoint.localcloud.routing import project_number
from setpoint.localcloud.schema import JsonBody

_PLACE: Final = re.compile(r"projects/[^/]+/(global|(?:regions|zones|locations)/[^/]+)/")


def filled(address: ObjectAddress, body: JsonBody, now: datetime) -> JsonBody:
    """A new object with what its service fills in, in it and in the objects that it has."""
    defaults = FILLED_MEMBERS.get(f"{address.collection.api}/{address.collection.plural}")
    if defaults is None:
        return body
    place = _PLACE.match(address.name)
    variables = {
        "id": address.id,
        "project": address.project,
        "number": project_number(address.project),
        "place": place[1] if place else "global",
        "now": timestamp(now),
        "unique": numeric_id(address.key),
    }
    return _filled(_special(address, body), defaults, variables)


def _filled(body: JsonBody, defaults: Mapping[str, Any], variables: Mapping[str, str]) -> JsonBody:
    result = dict(body)
    for name, default in defaults.items():
        value = result.get(name)
        if name not in result:
            result[name] = _said(default, variables)
        elif isinstance(value, dict) and isinstance(default, dict):
            result[name] = _filled(value, default, variables)
    return result


def _said(default: Any, variables: Mapping[str, str]) -> Any:  # noqa: ANN401 - JSON
    if isinstance(default, str):
        return re.sub(r"\{(\w+)\}", lambda found: variables[found[1]], default)
    if isinstance(default, Mapping):
        return {name: _said(one, variables) for name, one in default.items()}
    return default


def _special(address: ObjectAddress, body: JsonBody) -> JsonBody:
    """Members that follow from another one."""
    match address.collection.api, address.collection.plural:
        case "spanner", "instances" if "nodeCount" in body and "processingUnits" not in body:
            return {**body, "processingUnits": 1000 * int(body["nodeCount"])}
        case "spanner", "instances" if "processingUnits" in body and "nodeCount" not in body:
            return {**body, "nodeCount": int(body["processingUnits"]) // 1000}
        case "compute", "forwardingRules" if str(body.get("portRange", "")).isdecimal():
            return {**body, "portRange": f"{body['portRange']}-{body['portRange']}"}
        case "compute", "addresses" if body.get("addressType") == "INTERNAL":
            return {"address": "10.0.0.10", **body}
        case _:
            return body

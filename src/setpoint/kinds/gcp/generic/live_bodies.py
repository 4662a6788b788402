"""Objects as the service answers them: whether one counts as absent, its labels, and what the status shows of it."""

from collections.abc import Mapping
from typing import Any

from setpoint.catalogue.rows import KindFacts
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.engine.kind import Location
from setpoint.engine.management import MARK_LABEL
from setpoint.kinds.gcp.generic.spec_types import ENGINE_NAMES, reported_names


def shown_labels(labels: Any) -> dict[str, str] | None:  # noqa: ANN401 - JSON
    """The labels of an object without the mark of its resource, which no author declares."""
    if not isinstance(labels, Mapping):
        return None
    return {name: str(value) for name, value in labels.items() if name != MARK_LABEL}


def is_absent(row: KindFacts, body: Mapping[str, Any]) -> bool:
    """Whether an object counts as absent: it was deleted, and the service keeps it for a time."""
    return any(body.get(name) in values for name, values in row.absent.items())


def outputs_of(row: KindFacts, body: Mapping[str, Any], location: Location) -> JsonObject:
    """What the status shows: the name, the link, and what the service set; as Config Connector has it."""
    reported: dict[str, Json] = {name: body[name] for name in reported_names(row) if name in body}
    found: dict[str, Json] = {"externalRef": location}
    link = body.get("selfLink")
    # Others refer to it by this, whether the service has links or not.
    found["selfLink"] = link if isinstance(link, str) else location
    if reported:
        found["observedState"] = reported
    return {**{name: value for name, value in reported.items() if name not in ENGINE_NAMES}, **found}

"""Recorded requests of the real services result in the recorded resource."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from setpoint.localcloud.cloud import Cloud
from setpoint.localcloud.schema import JsonBody, member, merge_patch, with_member, without_member
from tests.localcloud.requests import OPERATION_SECONDS, get, ok

_RECORDED: Final = json.loads((Path(__file__).parent / "data" / "recorded.json").read_text(encoding="utf-8"))
_SEQUENCES: Final[dict[str, list[JsonBody]]] = _RECORDED["sequences"]
_TIMES: Final = {
    "effectiveTime",
    "lockedTime",
    "timeCreated",
    "updated",
    "toggleTime",
    "terminalStorageClassUpdateTime",
}
# These differ between clouds.
_OWN: Final = {"etag", "generation", "id", "projectNumber"}
# Seen in the real service, not in these recordings.
_MORE: Final = (
    "settings.replicationLagMaxSeconds",
    "settings.backupConfiguration.backupTier",
    "settings.ipConfiguration.serverCertificateRotationMode",
)


@pytest.mark.parametrize("name", sorted(_SEQUENCES))
def test_a_recorded_sequence_ends_in_the_recorded_resource(cloud: Cloud, name: str) -> None:
    compared = 0
    for step in _SEQUENCES[name]:
        if "answer" in step:
            compared += 1
            wanted = merge_patch(_RECORDED["bases"].get(step["kind"], {})["answer"], step["answer"])
            assert _comparable(get(cloud, step["path"]), wanted) == _without_times(wanted)
        else:
            _send(cloud, step)

    assert compared > 0


def _send(cloud: Cloud, step: JsonBody) -> None:
    body = step.get("body")
    if "over" in step:
        body = merge_patch(_RECORDED["bases"][step["kind"]]["request"], step["over"])
    if step["method"] == "PUT" and step["kind"] == "sql#instance":
        # The recordings blank the version of the settings out; it is the live one.
        version = member(get(cloud, step["path"]), "settings.settingsVersion")
        body = with_member(body or {}, "settings.settingsVersion", version)
    ok(cloud.call(step["method"], step["path"], body))
    cloud.advance(OPERATION_SECONDS)


def _comparable(live: JsonBody, recorded: JsonBody) -> Any:
    for path in _MORE:
        live = live if member(recorded, path) is not None else without_member(live, path)
    # Blanked out in every recorded response.
    live = without_member(
        without_member(live, "settings.ipConfiguration.authorizedNetworks"), "settings.settingsVersion"
    )
    if live["kind"] == "sql#instance":
        live = {key: value for key, value in live.items() if key in recorded}
    return _without_times({key: value for key, value in live.items() if key not in _OWN})


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: "a time" if key in _TIMES else _without_times(inner) for key, inner in value.items()}
    return [_without_times(one) for one in value] if isinstance(value, list) else value

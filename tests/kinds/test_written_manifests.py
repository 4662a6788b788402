"""Manifests as their authors write them, of kinds that no recording has: what is sent to create and to update each.

`tests/data/google_manifests.yaml` was checked against Google's discovery documents: members, enums, parameters, masks.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from setpoint.core.decide import Decision
from setpoint.core.plan import plan_fields
from setpoint.engine.intent import intent_of
from setpoint.engine.kind import Intent, ResolvedReferences
from setpoint.errors import ImmutableFieldChanged
from setpoint.kinds.gcp.generic.kind import GoogleKind
from setpoint.kinds.gcp.generic.part_requests import request_of
from setpoint.kinds.gcp.generic.requests import GoogleRequest
from tests.kinds.effective_states import effective_over
from tests.kinds.test_catalogue_requests import kind_of, resource

_FILE: Final = Path(__file__).parents[1] / "data" / "google_manifests.yaml"
_MANIFESTS: Final[list[dict[str, Any]]] = list(yaml.safe_load_all(_FILE.read_text("utf-8")))


def intent(kind: GoogleKind, written: Mapping[str, Any], change: Mapping[str, Any]) -> Intent:
    """What is intended by a manifest, with a change of its spec, once it is checked."""
    found = resource(kind, merged(written["spec"], change), written.get("labels"))
    kind.check(found)
    return intent_of(found, kind, ResolvedReferences())


def merged(tree: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **tree,
        **{
            name: merged(tree[name], one) if isinstance(one, dict) and isinstance(tree.get(name), dict) else one
            for name, one in change.items()
        },
    }


def shown(kind: GoogleKind, request: GoogleRequest) -> dict[str, Any]:
    call = request.call
    path = f"{kind.row.prefix}{'/'.join(call.parts)}{f':{call.method}' if call.method else ''}"
    query = "&".join(f"{name}={one}" for name, one in sorted(call.query.items()))
    return {"by": f"{request.verb} {path}{f'?{query}' if query else ''}", "body": request.body}


def creation(kind: GoogleKind, written: Mapping[str, Any]) -> dict[str, Any]:
    wanted = intent(kind, written, {})
    return shown(kind, kind.creation_request(wanted, effective_over(kind, wanted).tree))


def live_object(kind: GoogleKind, created: Mapping[str, Any]) -> dict[str, Any]:
    """The object that a creation makes, with what can only be set once it is there."""
    wrap = kind.row.methods["create"].wrap
    body: Mapping[str, Any] = created["body"]
    return dict(body[wrap] if wrap else body.get("cluster", body))


@pytest.mark.parametrize("written", _MANIFESTS, ids=lambda one: str(one["kind"]))
def test_what_is_sent_for_a_manifest(written: dict[str, Any]) -> None:
    kind = kind_of(written["kind"])

    assert creation(kind, written) == written["created"]


@pytest.mark.parametrize(
    ("written", "update"),
    [(one, update) for one in _MANIFESTS for update in one.get("updated", ())],
    ids=lambda one: str(one.get("kind") or ",".join(one["with"])),
)
def test_what_is_sent_for_a_change_of_it(written: dict[str, Any], update: dict[str, Any]) -> None:
    kind = kind_of(written["kind"])
    wanted, live = intent(kind, written, update["with"]), live_object(kind, written["created"])
    effective = effective_over(kind, wanted, kind.view(kind.present(live, wanted.location).live))

    try:
        plan = plan_fields(Decision.INTENT_CHANGED, effective.declared, effective.live, kind.sending(wanted))
    except ImmutableFieldChanged:
        assert update["sent"] == []
        return
    # What a creation cannot send follows it, whatever changes later.
    writes = [one for one in plan.writes if not one.name.endswith("SecurityPolicy")]
    sent = [shown(kind, request_of(kind.row, wanted, dict(effective.tree), write, live)) for write in writes]
    assert sent == [one for one in update["sent"] if "SecurityPolicy" not in one["by"]]

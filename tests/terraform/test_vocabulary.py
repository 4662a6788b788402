"""Errors of the engine in the words of a configuration."""

from collections.abc import Callable

import pytest

from setpoint.core.values.json_types import Json
from setpoint.core.values.messages import worded
from setpoint.core.wait.rollout import require_rollout
from setpoint.core.wait.wait_for import parse_wait
from setpoint.engine.claims.object_claims import OWN
from setpoint.engine.resource import Resource
from setpoint.errors import HeldByOthers, RemoteInvalid, SetpointError
from setpoint.kinds.kubernetes_object.apply_result import conflict_error, immutable_error, require_unclaimed
from setpoint.kinds.kubernetes_object.deletion import require_unprotected
from setpoint.kinds.kubernetes_object.location import ObjectLocation
from setpoint.kinds.kubernetes_object.manifest import check_manifest, spec_of
from setpoint.kinds.kubernetes_object.options import (
    DeletionSettings,
    check_wait,
    deletion_settings_of,
    ignored_fields_of,
)
from setpoint.terraform.resources.vocabulary import attribute_words, engine_diagnostic

LOCATION = ObjectLocation(OWN, "v1", "ConfigMap", "shop", "settings")
MANIFEST: dict[str, Json] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}
SECRET: dict[str, Json] = {**MANIFEST, "kind": "Secret"}


def _resource(**spec: Json) -> Resource:
    metadata: Json = {"name": "tf-8f3a1c2b9d04", "namespace": "shop"}
    members: dict[str, Json] = {
        "kind": "KubernetesObject",
        "metadata": metadata,
        "spec": {"manifest": MANIFEST, **spec},
    }
    return Resource({"apiVersion": "setpoint.dev/v1alpha1", **members})


def _check(**spec: Json) -> None:
    resource = _resource(**spec)
    decoded = spec_of(resource)
    check_manifest(resource, decoded)
    ignored_fields_of(resource, decoded)
    deletion_settings_of(resource, decoded)
    check_wait(resource)


def _raise(error: SetpointError) -> None:
    raise error


HELD = HeldByOthers("409", (("data.colour", "helm"),))
TAKEN: Json = {
    "metadata": {"managedFields": [{"manager": "setpoint/shop/other", "operation": "Apply", "fieldsV1": {}}]}
}
FIXED = RemoteInvalid("422", (("data", "field is immutable when `immutable` is set"),))

CASES: dict[str, tuple[Callable[[], object], str]] = {
    "conflict": (
        lambda: _raise(conflict_error(HELD, LOCATION)),
        "ConfigMap shop/settings: data.colour is held by helm. Set force_conflicts = true to take it over, list it in "
        "ignore_fields to leave it to its holder, or leave it out of the manifest",
    ),
    "immutable field": (
        lambda: _raise(immutable_error(FIXED, ["data"], LOCATION)),
        "ConfigMap shop/settings: data: field is immutable when `immutable` is set. Put the old value back",
    ),
    "delete protection": (
        lambda: require_unprotected(DeletionSettings(True, "Background", 1), LOCATION),
        "ConfigMap shop/settings is protected by delete_protection: annotate the resource with "
        'setpoint.dev/delete-protection: "false" and apply it, or let the object stay with deletion-policy: abandon',
    ),
    "ignored field": (
        lambda: _check(ignoreFields=["data", "kind"]),
        "ignore_fields[1] is 'kind': a field that identifies the object cannot be ignored",
    ),
    "delete timeout": (
        lambda: _check(deletion={"timeout": "soon"}),
        "delete_timeout: 'soon' is no duration above 0: write 1h30m, 90s, 500ms or a number of seconds",
    ),
    "manifest": (
        lambda: _check(manifest={"kind": "A"}),
        "the manifest.apiVersion is missing: write one such as v1 or apps/v1",
    ),
    "YAML of a manifest": (
        lambda: _check(manifest="a: *b"),
        "the manifest, line 1: there is no anchor &b before this alias",
    ),
    "reference": (
        lambda: _check(manifest={**MANIFEST, "data": {"a": {"$ref": {"kind": "A"}}}}),
        "the manifest.data.a.$ref.name is missing: write kind, name and path",
    ),
    "two waits": (
        lambda: _check(waitFor={"condition": "A", "fieldValue": {"a": 1}}),
        "wait_for: give exactly one of field, field_value, condition, rollout; it has field_value and condition",
    ),
    "wait of a wait resource": (
        lambda: parse_wait({"field": "status.observedGeneration"}),
        "wait_for.field is status.observedGeneration: observedGeneration changes without a change of state, and cannot "
        "be an output. To wait for what it is to be, write field_value",
    ),
    "value to wait for": (
        lambda: parse_wait({"fieldValue": {"a[[": 1}}),
        "wait_for.field_value: the path 'a[[' breaks off at character 3: an index, a quoted key or key=value belongs "
        "here",
    ),
    "timeout of a wait": (
        lambda: _check(waitFor={"field": "a", "timeout": "0s"}),
        "wait_for.timeout: '0s' is no duration above 0: write 1h30m, 90s, 500ms or a number of seconds",
    ),
    "rollout": (
        lambda: _check(waitFor={"rollout": True}),
        "wait_for.rollout: ConfigMap settings (v1) has no rollout; these have: Deployment (apps), StatefulSet (apps), "
        "DaemonSet (apps), Job (batch). Wait for a condition or a field instead",
    ),
    "rollout of a wait resource": (
        lambda: require_rollout({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}),
        "wait_for.rollout: Pod a (v1) has no rollout; these have: Deployment (apps), StatefulSet (apps), DaemonSet "
        "(apps), Job (batch). Wait for a condition or a field instead",
    ),
    "value of a Secret": (
        lambda: _check(manifest=SECRET, waitFor={"field": "data.a"}),
        "wait_for.field: data.a is, or contains, data: secret values do not become outputs, nor are they compared: "
        "a status is not confidential; wait for something else",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_an_error_names_attributes_and_not_fields_of_a_spec(name: str) -> None:
    fails, text = CASES[name]
    with pytest.raises(SetpointError) as raised:
        fails()

    assert worded(raised.value, attribute_words) == text
    assert engine_diagnostic(raised.value, ("wait_for",)).detail == text


def test_advice_that_needs_a_manifest_is_left_out() -> None:
    with pytest.raises(SetpointError) as raised:
        require_unclaimed(TAKEN, "setpoint/shop/tf-8f3a1c2b9d04", LOCATION)

    assert worded(raised.value, attribute_words).endswith(
        ": delete that one; or take it over with force_conflicts = true"
    )
    assert "deletion-policy: abandon if the object is to stay; or take it over with spec.forceConflicts: true" in str(
        raised.value
    )


def test_a_field_of_the_users_own_object_keeps_its_name() -> None:
    refused = RemoteInvalid("PATCH a: 422: Invalid: spec.waitFor: unknown; spec.manifest.fieldValue: Required value")

    assert worded(refused, attribute_words) == str(refused)

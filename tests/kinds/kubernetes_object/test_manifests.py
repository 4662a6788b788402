"""Invalid manifests: each is refused with its path and what to write instead."""

from typing import Any

import pytest

from setpoint.core.values.paths import Path
from setpoint.core.wait.wait_for import FieldWait, WaitFor
from setpoint.engine.kind import ResolvedReferences
from setpoint.errors import ManifestInvalid, SetpointError, UnknownField
from setpoint.kinds.kubernetes_object.manifest import desired_object
from tests.kinds.kubernetes_object.declared_objects import MAP, Tree, check, kind, resource

SECRET: Tree = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}}
WHERE = "KubernetesObject shop/web: spec.manifest"


def refused(manifest: Any, annotations: dict[str, str] | None = None, **spec: Any) -> str:
    with pytest.raises(SetpointError) as caught:
        check(manifest, annotations, **spec)
    assert isinstance(caught.value, ManifestInvalid | UnknownField)
    return str(caught.value)


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ([], "KubernetesObject shop/web: spec.manifest is a list: write text, in quotes or a map of fields"),
        ("- a", f"{WHERE} is no object: write apiVersion, kind, metadata and what belongs to it"),
        ("a: [", f"{WHERE}, line 2: this is not YAML: did not find expected node content"),
        ("a: 1\n---\nb: 2", f"{WHERE} has 2 documents: write one, and a KubernetesObject for each"),
        ("", f"{WHERE} has 0 documents: write one, and a KubernetesObject for each"),
        ({**MAP, "apiVersion": None}, f"{WHERE}.apiVersion is missing: write one such as v1 or apps/v1"),
        ({**MAP, "apiVersion": "a/b/v1"}, f"{WHERE}.apiVersion is 'a/b/v1': write one such as v1 or apps/v1"),
        ({**MAP, "kind": 1}, f"{WHERE}.kind is not text: write one such as Deployment"),
        ({**MAP, "kind": "List"}, f"{WHERE} is a List: write a KubernetesObject for each of its items"),
        ({**MAP, "metadata": None}, f"{WHERE}.metadata is missing: write metadata.name"),
        ({**MAP, "metadata": {}}, f"{WHERE}.metadata.name is missing: write a name"),
        (
            {**MAP, "metadata": {"generateName": "x-"}},
            f"{WHERE}.metadata.generateName: an object without a name cannot be found again; write name",
        ),
        (
            {**MAP, "metadata": {"name": "map", "uid": "1", "managedFields": [{}]}, "status": {"a": 1}},
            f"{WHERE}: only the cluster sets metadata.uid, metadata.managedFields, status: leave it out",
        ),
    ],
)
def test_a_manifest_that_is_no_object_is_refused(manifest: Any, message: str) -> None:
    assert refused(manifest) == message


@pytest.mark.parametrize("text", ["", "spec.", "spec..a", "[", "a[b"])
def test_an_invalid_path_to_ignore_is_refused(text: str) -> None:
    assert "spec.ignoreFields[1]" in refused(MAP, ignoreFields=["data.a", text])


@pytest.mark.parametrize("text", ["metadata", "metadata.name", "kind", "apiVersion"])
def test_a_field_that_identifies_the_object_cannot_be_ignored(text: str) -> None:
    assert "a field that identifies the object cannot be ignored" in refused(MAP, ignoreFields=[text])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"replac": True}, "there is no field spec.replac; did you mean spec.replace?"),
        ({"deletion": {"timeout": "soon"}}, "spec.deletion.timeout: 'soon' is no duration above 0"),
        ({"deletion": {"propagation": "Sideways"}}, "spec.deletion.propagation"),
        ({"waitFor": {}}, "spec.waitFor: give exactly one of"),
        ({"waitFor": {"rollout": True}}, "spec.waitFor.rollout: ConfigMap map (v1) has no rollout"),
        ({"waitFor": {"field": "status", "timeout": "0s"}}, "spec.waitFor.timeout"),
        ({"cluster": {"inCluster": True, "context": "prod"}}, "write inCluster alone"),
        ({"cluster": {"kubeconfig": {"value": "x"}}}, "spec.cluster.kubeconfig"),
    ],
)
def test_an_invalid_option_is_refused(spec: Tree, message: str) -> None:
    assert message in refused(MAP, **spec)


@pytest.mark.parametrize("policy", ["unmanaged", "default-to-gcp-fields", "ignore-unspecified-fields"])
def test_field_policy_annotations_are_refused(policy: str) -> None:
    value = "true" if policy.startswith("ignore") else "spec.manifest"

    assert "spec.ignoreFields" in refused(MAP, {f"cnrm.cloud.google.com/{policy}": value})


def test_empty_fields_that_tools_write_are_ignored() -> None:
    metadata = {"name": "map", "creationTimestamp": None}
    manifest = {**MAP, "metadata": metadata, "status": {}}

    check(manifest)

    assert desired_object(resource(manifest), ResolvedReferences()) == MAP


def test_text_and_map_are_the_same_object() -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\n"

    assert (
        desired_object(resource(text), ResolvedReferences())
        == desired_object(resource(MAP), ResolvedReferences())
        == MAP
    )


def test_the_wait_is_decoded() -> None:
    waiting = resource(MAP, waitFor={"field": "data.a", "timeout": 5})

    assert kind().wait_for(waiting) == WaitFor(FieldWait(Path(("data", "a"))), 5.0)
    assert kind().wait_for(resource(MAP)) is None


# --- Secrets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"stringData": {"a": 12345}}, f"{WHERE}.stringData.a is not text: put it in quotes"),
        ({"data": {"a": ["12345"]}}, f"{WHERE}.data.a is not text: put it in quotes"),
        ({"data": {"a": "12345!"}}, f"{WHERE}.data.a is not base64: encode it, or write it as stringData.a"),
        ({"stringData": "12345"}, f"{WHERE}.stringData is not a map: write a text for each key"),
    ],
)
def test_an_error_about_a_secret_has_none_of_its_values(members: Tree, message: str) -> None:
    with pytest.raises(ManifestInvalid) as caught:
        desired_object(resource({**SECRET, **members}), ResolvedReferences())

    assert str(caught.value) == message
    assert "12345" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_string_data_of_a_secret_is_sent_as_data() -> None:
    made = desired_object(resource({**SECRET, "stringData": {"a": "ü"}, "data": {"b": "YQ=="}}), ResolvedReferences())

    assert made == {**SECRET, "data": {"a": "w7w=", "b": "YQ=="}}


@pytest.mark.parametrize(
    "path", ["data", "data.password", '["data"]["password"]', "stringData", "metadata", "metadata.annotations"]
)
def test_values_of_a_secret_are_not_waited_for(path: str) -> None:
    assert "do not become outputs" in refused(SECRET, waitFor={"field": path})
    assert "nor are they compared" in refused(SECRET, waitFor={"fieldValue": {"type": "Opaque", path: "a"}})


@pytest.mark.parametrize("path", ["metadata.labels", "metadata.annotations.done", "type"])
def test_other_parts_of_a_secret_may_be_waited_for(path: str) -> None:
    check(SECRET, waitFor={"field": path})

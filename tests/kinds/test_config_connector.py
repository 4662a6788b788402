"""Config Connector's rules for reading a manifest."""

from typing import Any

import pytest

from setpoint.engine.kind import Reference, ResolvedReferences
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import DependencyNotReady, ManifestInvalid
from setpoint.kinds.gcp.shared.config_connector import (
    ANY_PROJECT,
    ReferenceTarget,
    SpecReference,
    google_labels,
    reference_at,
    relative_link,
    resource_id,
    self_link,
)

KEY = ReferenceTarget("kms.cnrm.cloud.google.com", "KMSCryptoKey")


def resource(spec: dict[str, Any] | None = None, **metadata: Any) -> Resource:
    return Resource(
        {
            "apiVersion": "g/v1",
            "kind": "K",
            "metadata": {"name": "n", "namespace": "team", **metadata},
            "spec": spec or {},
        }
    )


def test_the_project_is_that_of_the_annotation_or_else_the_namespace() -> None:
    assert ANY_PROJECT.of(resource()) == "team"
    assert ANY_PROJECT.of(resource(annotations={"cnrm.cloud.google.com/project-id": "p"})) == "p"


def test_the_resource_id_is_that_of_the_spec_or_else_the_name() -> None:
    assert resource_id(resource()) == "n"
    assert resource_id(resource({"resourceID": None})) == "n"
    assert resource_id(resource({"resourceID": "other"})) == "other"


@pytest.mark.parametrize("wrong", [7, "", ["x"]])
def test_a_resource_id_that_is_not_text_is_refused(wrong: object) -> None:
    with pytest.raises(ManifestInvalid):
        resource_id(resource({"resourceID": wrong}))


def test_labels_of_kubernetes_tools_are_not_sent() -> None:
    labels = {"app": "x", "app.kubernetes.io/name": "y", "a/b/c": "z"}

    assert google_labels(resource(labels=labels)) == {"app": "x", "a/b/c": "z", "managed-by-cnrm": "true"}


def test_a_reference_without_a_namespace_is_to_the_same_namespace() -> None:
    near = reference_at("spec.k", SpecReference(name="key"), resource(), KEY)
    far = reference_at("spec.k", SpecReference(name="key", namespace="other"), resource(), KEY)

    assert near == Reference("spec.k", ResourceRef(KEY.group, KEY.kind, "team", "key"))
    assert far == Reference("spec.k", ResourceRef(KEY.group, KEY.kind, "other", "key"))
    assert reference_at("spec.k", SpecReference(external="projects/p/x"), resource(), KEY) is None


@pytest.mark.parametrize(
    "ref",
    [
        SpecReference(),
        SpecReference(name="a", external="b"),
        SpecReference(namespace="team"),
        SpecReference(external=""),
    ],
)
def test_a_reference_has_either_a_name_or_an_external_name(ref: SpecReference) -> None:
    with pytest.raises(ManifestInvalid, match=r"spec\.k needs name or external, and not both"):
        reference_at("spec.k", ref, resource(), KEY)


def test_a_reference_resolves_to_the_self_link_in_the_status_of_its_target() -> None:
    key = Resource({**resource().document, "status": {"selfLink": "projects/p/keys/k"}})

    assert self_link("spec.k", SpecReference(name="n"), ResolvedReferences({"spec.k": key})) == "projects/p/keys/k"
    assert self_link("spec.k", SpecReference(external="projects/p/keys/e"), ResolvedReferences()) == "projects/p/keys/e"


def test_a_target_without_a_self_link_is_not_ready() -> None:
    with pytest.raises(DependencyNotReady, match="reference K team/n is not ready"):
        self_link("spec.k", SpecReference(name="n"), ResolvedReferences({"spec.k": resource()}))


@pytest.mark.parametrize(
    ("link", "short"),
    [
        ("https://www.googleapis.com/compute/v1/projects/p/global/networks/n", "projects/p/global/networks/n"),
        ("//compute.googleapis.com/projects/p/global/networks/n", "projects/p/global/networks/n"),
        ("projects/p/global/networks/n", "projects/p/global/networks/n"),
        ("n", "n"),
    ],
)
def test_all_forms_of_a_link_have_one_relative_form(link: str, short: str) -> None:
    assert relative_link(link) == short

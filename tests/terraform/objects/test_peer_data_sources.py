"""The cases that k8sconnect's acceptance tests have for its data sources, as rows: what we give, or why we differ."""

from dataclasses import dataclass
from typing import Any, Final

from tests.terraform.objects.test_data_sources import outputs
from tests.terraform.objects.test_manifest_functions import write_files
from tests.terraform.objects.workspace import Workspace

OBJECT: Final = """
data "setpoint_object" "a" {
  api_version = "v1"
  kind        = "ConfigMap"
  name        = "settings"
  namespace   = "NAMESPACE"
}
"""
FILES: Final = {
    "app/a.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: one}\n---\n"
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: one}\n",
    "app/deep/b.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, namespace: one}\n",
    "crds/c.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: as.b.test}\n"
    "spec: {group: b.test, scope: Cluster, names: {kind: A}}\n"
    "---\napiVersion: b.test/v1\nkind: A\nmetadata: {name: x}\n"
    "---\napiVersion: c.test/v1\nkind: Other\nmetadata: {name: y}\n",
    "kustomize/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
    "resources: [../app/a.yaml]\n",
    "twice/a.yaml": "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: one}\n" * 2,
}
IN: Final = "provider::setpoint::manifests_in"


@dataclass(frozen=True, slots=True)
class PeerCase:
    """A case, the expression that shows it, its value or its error, and for one that differs on purpose the reason."""

    name: str
    expression: str
    expected: Any = None
    error: str = ""
    differs: str = ""


CASES: Final = (
    PeerCase("object: its fields as a value", "data.setpoint_object.a.object.data", {"k": "v"}),
    PeerCase("object: its YAML", "yamldecode(data.setpoint_object.a.yaml_body).metadata.name", "settings"),
    PeerCase(
        "object: its JSON",
        "jsondecode(jsonencode(data.setpoint_object.a.object)).kind",
        "ConfigMap",
        differs="there is no attribute manifest: jsonencode(object) is the same",
    ),
    PeerCase(
        "yaml_split: basic",
        'keys(provider::setpoint::manifests(file("manifests/app/a.yaml")).all)',
        ["ConfigMap/one/c", "Namespace/one"],
        differs="keys are Kind/namespace/name: names may have dots, so kind.namespace.name can be ambiguous",
    ),
    PeerCase(
        "yaml_split: pattern",
        f'keys({IN}("manifests/app/**/*.yaml").all)',
        ["ConfigMap/one/c", "Deployment/one/d", "Namespace/one"],
    ),
    PeerCase(
        "yaml_split: kustomize",
        f'keys({IN}("manifests/kustomize").all)',
        error="kustomization.yaml:1: an object needs apiVersion, kind and metadata.name",
        differs="a kustomization is built by kubectl kustomize, whose version the author chooses; its output is split",
    ),
    PeerCase(
        "yaml_scoped: basic",
        f'[for stage in ["namespaces", "namespaced"] : keys({IN}("manifests/app")[stage])]',
        [["Namespace/one"], ["ConfigMap/one/c", "Deployment/one/d"]],
        differs="Namespaces are a stage of their own, before cluster_scoped: namespaced objects need them",
    ),
    PeerCase(
        "yaml_scoped: custom resources by their definitions, unknown kinds as namespaced",
        f'[for stage in ["crds", "cluster_scoped", "namespaced"] : keys({IN}("manifests/crds")[stage])]',
        [["CustomResourceDefinition/as.b.test"], ["A/x"], ["Other/y"]],
        differs="a custom resource whose definition says that it is cluster-scoped is not taken for a namespaced one",
    ),
    PeerCase(
        "yaml_scoped: empty categories",
        'provider::setpoint::manifests("")',
        {"all": {}, "crds": {}, "namespaces": {}, "cluster_scoped": {}, "namespaced": {}},
    ),
    PeerCase(
        "errors: duplicates",
        f'{IN}("manifests/twice")',
        error="a.yaml:6: Namespace/one is at manifests/twice/a.yaml:2 already: remove one of them",
    ),
    PeerCase("errors: a pattern without files", f'{IN}("none/*.yaml")', error="none/*.yaml: no manifest is there"),
    PeerCase("errors: no YAML", 'provider::setpoint::manifests("a: [")', error="this is not YAML"),
)


def test_the_peer_s_cases_hold_or_differ_on_purpose(workspace: Workspace) -> None:
    write_files(workspace, dict(FILES))
    workspace.make("configmaps", {"metadata": {"name": "settings"}, "data": {"k": "v"}})
    given = [one for one in CASES if not one.error]
    values = "".join(f'output "c{at}" {{ value = {one.expression} }}\n' for at, one in enumerate(given))
    workspace.write(OBJECT + values)
    found = outputs(workspace)

    assert {one.name: found[f"c{at}"] for at, one in enumerate(given)} == {one.name: one.expected for one in given}
    refused = [one for one in CASES if one.error]
    workspace.write("".join(f'output "c{at}" {{ value = {one.expression} }}\n' for at, one in enumerate(refused)))
    shown = [" ".join(one.detail.split()) for one in workspace.plan().diagnostics]
    assert {one.name: any(one.error in text for text in shown) for one in refused} == {
        one.name: True for one in refused
    }

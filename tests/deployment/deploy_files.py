"""The generated files in `deploy/`.

`make manifests` writes the files anew. The rest is written by hand: the overlays of
kustomize, and the templates of Helm.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import yaml

from setpoint.app import definitions, owners
from setpoint.core.unstructured import text_at
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.deployment.installation import Installation
from setpoint.deployment.manifests import controller_manifests, service_monitor, type_manifests
from setpoint.deployment.rbac import (
    access_of_owners,
    cluster_scoped_rules,
    controller_rbac,
    lease_rules,
    namespace_rules,
    owned_object_rules,
    resource_rules,
    resources_of,
    user_rbac,
)

KUSTOMIZE: Final = Path("deploy/kustomize")
CHART: Final = Path("deploy/helm/setpoint")
HEAD: Final = "# Written by `make manifests`: edit src/setpoint/deployment, or the type of the kind, instead.\n"
# Deleting a CRD deletes its resources, and their live objects: `helm uninstall` must not do that.
KEEP: Final = {"helm.sh/resource-policy": "keep"}
# The namespace that the overlay watches until the operator writes another name into it.
WATCHED: Final = "default"
_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


def files(definitions: Sequence[JsonObject]) -> dict[Path, str]:
    """Every generated file with its content."""
    written = {**_for_kustomize(definitions), **_for_helm(definitions)}
    return {path: HEAD + as_yaml(content) for path, content in written.items()}


def _for_kustomize(definitions: Sequence[JsonObject]) -> dict[Path, Json]:
    kinds, objects = resources_of(definitions), access_of_owners(owners(), definitions)
    watching = Installation(watch_namespace=WATCHED)
    rights = controller_rbac(watching, kinds, objects)
    narrow = [one for one in rights if text_at(one, "metadata", "namespace") == WATCHED]
    return {
        **_with_list(KUSTOMIZE / "crds", type_manifests(definitions)),
        **_with_list(KUSTOMIZE / "base", controller_manifests(Installation(), kinds, objects)),
        **_one_by_one(KUSTOMIZE / "components/namespaced", narrow),
        **_one_by_one(KUSTOMIZE / "components/service-monitor", [service_monitor(Installation())]),
    }


def _for_helm(definitions: Sequence[JsonObject]) -> dict[Path, Json]:
    kinds, objects = resources_of(definitions), access_of_owners(owners(), definitions)
    view, edit = user_rbac(kinds)
    rules: Mapping[str, Json] = {
        "resources": resource_rules(kinds),
        "objects": owned_object_rules(objects),
        "cluster": cluster_scoped_rules(objects),
        "namespaces": namespace_rules(),
        "leases": lease_rules(),
        "view": view["rules"],
        "edit": edit["rules"],
    }
    return {
        **_one_by_one(CHART / "files/crds", map(_kept, definitions)),
        **{CHART / f"files/rules/{name}.yaml": content for name, content in rules.items()},
        # In lower case, as `--kinds` takes them in any.
        CHART / "files/owners.yaml": sorted(owner.name.lower() for owner in owners()),
    }


def _kept(definition: JsonObject) -> JsonObject:
    metadata = definition["metadata"]
    assert isinstance(metadata, Mapping)
    annotations = metadata.get("annotations") or {}
    assert isinstance(annotations, Mapping)
    return {**definition, "metadata": {**metadata, "annotations": {**annotations, **KEEP}}}


def _with_list(folder: Path, objects: Sequence[JsonObject]) -> dict[Path, Json]:
    """The files of the objects, and the kustomization that lists them."""
    files = _one_by_one(folder, objects)
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [path.name for path in files],
    }
    return {**files, folder / "kustomization.yaml": kustomization}


def _one_by_one(folder: Path, objects: Iterable[JsonObject]) -> dict[Path, Json]:
    return {folder / f"{_file_name(one)}.yaml": one for one in objects}


def _file_name(tree: JsonObject) -> str:
    """`role-leases` for the Role setpoint-leases."""
    kind, name = text_at(tree, "kind"), text_at(tree, "metadata", "name")
    if kind == "CustomResourceDefinition":
        return name
    more = "" if kind == "Namespace" else name.removeprefix("setpoint")
    return _HUMP.sub("-", kind).lower() + more


class _Dumper(yaml.SafeDumper):
    """Writes no aliases, and indents lists."""

    def ignore_aliases(self, data: object) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: FBT002
        super().increase_indent(flow, False)


def as_yaml(content: Json) -> str:
    """One document."""
    text: str = yaml.dump(
        content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False, width=120
    )
    return text


def write(definitions: Sequence[JsonObject]) -> None:
    """Writes every file, and removes stale ones."""
    written = files(definitions)
    for path in stale(written):
        path.unlink()
    for path, text in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def stale(written: Mapping[Path, str]) -> list[Path]:
    """Generated files that are no longer generated."""
    there = [path for path in Path("deploy").rglob("*.yaml") if path.read_text(encoding="utf-8").startswith(HEAD)]
    return [path for path in there if path not in written]


if __name__ == "__main__":
    write(list(definitions().values()))

"""The generated files in `deploy/`.

`make manifests` writes the files anew. The rest is written by hand: the overlays of
kustomize, and the templates of Helm.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import yaml

from setpoint.app import annotation_policies, definitions, described_types
from setpoint.app.kinds import catalogue_types
from setpoint.core.unstructured import GroupKind, text_at
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.deployment.installation import Installation
from setpoint.deployment.manifests import controller_manifests, dashboard_service, service_monitor
from setpoint.deployment.rbac import (
    POLICY_VALIDATIONS,
    POLICY_VARIABLES,
    GroupResource,
    access_of,
    controller_rbac,
    lease_rules,
    resource_of,
    review_rules,
    tenant_rules,
    writing_role,
)
from setpoint.engine.kind import ResourceType
from setpoint.engine.owner import Owner, is_handled_by_default, refers_to_secrets
from setpoint.stores.kubernetes.crds import plural_of
from tests.deployment.installed_objects import DEFAULT, DEFAULT_KINDS, access, types

KUSTOMIZE: Final = Path("deploy/kustomize")
CHART: Final = Path("deploy/helm/setpoint")
HEAD: Final = "# Written by `make manifests`: edit src/setpoint/deployment, or the type of the kind, instead.\n"
# Deleting a CRD deletes its resources, and their live objects: `helm uninstall` must not do that.
KEEP: Final = {"helm.sh/resource-policy": "keep"}
# The namespace that the overlay watches until the operator writes another name into it.
WATCHED: Final = "default"
_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


def files() -> dict[Path, str]:
    """Every generated file with its content."""
    written = {**_for_kustomize(), **_for_helm()}
    return {path: HEAD + as_yaml(content) for path, content in written.items()}


def alerts() -> Json:
    """The alert rules, as they are written by hand for Prometheus."""
    found: Json = yaml.safe_load(Path("deploy/prometheus/rules.yaml").read_text(encoding="utf-8"))
    return found


def prometheus_rule(installation: Installation) -> JsonObject:
    """The same for the Prometheus operator."""
    monitor = service_monitor(installation)
    return {**monitor, "kind": "PrometheusRule", "spec": alerts()}


def _for_kustomize() -> dict[Path, Json]:
    """The default kinds: `setpoint install --dry-run --kinds` prints a base for others."""
    rights = controller_rbac(replace(DEFAULT, watch_namespace=WATCHED), access(DEFAULT_KINDS))
    narrow = [one for one in rights if text_at(one, "metadata", "namespace") == WATCHED]
    return {
        **_with_list(KUSTOMIZE / "crds", list(types().values())),
        **_with_list(KUSTOMIZE / "base", controller_manifests(DEFAULT, access(DEFAULT_KINDS))),
        **_one_by_one(KUSTOMIZE / "components/namespaced", narrow),
        **_one_by_one(KUSTOMIZE / "components/dashboard", [dashboard_service(Installation())]),
        **_one_by_one(KUSTOMIZE / "components/service-monitor", [service_monitor(Installation())]),
        **_one_by_one(KUSTOMIZE / "components/prometheus-rule", [prometheus_rule(Installation())]),
    }


def _for_helm() -> dict[Path, Json]:
    known = definitions()
    return {
        **_one_by_one(CHART / "files/crds", map(_kept, known.values())),
        **_one_by_one(CHART / "files/policies", map(_kept, annotation_policies())),
        CHART / "files/rules/tenants.yaml": tenant_rules(),
        CHART / "files/rules/leases.yaml": lease_rules(),
        CHART / "files/rules/reviews.yaml": review_rules(),
        CHART / "files/alerts.yaml": alerts(),
        CHART / "files/write-policy.yaml": {
            "variables": list(POLICY_VARIABLES),
            "validations": list(POLICY_VALIDATIONS),
        },
        # By name in lower case, as `--kinds` takes them in any.
        CHART / "files/kinds.yaml": {name[1].lower(): _kind(name, known[name]) for name in described_types()},
        CHART / "files/catalogue.yaml": dict(map(_catalogued, sorted(catalogue_types().items()))),
    }


def _catalogued(named: tuple[GroupKind, ResourceType]) -> tuple[str, Json]:
    """What the templates have to know of a kind of the catalogue, in one line: its names, and what it watches."""
    (group, name), handled = named
    watched = ["/secrets"] if refers_to_secrets(handled) else []
    return name.lower(), OneLine([name, group, plural_of(handled), *watched])


def _kind(name: GroupKind, definition: JsonObject) -> JsonObject:
    """What the templates have to know of a kind: its names, who may write it, and what handling it takes."""
    handled, (group, plural) = described_types()[name], resource_of(definition)
    needed = access_of([handled], [definition])
    owned = handled.makes if isinstance(handled, Owner) else ()
    return {
        "kind": name[1],
        "group": group,
        "plural": plural,
        "default": is_handled_by_default(handled),
        "writtenBy": writing_role(GroupResource(group, plural)),
        "makes": [one.kind for one in owned if (one.group, one.kind) in described_types()],
        "watches": [f"{one.group}/{one.plural}" for one in needed.watched],
        "reads": [f"{one.group}/{one.plural}" for one in needed.cluster_scoped],
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


class OneLine(list[str]):
    """A list that is written on one line."""


class _Dumper(yaml.SafeDumper):
    """Writes no aliases, and indents lists."""

    def ignore_aliases(self, data: object) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: FBT002
        super().increase_indent(flow, False)


_Dumper.add_representer(
    OneLine, lambda dumper, items: dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=True)
)


def as_yaml(content: Json) -> str:
    """One document."""
    text: str = yaml.dump(
        content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False, width=120
    )
    return text


def write() -> None:
    """Writes every file, and removes stale ones."""
    written = files()
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
    write()

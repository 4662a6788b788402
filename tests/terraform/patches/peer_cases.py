"""The cases that a peer's acceptance tests have for its patches: each passes here, or differs on purpose."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.terraform.patches.configurations import encoded

BIG: Final = "0123456789" * 1024
# A key with a slash, as labels have.
_LABEL: Final = 'metadata.labels["example.com/tier"]'


@dataclass(frozen=True, slots=True)
class Case:
    """An object that another tool made, a patch of it, and what the fields are then; a second patch; another's edit."""

    version: str
    kind: str
    plural: str
    tree: Mapping[str, Any]
    patch: str
    expected: Mapping[str, Any]
    second: str = ""
    second_expected: Mapping[str, Any] = field(default_factory=dict)
    # A merge patch by another writer, of fields that are patched and of one that is not.
    edit: Mapping[str, Any] | None = None
    is_cluster_scoped: bool = False

    def path(self, namespace: str, name: str) -> str:
        """The API path of the object, or of all of its kind."""
        root = f"/apis/{self.version}" if "/" in self.version else f"/api/{self.version}"
        inside = "" if self.is_cluster_scoped else f"/namespaces/{namespace}"
        return f"{root}{inside}/{self.plural}" + (f"/{name}" if name else "")


def _config_map(patch: str, expected: Mapping[str, Any], **more: Any) -> Case:
    tree = {"data": {"colour": "red", "size": "1", "kept": "yes"}}
    return Case("v1", "ConfigMap", "configmaps", tree, patch, expected, **more)


_POD: Final[Mapping[str, Any]] = {
    "containers": [
        {
            "name": "web",
            "image": "web:1",
            "args": ["a", "b"],
            "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
            "ports": [{"containerPort": 80}, {"containerPort": 81}],
        },
        {"name": "log", "image": "log:1"},
    ]
}


def _deployment(patch: str, expected: Mapping[str, Any], **more: Any) -> Case:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": _POD}
    tree = {"spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}}
    return Case("apps/v1", "Deployment", "deployments", tree, patch, expected, **more)


_WEB: Final = "spec.template.spec.containers[name=web]"


def _in_pod(**spec: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": spec}}}


def _value(form: str, value: Any) -> str:
    return f"{form} = {encoded(value)}"


def _text(form: str, value: Any) -> str:
    return f"{form} = jsonencode({encoded(value)})"


def _operations(*operations: tuple[str, str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "op": op,
            "path": path,
            **({"from": more} if op in ("move", "copy") else {} if op == "remove" else {"value": more}),
        }
        for op, path, more in operations
    ]


PATCHED: Final[Mapping[str, Case]] = {
    # --- Strategic merge, by server-side apply ---
    "basic": _config_map(
        _value("patch", {"data": {"colour": "blue"}}),
        {"data.colour": "blue", "data.kept": "yes"},
        second=_value("patch", {"data": {"colour": "green", "size": "2"}}),
        second_expected={"data.colour": "green", "data.size": "2", "data.kept": "yes"},
        edit={"data": {"colour": "pink"}},
    ),
    "yaml": _config_map(
        "patch = <<-EOT\n    # The colour.\n    data:\n      colour: blue\n  EOT",
        {"data.colour": "blue"},
        # The same in another form is no change; see the plan after it.
        second="patch = <<-EOT\n    data: {\"colour\": 'blue'}\n  EOT",
        second_expected={"data.colour": "blue"},
    ),
    "empty-string": _config_map(_value("patch", {"data": {"colour": ""}}), {"data.colour": ""}),
    "null-is-not-set": _config_map('patch = { data = { colour = "blue", size = null } }', {"data.size": "1"}),
    "ten-kilobytes": _config_map(_value("patch", {"data": {"big": BIG}}), {"data.big": BIG}),
    "labels-and-annotations": _config_map(
        _value("patch", {"metadata": {"labels": {"example.com/tier": "front"}, "annotations": {"note": "x y"}}}),
        {_LABEL: "front", "metadata.annotations.note": "x y"},
        edit={"metadata": {"labels": {"example.com/tier": None}}},
    ),
    "number": _deployment(
        _value("patch", {"spec": {"replicas": 3, "minReadySeconds": 5}}),
        {"spec.replicas": 3, "spec.minReadySeconds": 5},
        edit={"spec": {"replicas": 7}},
    ),
    "bool": _deployment(_value("patch", {"spec": {"paused": True}}), {"spec.paused": True}),
    "arrays-by-name": _deployment(
        _value("patch", _in_pod(containers=[{"name": "web", "image": "web:2", "env": [{"name": "B", "value": "3"}]}])),
        {f"{_WEB}.image": "web:2", f"{_WEB}.env[name=A].value": "1", f"{_WEB}.env[name=B].value": "3"},
        # The image leaves the patch: by itself, an apply would delete it, and be refused.
        second=_value("patch", _in_pod(containers=[{"name": "web", "env": [{"name": "B", "value": "4"}]}])),
        second_expected={f"{_WEB}.image": "web:1", f"{_WEB}.env[name=B].value": "4"},
    ),
    "arrays-by-two-keys": _deployment(
        _value("patch", _in_pod(containers=[{"name": "web", "ports": [{"containerPort": 81, "name": "admin"}]}])),
        {f"{_WEB}.ports[0].containerPort": 80, f"{_WEB}.ports[containerPort=81].name": "admin"},
    ),
    "arrays-simple": _deployment(
        _value("patch", _in_pod(containers=[{"name": "web", "args": ["c"]}])), {f"{_WEB}.args": ["c"]}
    ),
    "new-element-and-probe": _deployment(
        _value(
            "patch",
            _in_pod(
                containers=[
                    {"name": "side", "image": "side:1"},
                    {"name": "web", "livenessProbe": {"httpGet": {"path": "/", "port": 80}}},
                ]
            ),
        ),
        {f"{_WEB}.livenessProbe.httpGet.path": "/", "spec.template.spec.containers[name=side].image": "side:1"},
    ),
    "deep-nesting": _deployment(
        _value(
            "patch",
            _in_pod(
                affinity={
                    "nodeAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "weight": 1,
                                "preference": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]},
                            }
                        ]
                    }
                }
            ),
        ),
        {"spec.template.spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight": 1},
    ),
    "quantities": _deployment(
        _value("patch", _in_pod(containers=[{"name": "web", "resources": {"requests": {"cpu": "1000m"}}}])),
        {f"{_WEB}.resources.requests.cpu": "1"},
    ),
    "a-set": _config_map(
        _value("patch", {"metadata": {"finalizers": ["example.com/mine"]}}),
        {"metadata.finalizers": ["example.com/mine"]},
    ),
    "bounds-of-an-autoscaler": Case(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        {"spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}}},
        _value("patch", {"spec": {"minReplicas": 2, "maxReplicas": 9}}),
        {"spec.minReplicas": 2, "spec.maxReplicas": 9},
        edit={"spec": {"maxReplicas": 4}},
    ),
    "labels-of-a-node": Case(
        "v1",
        "Node",
        "nodes",
        {},
        _value("patch", {"metadata": {"labels": {"example.com/tier": "front"}}}),
        {_LABEL: "front"},
        is_cluster_scoped=True,
    ),
    "custom-resource": Case(
        "example.com/v1",
        "Gadget",
        "gadgets",
        {"spec": {"a": 1, "other": {"x": "y"}}},
        _value("patch", {"spec": {"a": 2, "inner": {"deep": {"b": False}}}}),
        {"spec.a": 2, "spec.inner.deep.b": False, "spec.other.x": "y"},
        edit={"spec": {"a": 5}},
    ),
    "secret": Case(
        "v1",
        "Secret",
        "secrets",
        {"data": {"password": "b2xk"}},
        _value("patch", {"stringData": {"password": "new"}}),
        {"data.password": "bmV3"},
    ),
    # --- Merge patch ---
    "merge": _config_map(
        _value("merge_patch", {"data": {"colour": "blue", "size": None}, "metadata": {"labels": {"a": "b"}}}),
        {"data.colour": "blue", "data.size": None, "metadata.labels.a": "b"},
        second=_text("merge_patch", {"data": {"colour": "green"}}),
        second_expected={"data.colour": "green", "data.size": "1", "metadata.labels": None},
        edit={"data": {"colour": "pink"}},
    ),
    "merge-a-list": _deployment(
        _value("merge_patch", _in_pod(containers=[{"name": "web", "image": "web:9"}])),
        {"spec.template.spec.containers[1]": None, f"{_WEB}.image": "web:9"},
    ),
    "merge-text-and-quantities": _deployment(
        _text("merge_patch", _in_pod(terminationGracePeriodSeconds=5, nodeSelector={"disk": "ssd"})),
        {"spec.template.spec.terminationGracePeriodSeconds": 5, "spec.template.spec.nodeSelector": {"disk": "ssd"}},
    ),
    "merge-custom-resource": Case(
        "example.com/v1",
        "Gadget",
        "gadgets",
        {"spec": {"a": 1, "list": [1, 2]}},
        _value("merge_patch", {"spec": {"a": None, "list": [3], "inner": {"b": ""}}}),
        {"spec.a": None, "spec.list": [3], "spec.inner.b": ""},
        edit={"spec": {"a": 1, "list": [4]}},
    ),
    # --- JSON patch ---
    "json-add": _config_map(
        _value(
            "json_patch",
            _operations(
                ("add", "/data/extra", "x"),
                ("add", "/metadata/labels", {"a": "b"}),
                ("add", "/metadata/labels/example.com~1tier", "front"),
            ),
        ),
        {"data.extra": "x", "metadata.labels.a": "b", _LABEL: "front"},
    ),
    "json-replace": _config_map(
        _text("json_patch", _operations(("test", "/data/colour", "red"), ("replace", "/data/colour", "blue"))),
        {"data.colour": "blue"},
        second=_value("json_patch", _operations(("replace", "/data/colour", "green"))),
        second_expected={"data.colour": "green"},
        edit={"data": {"colour": "pink"}},
    ),
    "json-remove": _config_map(
        _value("json_patch", _operations(("remove", "/data/size", None))),
        {"data.size": None},
        edit={"data": {"size": "7"}},
    ),
    "json-move": _config_map(
        _value("json_patch", _operations(("move", "/data/hue", "/data/colour"))),
        {"data.hue": "red", "data.colour": None},
        edit={"data": {"hue": None}},
    ),
    "json-copy": _config_map(
        _value("json_patch", _operations(("copy", "/data/hue", "/data/colour"))),
        {"data.hue": "red", "data.colour": "red"},
    ),
    "json-list": _deployment(
        _value(
            "json_patch",
            _operations(
                ("add", "/spec/template/spec/containers/0/args/-", "c"),
                ("add", "/spec/template/spec/containers/0/args/0", "z"),
                ("replace", "/spec/template/spec/containers/1/image", "log:2"),
                ("remove", "/spec/template/spec/containers/0/env/0", None),
            ),
        ),
        {
            f"{_WEB}.args": ["z", "a", "b", "c"],
            f"{_WEB}.env": [{"name": "B", "value": "2"}],
            "spec.template.spec.containers[name=log].image": "log:2",
        },
    ),
}

# Refused before a cluster is asked, and the words that say why.
INVALID: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "no_form": ("", ("patch", "merge_patch", "json_patch", "none")),
    "two_forms": ('patch = { data = { a = "b" } }\n  merge_patch = { data = { a = "b" } }', ("one of them", "2")),
    "empty": ("patch = {}", ("patch", "sets no field")),
    "empty_text": ('patch = ""', ("patch", "sets no field")),
    "empty_merge": ("merge_patch = {}", ("merge_patch", "sets no field")),
    "no_operation": ("json_patch = []", ("json_patch", "sets no field")),
    "identity": ('patch = { kind = "ConfigMap", data = { a = "b" } }', ("kind", "target")),
    "name": ('merge_patch = { metadata = { name = "other" } }', ("metadata.name", "target")),
    "status": ('patch = { status = { phase = "x" } }', ("status", "controllers")),
    "status_pointer": (
        'json_patch = [{ op = "add", path = "/status/phase", value = "x" }]',
        ("operation 1 (add /status/phase)", "controllers"),
    ),
    "server_set": ('patch = { metadata = { uid = "x" } }', ("metadata.uid", "only the cluster")),
    "ours": (
        'patch = { metadata = { annotations = { "setpoint.dev/terraform-id" = "x" } } }',
        ("setpoint.dev/terraform-id", "setpoint_object"),
    ),
    "no_map": ('patch = "just text"', ("no map of fields",)),
    "no_yaml": ('patch = "a: [1"', ("patch",)),
    "two_documents": ('patch = "a: 1\\n---\\nb: 2"', ("2 documents",)),
    "null": ('patch = "data: {a: null}"', ("data.a is null", "merge_patch")),
    "directive": (
        'patch = { spec = { containers = [{ name = "a", "$patch" = "delete" }] } }',
        ("spec.containers[0].$patch", "directive"),
    ),
    "operation": ('json_patch = [{ op = "ad", path = "/data/a", value = "b" }]', ("'ad'", "did you mean add?")),
    "pointer": ('json_patch = [{ op = "remove", path = "data.a" }]', ("'data.a'", "JSON pointer")),
    "no_value": ('json_patch = [{ op = "add", path = "/data/a" }]', ("operation 1 (add)", "no value")),
    "no_source": ('json_patch = [{ op = "move", path = "/data/a" }]', ("no from",)),
    "no_list": ('json_patch = { op = "add" }', ("list of operations",)),
    "on_destroy": ('patch = { data = { a = "b" } }\n  on_destroy = "delete"', ("on_destroy", "restore or leave")),
    "target_timeout": ('patch = { data = { a = "b" } }\n  target_timeout = "soon"', ("target_timeout", "soon")),
    "wait": ('patch = { data = { a = "b" } }\n  wait_for = { field = "a", rollout = true }', ("field", "rollout")),
}

# Refused by a plan: the name of the target, its kind, the patch, and the words that say why.
REFUSED: Final[Mapping[str, tuple[str, str, str, tuple[str, ...]]]] = {
    "missing_target": ("nowhere", "ConfigMap", 'patch = { data = { a = "b" } }', ("nowhere", "target_timeout")),
    "missing_kind": ("settings", "Widget", 'patch = { data = { a = "b" } }', ("Widget", "settings")),
    "typo": ("settings", "ConfigMap", 'patch = { dtaa = { a = "b" } }', ("dtaa",)),
    "typo_in_merge": ("settings", "ConfigMap", 'merge_patch = { dtaa = { a = "b" } }', ("dtaa",)),
    "typo_in_json": (
        "settings",
        "ConfigMap",
        'json_patch = [{ op = "add", path = "/dtaa", value = {} }]',
        ("dtaa",),
    ),
    "wrong_type": ("settings", "ConfigMap", "patch = { data = { a = 1 } }", ("data",)),
    "wrong_type_in_merge": ("settings", "ConfigMap", 'merge_patch = { data = "x" }', ("data",)),
    "invalid": ("web", "Deployment", "patch = { spec = { replicas = -1 } }", ("replicas",)),
    "immutable": (
        "web",
        "Deployment",
        'merge_patch = { spec = { selector = { matchLabels = { app = "other" } } } }',
        ("selector", "immutable"),
    ),
    "test_fails": (
        "settings",
        "ConfigMap",
        _value("json_patch", _operations(("test", "/data/colour", "blue"), ("remove", "/data/colour", None))),
        ("operation 1 (test /data/colour)", "another one"),
    ),
    "nothing_to_remove": (
        "settings",
        "ConfigMap",
        'json_patch = [{ op = "remove", path = "/data/nothing" }]',
        ("operation 1", "nothing at /data/nothing"),
    ),
    "no_position": (
        "web",
        "Deployment",
        'json_patch = [{ op = "replace", path = "/spec/template/spec/containers/7", value = {} }]',
        ("'7'", "list of 2"),
    ),
    "rollout": (
        "settings",
        "ConfigMap",
        'patch = { data = { a = "b" } }\n  wait_for = { rollout = true }',
        ("rollout", "ConfigMap"),
    ),
    "of_an_object": ("ours", "ConfigMap", 'patch = { data = { a = "b" } }', ("setpoint_object", "manifest")),
    "applied_elsewhere": (
        "applied",
        "ConfigMap",
        'patch = { data = { colour = "blue" } }',
        ("data.colour", "argocd", "force_conflicts"),
    ),
    "applied_elsewhere_merge": (
        "applied",
        "ConfigMap",
        'merge_patch = { data = { colour = "blue" } }',
        ("data.colour", "argocd", "force_conflicts"),
    ),
}

# What the peer does otherwise, and why it is not so here.
DIFFERS: Final[Mapping[str, str]] = {
    "projection is null for JSON and merge patches": "It is set for every form, so that drift of each is seen.",
    "a read puts drift back": "A read never writes: the plan shows the drift, and an apply puts it back.",
    "destroy leaves values and field manager": 'Fields go back; on_destroy = "leave" keeps the values alone.',
    "fields of other appliers are always forced": "They are a conflict, unless force_conflicts is set.",
    "an empty patch is accepted": "It is refused: it would own nothing.",
    "status fields are patched": "They are refused: controllers write them, and a patch of them is never at rest.",
    "null in a strategic patch": "In a value it is not set, as everywhere in Terraform; in text it is refused.",
    "a missing target is an error of the apply": "It is one of the plan, unless target_timeout says that it may come.",
}

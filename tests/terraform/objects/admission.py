"""A MutatingAdmissionPolicy: admission that changes the ConfigMaps of one namespace."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from tests.cluster.access import Access
from tests.cluster.polling import until

_PATH: Final = "/apis/admissionregistration.k8s.io/v1"
_CONFIG_MAPS: Final = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE"],
    "resources": ["configmaps"],
}
# Conditions: not in the dry run of a plan; once the object has a label.
NOT_IN_PLANS: Final = "!request.dryRun"
LABEL: Final = "turned"
ONCE_LABELLED: Final = f"has(object.metadata.labels) && '{LABEL}' in object.metadata.labels"


@contextmanager
def mutating(access: Access, namespace: str, prefix: str, condition: str = "true") -> Iterator[None]:
    """Inside, admission sets `data.colour` to green in ConfigMaps whose name begins with `prefix`."""
    name = f"{namespace}-{prefix}"
    binding = {"metadata": {"name": name}, "spec": {"policyName": name}}
    for plural, tree in (
        ("mutatingadmissionpolicies", _policy(name, namespace, prefix, condition)),
        ("mutatingadmissionpolicybindings", binding),
    ):
        answer = access.call("POST", f"{_PATH}/{plural}", tree)
        assert answer.status == 201, answer
    try:
        until(lambda: _is_in_force(access, namespace, prefix))
        yield
    finally:
        for plural in ("mutatingadmissionpolicybindings", "mutatingadmissionpolicies"):
            access.call("DELETE", f"{_PATH}/{plural}/{name}")
        until(lambda: not _is_in_force(access, namespace, prefix))


def _policy(name: str, namespace: str, prefix: str, condition: str) -> dict[str, Any]:
    conditions = {"named": f"object.metadata.name.startsWith('{prefix}')", "when": condition}
    mutation = {"expression": "Object{data: {'colour': 'green'}}"}
    return {
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "resourceRules": [_CONFIG_MAPS],
            },
            "matchConditions": [{"name": one, "expression": text} for one, text in conditions.items()],
            "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": mutation}],
            "reinvocationPolicy": "Never",
            "failurePolicy": "Fail",
        },
    }


def _is_in_force(access: Access, namespace: str, prefix: str) -> bool:
    path, name = f"/api/v1/namespaces/{namespace}/configmaps", f"{prefix}-probe"
    tree = {"metadata": {"name": name, "labels": {LABEL: "yes"}}, "data": {"colour": "blue"}}
    answer = access.call("POST", path, tree)
    assert answer.status == 201, answer
    access.call("DELETE", f"{path}/{name}")
    return bool(answer.body["data"]["colour"] == "green")

"""An object that was stored before its definition became stricter: its status is written, and it can be deleted."""

import secrets
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from setpoint.app import definitions
from setpoint.core.values.paths import Path, set_at
from tests.cluster.access import Access
from tests.cluster.crds.wrong_manifests import RIGHT, WRONG, WrongManifest
from tests.cluster.polling import until

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CONSTRAINTS = {
    *("x-kubernetes-validations", "oneOf", "enum", "pattern", "minimum", "maximum"),
    *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
}
FINALIZER = "test.setpoint.dev/kept"


def _without_constraints(schema: Any) -> Any:
    """A schema as it was before there were any constraints."""
    match schema:
        case dict():
            return {name: _without_constraints(below) for name, below in schema.items() if name not in CONSTRAINTS}
        case list():
            return [_without_constraints(below) for below in schema]
        case _:
            return schema


class UpgradedKind:
    """One of our definitions under a group of its own, first without its constraints."""

    def __init__(self, server: Access, namespace: str, kind: str) -> None:
        found: list[Any] = [tree for (_, name), tree in definitions().items() if name == kind]
        self._definition: dict[str, Any] = deepcopy(found[0])
        self._server, self.group = server, f"{secrets.token_hex(4)}.test.setpoint.dev"
        spec: Any = self._definition["spec"]
        # With names of its own: kubectl, in other tests on the same server, would take it for ours.
        plural = f"former{spec['names']['plural']}"
        spec["names"] |= {"plural": plural, "singular": f"former{kind.lower()}", "shortNames": [], "categories": []}
        spec["group"] = self.group
        self._definition["metadata"] = {"name": f"{plural}.{self.group}"}
        self.api_version = f"{self.group}/{spec['versions'][0]['name']}"
        self.path = f"/apis/{self.api_version}/namespaces/{namespace}/{plural}"

    def install_lenient(self) -> None:
        """Creates the definition without constraints."""
        made = self._server.call("POST", DEFINITIONS, _without_constraints(self._definition))
        assert made.status == 201, made.body

    def upgrade(self) -> None:
        """Replaces the definition by the present one."""
        live = self._server.call("GET", self._own_path).body
        changed = self._server.call("PUT", self._own_path, {**live, "spec": self._definition["spec"]})
        assert changed.status == 200, changed.body

    def remove(self) -> None:
        """Deletes the definition, and with it all objects."""
        self._server.call("DELETE", self._own_path)

    @property
    def _own_path(self) -> str:
        return f"{DEFINITIONS}/{self._definition['metadata']['name']}"


# One of each way in which a definition refuses.
STORED = [
    *(
        next(row for row in WRONG if (row.kind, row.path) == chosen)
        for chosen in (
            ("StorageBucket", "spec.storageClass"),
            ("StorageBucket", "spec.lifecycleRule[0].condition.age"),
            ("StorageBucket", "spec.cors[0].method[0]"),
            ("SQLInstance", "spec.settings.edition"),
            ("SQLInstance", "spec.settings.databaseFlags[0].name"),
            ("SQLUser", "spec.password"),
            ("SQLDatabase", "spec.deletionPolicy"),
            ("KubernetesObject", "spec.waitFor"),
            ("KubernetesObject", "spec.deletion.timeout"),
            ("KbsConfig", "spec.KbsEnvVars"),
        )
    ),
    *(row for row in WRONG if row.field == "metadata.name"),
]


@pytest.fixture
def upgraded(api_server: Access, namespace: str, request: pytest.FixtureRequest) -> Iterator[UpgradedKind]:
    kind = UpgradedKind(api_server, namespace, request.param)
    kind.install_lenient()
    yield kind
    kind.remove()


@pytest.mark.parametrize(
    ("upgraded", "wrong"), [(row.kind, row) for row in STORED], ids=map(str, STORED), indirect=["upgraded"]
)
def test_an_object_that_is_now_refused_can_be_reported_changed_elsewhere_and_deleted(
    api_server: Access, upgraded: UpgradedKind, wrong: WrongManifest
) -> None:
    document = {**wrong.document, "apiVersion": upgraded.api_version}
    document["metadata"] = {"name": wrong.name, "finalizers": [FINALIZER]}
    until(lambda: api_server.call("POST", upgraded.path, document).status in (201, 409))
    own = f"{upgraded.path}/{wrong.name}"
    reported = api_server.call("PATCH", f"{own}/status", {"status": {"observedGeneration": 1, "isReady": False}})
    assert reported.status == 200, reported.body
    upgraded.upgrade()
    other = {**document, "metadata": {"name": "z" + wrong.name[1:]}}
    # The new definition is in force once it refuses the same in a new object.
    until(lambda: api_server.call("POST", f"{upgraded.path}?dryRun=All", other).status == 422)

    condition = {"type": "Ready", "status": "False", "reason": "UpdateFailed"}
    statuses = [
        api_server.call("PATCH", f"{own}/status", {"status": {"conditions": [condition]}}),
        api_server.call("PATCH", own, {"metadata": {"annotations": {"a": "b"}}}),
        api_server.call("DELETE", own),
        api_server.call("PATCH", own, {"metadata": {"finalizers": None}}),
        api_server.call("GET", own),
    ]

    assert [answer.status for answer in statuses] == [200, 200, 200, 200, 404], statuses


@pytest.mark.parametrize("upgraded", ["SQLInstance"], indirect=True)
def test_another_field_may_change_beside_a_value_that_is_now_refused(
    api_server: Access, upgraded: UpgradedKind
) -> None:
    edition = Path.parse("settings.edition")
    spec = set_at(RIGHT["SQLInstance"], edition, "ULTIMATE")
    document = {"apiVersion": upgraded.api_version, "kind": "SQLInstance", "metadata": {"name": "one"}, "spec": spec}
    until(lambda: api_server.call("POST", upgraded.path, document).status in (201, 409))
    upgraded.upgrade()
    other = {**document, "metadata": {"name": "two"}}
    until(lambda: api_server.call("POST", f"{upgraded.path}?dryRun=All", other).status == 422)

    own = f"{upgraded.path}/one"
    bigger = api_server.call("PATCH", own, {"spec": {"settings": {"tier": "db-custom-4-8192"}}})
    wrong = api_server.call("PATCH", own, {"spec": {"settings": {"edition": "SUPREME"}}})
    right = api_server.call("PATCH", own, {"spec": {"settings": {"edition": "ENTERPRISE"}}})

    assert [bigger.status, wrong.status, right.status] == [200, 422, 200]

"""Which paths of an object are, contain or lie below a secret value."""

from typing import Annotated, Any

import pytest
from msgspec import UNSET, Struct, UnsetType

from setpoint.core.schema.shape import Keyed, Mark, field_at, shape_of
from setpoint.core.secret_paths import (
    has_secret_fields,
    holds_secret,
    secret_within,
    without_secrets,
    write_only_within,
)
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path

KUBECTL = "kubectl.kubernetes.io/last-applied-configuration"
APPLIED = f'metadata.annotations["{KUBECTL}"]'
SECRET: dict[str, Any] = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "c2VjcmV0"}}
CONFIG_MAP: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}


def within(object_: Json, path: str) -> str | None:
    found = secret_within(object_, Path.parse(path))
    return None if found is None else str(found)


# --- By schema --------------------------------------------------------------------------------------------------------


class Login(Struct):
    name: str
    password: Annotated[str | UnsetType, Mark.WRITE_ONLY] = UNSET


class Chain(Struct):
    next: "Chain | UnsetType" = UNSET
    name: str = ""


class Spec(Struct):
    size: int
    login: Login | UnsetType = UNSET
    logins: Annotated[list[Login], Keyed("name")] = []
    anyLogins: list[Login] = []
    keys: list[Annotated[str, Mark.WRITE_ONLY]] = []
    grid: list[list[Annotated[str, Mark.WRITE_ONLY]]] = []
    byName: dict[str, Login] = {}
    tokens: dict[str, Annotated[str, Mark.WRITE_ONLY]] = {}
    chain: Chain | UnsetType = UNSET
    labels: dict[str, str] = {}


class Tree(Struct):
    spec: Spec


SHAPE = shape_of(Tree)


@pytest.mark.parametrize(
    ("path", "secret"),
    [
        ("spec", "spec.login.password"),
        ("spec.login", "spec.login.password"),
        ("spec.login.password", "spec.login.password"),
        ("spec.login.password.below", "spec.login.password"),
        ('spec["login"]["password"]', "spec.login.password"),
        ("spec.logins", "spec.logins.password"),
        ("spec.anyLogins", "spec.anyLogins.password"),
        ("spec.logins[0]", "spec.logins[0].password"),
        ("spec.logins[0].password", "spec.logins[0].password"),
        ("spec.logins[name=a].password", "spec.logins[name=a].password"),
        ("spec.logins[?(@.name=='a')].password", "spec.logins[name=a].password"),
        # Whether there is such an element tells the password.
        ("spec.logins[password=guess].name", "spec.logins[password=guess].password"),
        ("spec.logins[name=a,password=guess].name", "spec.logins[name=a,password=guess].password"),
        ("spec.anyLogins[password=guess].name", "spec.anyLogins[password=guess].password"),
        ("spec.anyLogins[3].password", "spec.anyLogins[3].password"),
        ("spec.keys", "spec.keys"),
        ("spec.keys[0]", "spec.keys"),
        ("spec.grid[0]", "spec.grid"),
        ("spec.byName", "spec.byName.password"),
        ("spec.byName.a.password", "spec.byName.a.password"),
        ("spec.tokens", "spec.tokens"),
        ("spec.tokens.a", "spec.tokens.a"),
    ],
)
def test_a_path_that_shows_a_write_only_field_is_found(path: str, secret: str) -> None:
    assert str(write_only_within(SHAPE, Path.parse(path))) == secret
    assert str(secret_within({}, Path.parse(path), SHAPE)) == secret


@pytest.mark.parametrize(
    "path",
    [
        *("spec.size", "spec.size.below", "spec.login.name", "spec.logins[0].name", "spec.logins[name=a].name"),
        *("spec.logins[nothing=a].name", "spec.logins.name", "spec.Login", "spec.anyLogins[0].name", "spec.labels"),
        *("spec.labels.password", "spec.chain", "spec.chain.next.next.name", "status.login.password"),
    ],
)
def test_a_path_beside_write_only_fields_is_open(path: str) -> None:
    assert write_only_within(SHAPE, Path.parse(path)) is None


def test_a_list_of_write_only_values_is_write_only() -> None:
    assert [field_at(SHAPE, Path.parse(path)).write_only for path in ("spec.keys", "spec.grid", "spec.anyLogins")] == [
        True,
        True,
        False,
    ]


# --- Any object -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("object_", [CONFIG_MAP, {}, None, "text", {"kind": "Secret", "apiVersion": "x/v1"}])
@pytest.mark.parametrize(
    ("path", "secret"),
    [
        ("", APPLIED),
        ("metadata", APPLIED),
        ("metadata.annotations", APPLIED),
        (APPLIED, APPLIED),
        (f'["metadata"]["annotations"]["{KUBECTL}"].below', APPLIED),
        ("metadata.managedFields", "metadata.managedFields"),
        ("metadata.managedFields[0].fieldsV1", "metadata.managedFields"),
        ("metadata.annotations.other", None),
        ("metadata.name", None),
        ("data", None),
        ("data.a", None),
    ],
)
def test_copies_of_an_object_in_its_metadata_are_secret(object_: Json, path: str, secret: str | None) -> None:
    assert within(object_, path) == secret


# --- Secrets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "secret",
    [
        SECRET,
        {"kind": "Secret"},
        {"apiVersion": "/v1", "kind": "Secret"},
        {"apiVersion": 1, "kind": "Secret"},
        # The references may yield a Secret.
        {"apiVersion": "v1", "kind": {"$ref": {"kind": "KubernetesObject"}}},
        {"apiVersion": "v1", "kind": "${ref:KubernetesObject/a:data.kind}"},
        {"apiVersion": "${ref:KubernetesObject/a:data.group}/v1", "kind": "Secret"},
        {"apiVersion": {"$ref": {}}, "kind": {"$ref": {}}},
    ],
)
@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("data", "data"),
        ("data.a", "data"),
        ('data["a"]', "data"),
        ("data[0]", "data"),
        ("stringData.a", "stringData"),
        ("type", None),
        ("metadata.name", None),
        ("metadata.labels", None),
        ("immutable", None),
        ("Data", None),
    ],
)
def test_the_values_of_a_secret_are_secret(secret: Json, path: str, field: str | None) -> None:
    assert within(secret, path) == field


def test_a_member_that_secrets_do_not_have_is_secret() -> None:
    assert within({**SECRET, "binaryData": {"a": "b"}}, "binaryData.a") == "binaryData"


@pytest.mark.parametrize(
    ("object_", "path", "secret"),
    [
        ({"items": [CONFIG_MAP, SECRET]}, "items", "items[1].data"),
        ({"items": [CONFIG_MAP, SECRET]}, "items[1]", "items[1].data"),
        ({"items": [CONFIG_MAP, SECRET]}, "items[1].data.a", "items[1].data"),
        ({"items": [CONFIG_MAP, SECRET]}, "items[kind=Secret].data.a", "items[kind=Secret].data"),
        ({"items": [CONFIG_MAP, SECRET]}, "items[1].metadata", None),
        # The items of a list of one kind do not repeat it.
        ({"apiVersion": "v1", "kind": "SecretList", "items": [{"data": {"a": "b"}}]}, "items[0].data", "items"),
        ({"apiVersion": "v1", "kind": "SecretList", "items": []}, "items", "items"),
        ({"kind": "SQLUserList", "apiVersion": "sql.cnrm.cloud.google.com/v1beta1"}, "items[0].spec", "items"),
        ({"apiVersion": "v1", "kind": "ConfigMapList", "items": [{"data": {"a": "b"}}]}, "items[0].data", None),
        ({"apiVersion": "x/v1", "kind": "SecretList", "items": [{"data": {"a": "b"}}]}, "items[0].data", None),
        ({"items": [CONFIG_MAP, SECRET]}, "items[0]", None),
        ({"items": [CONFIG_MAP, SECRET]}, "items[2].data", None),
        ({"spec": {"a": {"b": ({"c": SECRET},)}}}, "spec", "spec.a.b[0].c.data"),
        ({"spec": {"a": {"kind": "Secret", "type": "Opaque"}}}, "spec", None),
        (
            {"spec": {"template": {"metadata": {"annotations": {KUBECTL: "{}"}}}}},
            "spec.template.metadata",
            f"spec.template.{APPLIED}",
        ),
        ({"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}}, "spec.template.metadata", None),
    ],
)
def test_an_object_inside_another_keeps_its_secrets(object_: Json, path: str, secret: str | None) -> None:
    assert within(object_, path) == secret


# --- Our kinds --------------------------------------------------------------------------------------------------------

USER: dict[str, Any] = {
    "apiVersion": "sql.cnrm.cloud.google.com/v1beta1",
    "kind": "SQLUser",
    "spec": {"password": {"value": "hunter2"}, "host": "%"},
}


@pytest.mark.parametrize(
    ("path", "secret"),
    [
        ("spec.password.value", "spec.password"),
        ("spec.password", "spec.password"),
        ("spec", "spec.password"),
        ("spec.host", None),
    ],
)
def test_a_write_only_field_of_our_kinds_is_secret_without_its_type(path: str, secret: str | None) -> None:
    assert within(USER, path) == secret


def _object(manifest: Json) -> dict[str, Any]:
    return {"apiVersion": "setpoint.dev/v1alpha1", "kind": "KubernetesObject", "spec": {"manifest": manifest}}


@pytest.mark.parametrize(
    ("manifest", "path", "secret"),
    [
        (SECRET, "spec.manifest.data.a", "spec.manifest.data"),
        (SECRET, "spec.manifest", "spec.manifest.data"),
        (SECRET, "spec", "spec.manifest.data"),
        (SECRET, "spec.manifest.metadata.name", None),
        (CONFIG_MAP, "spec.manifest", None),
        (USER, "spec.manifest", "spec.manifest.spec.password"),
        ("kind: Secret\napiVersion: v1\nstringData: {a: b}", "spec.manifest", "spec.manifest"),
        ('kind: "\\u0053ecret"\nstringData: {a: b}', "spec.manifest", "spec.manifest"),
        ("kind: List\nitems: [{kind: Secret, stringData: {a: b}}]", "spec", "spec.manifest"),
        ("kind: ConfigMap\n---\n{kind: Secret, data: {a: b}}", "spec", "spec.manifest"),
        ("kind: ${ref:A/b:c}\ndata: {a: b}", "spec", "spec.manifest"),
        ("kind: [", "spec.manifest", "spec.manifest"),
        ("kind: ConfigMap\napiVersion: v1\ndata: {a: b}", "spec.manifest", None),
        ("kind: ConfigMap", "status", None),
    ],
)
def test_the_manifest_of_a_secret_is_as_secret_as_the_secret(manifest: Json, path: str, secret: str | None) -> None:
    assert within(_object(manifest), path) == secret
    inside = None if secret is None else f"items[0].{secret}"
    assert within({"items": [_object(manifest)]}, f"items[0].{path}") == inside


def test_whether_an_object_has_a_secret_value_at_any_depth() -> None:
    with_secrets = (SECRET, {"items": [SECRET]}, _object("kind: Secret\ndata: {a: b}"))
    without = (CONFIG_MAP, {"kind": "Secret", "type": "x"}, None)

    assert [holds_secret(one) for one in (*with_secrets, *without)] == [True, True, True, False, False, False]


def test_the_kinds_with_secret_fields_are_secrets_and_some_of_ours() -> None:
    assert [has_secret_fields(one) for one in (SECRET, USER, CONFIG_MAP, None)] == [True, True, False, False]


ANNOTATED: dict[str, Any] = {"annotations": {KUBECTL: "{}", "a": "b"}}


@pytest.mark.parametrize(
    ("object_", "shown"),
    [
        ({**CONFIG_MAP, "metadata": ANNOTATED}, {**CONFIG_MAP, "metadata": ANNOTATED}),
        (
            {**SECRET, "metadata": ANNOTATED, "stringData": {"a": "b"}, "type": "Opaque"},
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"annotations": {"a": "b"}}, "type": "Opaque"},
        ),
        # The copy may have what the object has not any more.
        (
            {"apiVersion": "v1", "kind": "Secret", "metadata": ANNOTATED},
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"annotations": {"a": "b"}}},
        ),
        ({**USER, "metadata": ANNOTATED}, {**USER, "metadata": {"annotations": {"a": "b"}}, "spec": {"host": "%"}}),
        (
            {"kind": "List", "metadata": ANNOTATED, "items": [SECRET, CONFIG_MAP]},
            {
                "kind": "List",
                "metadata": {"annotations": {"a": "b"}},
                "items": [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}, CONFIG_MAP],
            },
        ),
    ],
)
def test_an_object_is_shown_without_its_secrets(object_: Json, shown: Json) -> None:
    assert without_secrets(object_) == shown


def test_an_object_of_any_depth_is_searched() -> None:
    deep: Json = SECRET
    for _ in range(5_000):
        deep = [deep]

    assert holds_secret(deep)

"""Every place in which a manifest can hold a secret value, for every kind; and the bytes of a store's files."""

import asyncio
import base64
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st

from setpoint.app import AppSettings, StoreAccess, open_engine
from setpoint.core.schema.shape import LEAF, field_at, paths_of, shape_of
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.canonical import canonical
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.paths import Path as FieldPath
from setpoint.core.values.paths import set_at
from setpoint.core.values.yaml_documents import write_document
from setpoint.engine.kind import ResourceType

# A manifest with this secret value in it.
SecretPlace: TypeAlias = Callable[[str], JsonObject]
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
# No page of a file holds one of these by chance.
secret_values = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=4, max_size=20).map(
    lambda text: f"hunter2-{text}"
)


def settings_of(folder: Path) -> AppSettings:
    """A store in a folder, and no service."""
    return AppSettings(f"sqlite:///{folder}/state.db", environment={"SETPOINT_GCP_AUTH": "anonymous"})


def resource_types() -> Mapping[GroupKind, ResourceType]:
    """Every kind and owner of the application."""

    async def found() -> Mapping[GroupKind, ResourceType]:
        async with open_engine(AppSettings("memory:", environment={}), StoreAccess.READ) as engine:
            return engine.resource_types

    return asyncio.run(found())


def _typed_places() -> Iterator[tuple[str, SecretPlace]]:
    for (group, name), type_ in resource_types().items():
        shape = shape_of(type_.tree_type)
        head: JsonObject = {"apiVersion": f"{group}/{type_.version}", "kind": name, "metadata": {"name": "app"}}
        for path in (FieldPath.parse(one) for one in paths_of(shape) if "[" not in one):
            field = field_at(shape, path)
            if not field.write_only:
                continue
            forms = _LEAF_FORMS if field.shape == LEAF else {**_LEAF_FORMS, **_STRUCT_FORMS}
            for form, put in forms.items():
                yield f"{name} {path} {form}", _placed(head, path, put)


def _placed(head: JsonObject, path: FieldPath, put: Callable[[str], Json]) -> SecretPlace:
    def place(text: str) -> JsonObject:
        document = set_at(head, path, put(text))
        assert isinstance(document, Mapping)
        return document

    return place


# The last ones do not fit the type: an author's mistake, which is refused by commands and not by stores.
_LEAF_FORMS: Final[Mapping[str, Callable[[str], Json]]] = {
    "as text": lambda text: text,
    "in a list": lambda text: [text],
}
_STRUCT_FORMS: Final[Mapping[str, Callable[[str], Json]]] = {
    "as a value": lambda text: {"value": text},
    "with a typing error": lambda text: {"valeu": {"a": [text]}},
    "in a wrong reference": lambda text: {"valueFrom": {"secretKeyRef": {"password": text}}},
}


def kubernetes_object(manifest: Json, **spec: Json) -> JsonObject:
    """A KubernetesObject with this manifest."""
    head: dict[str, Json] = {
        "apiVersion": "setpoint.dev/v1alpha1",
        "kind": "KubernetesObject",
        "metadata": {"name": "app"},
    }
    return {**head, "spec": {"manifest": manifest, **spec}}


def secret(text: str) -> dict[str, Any]:
    """A Secret with this value."""
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "stringData": {"password": text}}


def encoded_secret(text: str) -> dict[str, Any]:
    """The same in base64."""
    data = {"password": base64.b64encode(text.encode()).decode()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "data": data}


def user(text: str, **metadata: Json) -> dict[str, Any]:
    """A SQLUser with this password."""
    return {
        "apiVersion": "sql.cnrm.cloud.google.com/v1beta1",
        "kind": "SQLUser",
        "metadata": {"name": "app", **metadata},
        "spec": {"instanceRef": {"external": "main"}, "password": {"value": text}},
    }


def _copy(text: str) -> dict[str, Json]:
    return {"annotations": {LAST_APPLIED: json.dumps(user(text)), "kapp.k14s.io/original": json.dumps(secret(text))}}


_CONFIG_MAP: Final = {"apiVersion": "v1", "kind": "ConfigMap"}
_OTHER_PLACES: Final[Mapping[str, SecretPlace]] = {
    "Secret": secret,
    "Secret in base64": encoded_secret,
    "Secret, copied": lambda text: {**secret(text), "metadata": {"name": "login", **_copy(text)}},
    "SQLUser, copied": lambda text: user(text, **_copy(text)),
    "KubernetesObject, a map": lambda text: kubernetes_object(secret(text)),
    "KubernetesObject, a map in base64": lambda text: kubernetes_object(encoded_secret(text)),
    "KubernetesObject, YAML": lambda text: kubernetes_object(write_document(secret(text))),
    "KubernetesObject, JSON": lambda text: kubernetes_object(json.dumps(secret(text))),
    "KubernetesObject, not YAML": lambda text: kubernetes_object(f"{{{write_document(secret(text))}"),
    "KubernetesObject, a comment": lambda text: kubernetes_object(f"# {text}"),
    "KubernetesObject, a List": lambda text: kubernetes_object({"kind": "List", "items": [secret(text)]}),
    "KubernetesObject, a list": lambda text: kubernetes_object([secret(text)]),
    "KubernetesObject, another kind": lambda text: kubernetes_object(user(text)),
    "KubernetesObject in another": lambda text: kubernetes_object(kubernetes_object(write_document(secret(text)))),
    "KubernetesObject, copied": lambda text: kubernetes_object({**_CONFIG_MAP, "metadata": _copy(text)}),
    "KubernetesObject, waited for": lambda text: kubernetes_object(
        secret("other"), waitFor={"fieldValue": {"data.password": text}}
    ),
}
PLACES: Final[Mapping[str, SecretPlace]] = {**dict(_typed_places()), **_OTHER_PLACES}
places = st.sampled_from(sorted(PLACES))


def traces(text: str, content: bytes) -> list[str]:
    """The forms of `text` that are in `content`."""
    forms = {
        "plain": text.encode(),
        "in JSON": canonical(text)[1:-1],
        "in JSON, twice": canonical(canonical(text).decode())[3:-3],
        "in ASCII": json.dumps(text)[1:-1].encode(),
        # Whatever stands before it, these characters are the same.
        "in base64": base64.b64encode(text.encode())[: len(text.encode()) // 3 * 4 - 4],
    }
    return [form for form, needle in forms.items() if needle in content]


def bytes_of(folder: Path) -> bytes:
    """The content of every file in a folder, one after the other."""
    return b"\n".join(file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file())

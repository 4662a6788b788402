"""The configuration of `setpoint_object`: manifest, wait, ID annotation, and the KubernetesObject made of them."""

import secrets
from collections.abc import Mapping
from typing import Final, NamedTuple

from setpoint.core.unstructured import text_at
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path, set_at
from setpoint.core.values.yaml_documents import read_documents
from setpoint.core.wait.wait_for import parse_wait
from setpoint.errors import ManifestInvalid, SetpointError
from setpoint.terraform.cty.json_trees import to_json_tree
from setpoint.terraform.cty.values import AttributeValues, CtyValue, is_known, nullify_unknown, unknown_paths
from setpoint.terraform.framework.diagnostics import DiagnosticsError, error, in_terraform_terms

_SPEC_NAMES: Final = {"field": "field", "field_value": "fieldValue", "condition": "condition", "rollout": "rollout"}


def wait_spec(wait_for: CtyValue) -> dict[str, Json] | None:
    """A wait in the form of a manifest; None where there is none, or it is not known yet."""
    if not isinstance(wait_for, Mapping) or not is_known(wait_for):
        return None
    said = {name: to_json_tree(one) for name, one in wait_for.items() if one is not None}
    timeout: dict[str, Json] = {"timeout": said["timeout"]} if "timeout" in said else {}
    return {**{_SPEC_NAMES[name]: one for name, one in said.items() if name in _SPEC_NAMES}, **timeout}


def waits_for_value(wait_for: CtyValue) -> bool:
    """Whether it is a value that is waited for; it may be where that is not known yet."""
    if not isinstance(wait_for, Mapping):
        return not is_known(wait_for)
    return wait_for.get("field") is not None


def validate_wait(wait_for: CtyValue) -> None:
    """Refuses a wait that means nothing, as far as it is known yet."""
    wait = wait_spec(wait_for)
    if wait is not None:
        try:
            parse_wait(wait)
        except SetpointError as fault:
            raise DiagnosticsError(error("No such wait", in_terraform_terms(str(fault)), ("wait_for",))) from fault


# Which resource of which state keeps an object. It is another one each time that an object is made, or taken over.
ID_ANNOTATION: Final = "setpoint.dev/terraform-id"
ID_PATH: Final = Path(("metadata", "annotations", ID_ANNOTATION))
YAML, MANIFEST = "yaml_body", "manifest"


class ObjectIdentity(NamedTuple):
    """What makes an object this one: in another version of its API it is the same."""

    group: str
    kind: str
    namespace: str
    name: str


def manifest_attribute(values: AttributeValues) -> str:
    """The attribute that has the manifest."""
    return YAML if values.get(YAML) is not None else MANIFEST


def is_manifest_known(values: AttributeValues) -> bool:
    """Whether all of the manifest is known."""
    return all(is_known(values.get(name)) for name in (YAML, MANIFEST))


def read_manifest(values: AttributeValues) -> dict[str, Json]:
    """The manifest, all of which is known; Refused says what is wrong with it."""
    source = manifest_attribute(values)
    tree = _read_yaml(str(values[YAML])) if source == YAML else _without_nulls(to_json_tree(values.get(MANIFEST)))
    if not isinstance(tree, dict) or not all(text_at(tree, *path) for path in _REQUIRED_FIELDS):
        raise DiagnosticsError(
            error("No object", f"{source} needs apiVersion, kind and metadata.name: write all three.", (source,))
        )
    return tree


_REQUIRED_FIELDS: Final = (("apiVersion",), ("kind",), ("metadata", "name"))


def _read_yaml(text: str) -> Json:
    try:
        documents = read_documents(text, YAML)
    except ManifestInvalid as fault:
        raise DiagnosticsError(error("No YAML", str(fault), (YAML,))) from fault
    if len(documents) != 1:
        why = f"{YAML} has {len(documents)} documents: write one, and a resource for each."
        raise DiagnosticsError(error("Not one object", why, (YAML,)))
    return documents[0].value


def _without_nulls(tree: Json) -> Json:
    """What is null is not said: so Terraform leaves things out."""
    match tree:
        case dict():
            return {name: _without_nulls(one) for name, one in tree.items() if one is not None}
        case list():
            return [_without_nulls(one) for one in tree]
        case _:
            return tree


def object_identity(tree: Json) -> ObjectIdentity:
    """Which object a manifest means."""
    group = text_at(tree, "apiVersion").rpartition("/")[0]
    return ObjectIdentity(
        group, text_at(tree, "kind"), text_at(tree, "metadata", "namespace"), text_at(tree, *_REQUIRED_FIELDS[2])
    )


def may_change_identity(before: AttributeValues, after: AttributeValues) -> bool:
    """Whether `after`, of which not all is known, means another object than `before`: a name to come is another one.

    Of a text, or a value, of which nothing is known yet that cannot be said; mostly it means the same one.
    """
    known = nullify_unknown(after) or {}
    if after.get(YAML) is not None or known.get(MANIFEST) is None:
        return False
    if not _IDENTITY_FIELDS.isdisjoint(unknown_paths(after.get(MANIFEST))):
        return True
    return object_identity(to_json_tree(known.get(MANIFEST))) != object_identity(read_manifest(before))


_IDENTITY_FIELDS: Final = frozenset({*_REQUIRED_FIELDS, ("metadata",), ("metadata", "namespace")})


def ignored_paths(values: AttributeValues) -> tuple[Path, ...]:
    """The paths of `ignore_fields`, and what is ours; one that means nothing is told elsewhere."""
    found = []
    for text in _strings(values.get("ignore_fields")):
        try:
            found.append(Path.parse(text))
        except ManifestInvalid:
            continue
    return (*found, ID_PATH)


def kubernetes_object_spec(values: AttributeValues, tree: dict[str, Json], id_: str) -> dict[str, Json]:
    """The spec of the KubernetesObject that keeps it under `id_`."""
    spec: dict[str, Json] = {"manifest": set_at(tree, ID_PATH, id_)}
    wait_for, ignored = wait_spec(values.get("wait_for")), _strings(values.get("ignore_fields"))
    if wait_for is not None:
        spec["waitFor"] = wait_for
    if ignored:
        spec["ignoreFields"] = list(ignored)
    for name, member in (("delete_protection", "deleteProtection"), ("force_conflicts", "forceConflicts")):
        if values.get(name) is True:
            spec[member] = True
    if isinstance(values.get("delete_timeout"), str):
        spec["deletion"] = {"timeout": str(values["delete_timeout"])}
    return spec


def _strings(value: CtyValue) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, tuple) else ()


# --- Who keeps it ----------------------------------------------------------------------------------------------------


def new_id() -> str:
    """For an object that was never kept before: `8f3a1c2b9d04/1`."""
    return f"{secrets.token_hex(6)}/1"


def next_id(before: str) -> str:
    """For one that is taken over from the same keeper: what still goes by the one before is about the past."""
    stem, _, count = before.partition("/")
    return f"{stem}/{int(count) + 1 if count.isdecimal() else 2}"


def kubernetes_object_name(id_: str) -> str:
    """The name of the KubernetesObject."""
    return f"tf-{id_.partition('/')[0]}"


def annotated_id(live: Json) -> str:
    """Who keeps an object; nobody's is empty."""
    annotations = live.get("metadata", {}) if isinstance(live, Mapping) else {}
    found = annotations.get("annotations") if isinstance(annotations, Mapping) else None
    return str(found.get(ID_ANNOTATION, "")) if isinstance(found, Mapping) else ""

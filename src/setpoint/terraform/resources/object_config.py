"""The configuration of `setpoint_object`: manifest, wait, ID annotation, and the KubernetesObject made of them."""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from setpoint.core.schema import annotations as known_annotations
from setpoint.core.schema.annotations import AnnotationScope
from setpoint.core.unstructured import text_at
from setpoint.core.values.json_types import MISSING, Json
from setpoint.core.values.messages import worded
from setpoint.core.values.paths import Path, get_at, nearest, set_at
from setpoint.core.values.yaml_documents import YamlDocument, read_documents
from setpoint.core.wait.wait_for import WAIT_CRITERIA, parse_wait
from setpoint.errors import ManifestInvalid, SetpointError
from setpoint.terraform.cty.json_trees import to_json_tree, without_nulls
from setpoint.terraform.cty.values import AttributeValues, CtyValue, is_known, nullify_unknown, unknown_paths
from setpoint.terraform.framework.diagnostics import Diagnostic, DiagnosticsError, error
from setpoint.terraform.resources.vocabulary import attribute_name, attribute_words

# The annotation with the ID of the resource that manages an object. The ID changes with each creation and adoption.
ID_ANNOTATION: Final = known_annotations.TERRAFORM_ID
ID_PATH: Final = Path(("metadata", "annotations", ID_ANNOTATION))
YAML, MANIFEST = "yaml_body", "manifest"
_ANNOTATIONS: Final = Path(("metadata", "annotations"))
_GENERATE_NAME: Final = Path(("metadata", "generateName"))
# The groups of the kinds that setpoint reconciles in a cluster, and reads annotations of.
_RECONCILED_GROUPS: Final = ("setpoint.dev", ".cnrm.cloud.google.com", "confidentialcontainers.org")

_REQUIRED_FIELDS: Final = (("apiVersion",), ("kind",), ("metadata", "name"))
_IDENTITY_FIELDS: Final = frozenset({*_REQUIRED_FIELDS, ("metadata",), ("metadata", "namespace")})
# The attributes of `wait_for`, and the members of `spec.waitFor`.
_WAIT_MEMBERS: Final = {**{attribute_name(one.member): one.member for one in WAIT_CRITERIA}, "timeout": "timeout"}


class ObjectIdentity(NamedTuple):
    """The identity of an object: the same in every version of its API."""

    group: str
    kind: str
    namespace: str
    name: str


def manifest_attribute(values: AttributeValues) -> str:
    """The attribute that holds the manifest: `yaml_body` or `manifest`."""
    return YAML if values.get(YAML) is not None else MANIFEST


def is_manifest_known(values: AttributeValues) -> bool:
    """Whether the manifest has no unknown values."""
    return all(is_known(values.get(name)) for name in (YAML, MANIFEST))


def read_manifest(values: AttributeValues) -> dict[str, Json]:
    """The manifest, which must be known; DiagnosticsError when it is invalid."""
    source = manifest_attribute(values)
    tree = _read_yaml(str(values[YAML])) if source == YAML else without_nulls(to_json_tree(values.get(MANIFEST)))
    if not isinstance(tree, dict) or not all(text_at(tree, *path) for path in _REQUIRED_FIELDS):
        if get_at(tree, _GENERATE_NAME) is not MISSING:
            raise DiagnosticsError(_generated_name_error(values))
        raise DiagnosticsError(
            error("No object", f"{source} needs apiVersion, kind and metadata.name: write all three.", (source,))
        )
    return tree


def _generated_name_error(values: AttributeValues) -> Diagnostic:
    source = manifest_attribute(values)
    why = (
        f"{_where(values, _GENERATE_NAME)}: {_GENERATE_NAME}: the cluster makes the name up, so that no plan has it, "
        "and a create that is interrupted cannot be found again. Leave it out and write metadata.name. For a new "
        "object with each change, as of a Job, make the name of what changes: "
        'name = "migrate-${substr(sha256(var.image), 0, 8)}".'
    )
    return error("A name that the cluster makes up", why, (source,))


def _where(values: AttributeValues, path: Path) -> str:
    """Where a field of the manifest is written: `yaml_body:LINE`, or `manifest`."""
    source = manifest_attribute(values)
    return _document(str(values[YAML])).where(path) if source == YAML else source


def validate_manifest(values: AttributeValues) -> dict[str, Json]:
    """The manifest of a configuration; DiagnosticsError when it is invalid, or has annotations of ours.

    A state may have them: an earlier version accepted them. So may it have `generateName`: it may be imported.
    """
    tree, source = read_manifest(values), manifest_attribute(values)
    if get_at(tree, _GENERATE_NAME) is not MISSING:
        raise DiagnosticsError(_generated_name_error(values))
    for key in _own_annotations(tree):
        path = _ANNOTATIONS / key
        why = f"{_where(values, path)}: {path}: {_annotation_advice(key, tree)}."
        raise DiagnosticsError(error("An annotation of setpoint's", why, (source,)))
    return tree


def _own_annotations(tree: Json) -> Iterator[str]:
    """The annotations of ours that have no effect on this object, or that only we write."""
    found = get_at(tree, _ANNOTATIONS)
    for key in found if isinstance(found, Mapping) else ():
        if key.startswith(known_annotations.OURS) and not _is_read(key, tree):
            yield key


def _is_read(key: str, tree: Json) -> bool:
    """Whether setpoint reads the annotation from an object of this kind: it may reconcile it in the cluster."""
    known, group = known_annotations.KNOWN.get(key), text_at(tree, "apiVersion").rpartition("/")[0]
    if known is None or known.scope is AnnotationScope.RECORD:
        return False
    if known.scope is AnnotationScope.NAMESPACE:
        return (group, text_at(tree, "kind")) == ("", "Namespace")
    return group.endswith(_RECONCILED_GROUPS)


def _annotation_advice(key: str, tree: Json) -> str:
    name = key.removeprefix(known_annotations.OURS)
    if key == ID_ANNOTATION:
        return "the provider sets it, to find the object again: leave it out"
    if key == known_annotations.DELETE_PROTECTION:
        return "it has no effect on this object: write delete_protection = true, beside the manifest"
    near = [one for one in known_annotations.KNOWN if one.startswith(known_annotations.OURS) and _is_read(one, tree)]
    meant = nearest(name, [one.removeprefix(known_annotations.OURS) for one in near])
    hint = f"; did you mean {known_annotations.OURS}{meant[0]}?" if meant else ": leave it out"
    return f"it has no effect on this object{hint}"


def _read_yaml(text: str) -> Json:
    return _document(text).value


def _document(text: str) -> YamlDocument:
    try:
        documents = read_documents(text, YAML)
    except ManifestInvalid as fault:
        raise DiagnosticsError(error("No YAML", str(fault), (YAML,))) from fault
    if len(documents) != 1:
        why = f"{YAML} has {len(documents)} documents: write one, and a resource for each."
        raise DiagnosticsError(error("Not one object", why, (YAML,)))
    return documents[0]


def object_identity(tree: Json) -> ObjectIdentity:
    """The identity of the object in a manifest."""
    group = text_at(tree, "apiVersion").rpartition("/")[0]
    return ObjectIdentity(
        group, text_at(tree, "kind"), text_at(tree, "metadata", "namespace"), text_at(tree, *_REQUIRED_FIELDS[2])
    )


def may_change_identity(before: AttributeValues, after: AttributeValues) -> bool:
    """Whether `after`, which has unknown values, may describe another object than `before`.

    An unknown name counts as another one. A manifest that is unknown as a whole counts as the same object.
    """
    known = nullify_unknown(after) or {}
    if after.get(YAML) is not None or known.get(MANIFEST) is None:
        return False
    if not _IDENTITY_FIELDS.isdisjoint(unknown_paths(after.get(MANIFEST))):
        return True
    return object_identity(to_json_tree(known.get(MANIFEST))) != object_identity(read_manifest(before))


# --- The wait --------------------------------------------------------------------------------------------------------


def wait_spec(wait_for: CtyValue) -> dict[str, Json] | None:
    """The `spec.waitFor` of an attribute `wait_for`; None when it is null, or has unknown values."""
    if not isinstance(wait_for, Mapping) or not is_known(wait_for):
        return None
    given = {name: value for name, value in wait_for.items() if value is not None}
    return {member: to_json_tree(given[name]) for name, member in _WAIT_MEMBERS.items() if name in given}


def waits_for_value(wait_for: CtyValue) -> bool:
    """Whether it is a `field` wait, which gives a value; True when that is unknown."""
    if not isinstance(wait_for, Mapping):
        return not is_known(wait_for)
    return wait_for.get("field") is not None


def validate_wait(wait_for: CtyValue) -> None:
    """Raises DiagnosticsError for an invalid wait. Unknown values are not judged."""
    wait = wait_spec(wait_for)
    if wait is not None:
        try:
            parse_wait(wait)
        except SetpointError as fault:
            raise DiagnosticsError(error("No such wait", worded(fault, attribute_words), ("wait_for",))) from fault


# --- The KubernetesObject --------------------------------------------------------------------------------------------


def ignored_paths(values: AttributeValues) -> tuple[Path, ...]:
    """The paths of `ignore_fields`, and the ID annotation. Invalid paths are skipped: the engine reports them."""
    found = []
    for text in _strings(values.get("ignore_fields")):
        try:
            found.append(Path.parse(text))
        except ManifestInvalid:
            continue
    return (*found, ID_PATH)


def kubernetes_object_spec(
    values: AttributeValues, tree: dict[str, Json], id_: str, taken_over: Sequence[str] = ()
) -> dict[str, Json]:
    """The spec of the KubernetesObject that manages the object under `id_`.

    `taken_over` are field managers that it takes over from, besides those of the configuration.
    """
    spec: dict[str, Json] = {"manifest": set_at(tree, ID_PATH, id_)}
    wait_for, ignored = wait_spec(values.get("wait_for")), _strings(values.get("ignore_fields"))
    if wait_for is not None:
        spec["waitFor"] = wait_for
    if ignored:
        spec["ignoreFields"] = list(ignored)
    if managers := dict.fromkeys((*_strings(values.get("take_over_from")), *taken_over)):
        spec["takeOverFrom"] = list(managers)
    for name, member in (("delete_protection", "deleteProtection"), ("force_conflicts", "forceConflicts")):
        if values.get(name) is True:
            spec[member] = True
    if isinstance(values.get("delete_timeout"), str):
        spec["deletion"] = {"timeout": str(values["delete_timeout"])}
    return spec


def _strings(value: CtyValue) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, tuple) else ()


# --- The ID annotation -----------------------------------------------------------------------------------------------


def new_id() -> str:
    """The ID of a new object: `8f3a1c2b9d04/1`."""
    return first_id(secrets.token_hex(6))


def first_id(stem: str) -> str:
    """The first ID of an object with this stem, hexadecimal digits of which twelve are used."""
    return f"{stem[:12]}/1"


def next_id(before: str) -> str:
    """The ID of an object that is adopted: states with the ID before no longer manage it."""
    stem, _, count = before.partition("/")
    return f"{stem}/{int(count) + 1 if count.isdecimal() else 2}"


def kubernetes_object_name(id_: str) -> str:
    """The name of the KubernetesObject that manages the object of an ID."""
    return f"tf-{id_.partition('/')[0]}"


def annotated_id(live: Json) -> str:
    """The ID in the annotation of a live object; empty when it has none."""
    metadata = live.get("metadata", {}) if isinstance(live, Mapping) else {}
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    return str(annotations.get(ID_ANNOTATION, "")) if isinstance(annotations, Mapping) else ""

"""The object that a configuration declares, and who keeps it."""

import secrets
from collections.abc import Mapping
from typing import Final, NamedTuple

from setpoint.core.kubernetes import text_at
from setpoint.core.paths import Path, set_at
from setpoint.core.values import Json
from setpoint.core.yaml_documents import read_documents
from setpoint.errors import ManifestInvalid
from setpoint.terraform.cty_values import Value, Values, is_known, known_part, unknown_paths
from setpoint.terraform.diagnostics import Refused, error
from setpoint.terraform.plain_trees import tree_of
from setpoint.terraform.waits import wait_tree

# Which resource of which state keeps an object. It is another one each time that an object is made, or taken over.
ID: Final = "setpoint.dev/terraform-id"
ID_PATH: Final = Path(("metadata", "annotations", ID))
YAML, MANIFEST = "yaml_body", "manifest"


class Identity(NamedTuple):
    """What makes an object this one: in another version of its API it is the same."""

    group: str
    kind: str
    namespace: str
    name: str


def source_of(values: Values) -> str:
    """The attribute that has the manifest."""
    return YAML if values.get(YAML) is not None else MANIFEST


def is_declared(values: Values) -> bool:
    """Whether all of the manifest is known."""
    return all(is_known(values.get(name)) for name in (YAML, MANIFEST))


def tree_in(values: Values) -> dict[str, Json]:
    """The manifest, all of which is known; Refused says what is wrong with it."""
    source = source_of(values)
    tree = _read(str(values[YAML])) if source == YAML else _without_nulls(tree_of(values.get(MANIFEST)))
    if not isinstance(tree, dict) or not all(text_at(tree, *path) for path in _NEEDED):
        raise Refused(
            error("No object", f"{source} needs apiVersion, kind and metadata.name: write all three.", (source,))
        )
    return tree


_NEEDED: Final = (("apiVersion",), ("kind",), ("metadata", "name"))


def _read(text: str) -> Json:
    try:
        documents = read_documents(text, YAML)
    except ManifestInvalid as fault:
        raise Refused(error("No YAML", str(fault), (YAML,))) from fault
    if len(documents) != 1:
        why = f"{YAML} has {len(documents)} documents: write one, and a resource for each."
        raise Refused(error("Not one object", why, (YAML,)))
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


def identity_of(tree: Json) -> Identity:
    """Which object a manifest means."""
    group = text_at(tree, "apiVersion").rpartition("/")[0]
    return Identity(group, text_at(tree, "kind"), text_at(tree, "metadata", "namespace"), text_at(tree, *_NEEDED[2]))


def may_be_another(before: Values, after: Values) -> bool:
    """Whether `after`, of which not all is known, means another object than `before`: a name to come is another one.

    Of a text, or a value, of which nothing is known yet that cannot be said; mostly it means the same one.
    """
    known = known_part(after) or {}
    if after.get(YAML) is not None or known.get(MANIFEST) is None:
        return False
    if not _NAMING.isdisjoint(unknown_paths(after.get(MANIFEST))):
        return True
    return identity_of(tree_of(known.get(MANIFEST))) != identity_of(tree_in(before))


_NAMING: Final = frozenset({*_NEEDED, ("metadata",), ("metadata", "namespace")})


def ignored_in(values: Values) -> tuple[Path, ...]:
    """The paths of `ignore_fields`, and what is ours; one that means nothing is told elsewhere."""
    found = []
    for text in _texts(values.get("ignore_fields")):
        try:
            found.append(Path.parse(text))
        except ManifestInvalid:
            continue
    return (*found, ID_PATH)


def spec_of(values: Values, tree: dict[str, Json], id_: str) -> dict[str, Json]:
    """The spec of the KubernetesObject that keeps it under `id_`."""
    spec: dict[str, Json] = {"manifest": set_at(tree, ID_PATH, id_)}
    wait_for, ignored = wait_tree(values.get("wait_for")), _texts(values.get("ignore_fields"))
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


def _texts(value: Value) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, tuple) else ()


# --- Who keeps it ----------------------------------------------------------------------------------------------------


def new_id() -> str:
    """For an object that was never kept before: `8f3a1c2b9d04/1`."""
    return f"{secrets.token_hex(6)}/1"


def next_id(before: str) -> str:
    """For one that is taken over from the same keeper: what still goes by the one before is about the past."""
    stem, _, count = before.partition("/")
    return f"{stem}/{int(count) + 1 if count.isdecimal() else 2}"


def keeper_of(id_: str) -> str:
    """The name of the KubernetesObject."""
    return f"tf-{id_.partition('/')[0]}"


def id_on(live: Json) -> str:
    """Who keeps an object; nobody's is empty."""
    annotations = live.get("metadata", {}) if isinstance(live, Mapping) else {}
    found = annotations.get("annotations") if isinstance(annotations, Mapping) else None
    return str(found.get(ID, "")) if isinstance(found, Mapping) else ""

"""Objects of an installation by key, to compare those of install, kustomize and Helm."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import yaml

from setpoint.app import all_types, annotation_policies, definitions, definitions_of
from setpoint.app.kinds import find_kind
from setpoint.core.values.json_types import JsonObject
from setpoint.deployment.installation import Installation
from setpoint.deployment.manifests import controller_manifests, type_manifests
from setpoint.deployment.rbac import KindAccess, access_of

Key: TypeAlias = tuple[str, str, str]
DEFAULT_KINDS: Final = (
    "IAMPartialPolicy",
    "IAMPolicy",
    "IAMPolicyMember",
    "KubernetesObject",
    "SQLDatabase",
    "SQLInstance",
    "SQLUser",
    "StorageBucket",
)
TRUSTEE_KINDS: Final = ("KbsConfig", "TrusteeConfig")
# Those that are handled when they are named: they take more rights.
NAMED_KINDS: Final = ("IAMServiceAccountKey", *TRUSTEE_KINDS)
ALL_KINDS: Final = (*DEFAULT_KINDS, *NAMED_KINDS)
# What is installed unless other kinds are named.
DEFAULT: Final = Installation(kinds=DEFAULT_KINDS)
_DEFINITIONS: Final = {kind: one for (_, kind), one in definitions().items()}


def crds(kinds: Sequence[str] = DEFAULT_KINDS) -> list[JsonObject]:
    """The definitions of these kinds, in order."""
    return [one for kind, one in _DEFINITIONS.items() if kind in kinds]


def access(kinds: Sequence[str]) -> KindAccess:
    """What these kinds take, of ours and of the catalogue."""
    types = all_types()
    names = [find_kind(kind, types) for kind in kinds]
    return access_of([types[name] for name in names], definitions_of(names).values())


def by_key(objects: Sequence[Any]) -> dict[Key, Any]:
    """Each object by its kind, namespace and name."""
    found = {_key(one): one for one in objects}
    assert len(found) == len(objects)
    return found


def types(kinds: Sequence[str] = DEFAULT_KINDS, *, objects_too: bool = False) -> dict[Key, JsonObject]:
    """The CRDs and user roles: once in a cluster. Grants go with every kind."""
    definitions_of_kinds = crds([*kinds, "ReferenceGrant"])
    return by_key(type_manifests(definitions_of_kinds, annotation_policies(), objects_too=objects_too))


def process(installation: Installation) -> dict[Key, JsonObject]:
    """The controller and its permissions."""
    return by_key(controller_manifests(installation, access(installation.kinds)))


def in_stream(text: str) -> dict[Key, Any]:
    """The objects in a stream of YAML."""
    return by_key([one for one in yaml.safe_load_all(text) if one is not None])


def _key(tree: Mapping[str, Any]) -> Key:
    metadata = tree["metadata"]
    return tree["kind"], metadata.get("namespace", ""), metadata["name"]

"""Objects of an installation by key, to compare those of install, kustomize and Helm."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import yaml

from setpoint.app import definitions, owners
from setpoint.core.values.json_types import JsonObject
from setpoint.deployment.installation import Installation
from setpoint.deployment.manifests import controller_manifests, type_manifests
from setpoint.deployment.rbac import access_of_owners, resources_of

Key: TypeAlias = tuple[str, str, str]
TYPES: Final = list(definitions().values())
KINDS: Final = resources_of(TYPES)


def by_key(objects: Sequence[Any]) -> dict[Key, Any]:
    """Each object by its kind, namespace and name."""
    found = {_key(one): one for one in objects}
    assert len(found) == len(objects)
    return found


def types() -> dict[Key, JsonObject]:
    """The CRDs and user roles: once in a cluster."""
    return by_key(type_manifests(TYPES))


def process(installation: Installation) -> dict[Key, JsonObject]:
    """The controller and its permissions."""
    is_any = not installation.kinds or {owner.name for owner in owners()} & set(installation.kinds)
    handled = owners() if is_any else ()
    return by_key(controller_manifests(installation, KINDS, access_of_owners(handled, TYPES)))


def in_stream(text: str) -> dict[Key, Any]:
    """The objects in a stream of YAML."""
    return by_key([one for one in yaml.safe_load_all(text) if one is not None])


def _key(tree: Mapping[str, Any]) -> Key:
    metadata = tree["metadata"]
    return tree["kind"], metadata.get("namespace", ""), metadata["name"]

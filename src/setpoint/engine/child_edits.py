"""Children that people apply by hand: whose they are stays as it is, and their owners have to look."""

from collections.abc import Iterable, Mapping

from setpoint.core.values import Json
from setpoint.engine.ports import Store
from setpoint.engine.resource import Resource, ResourceRef, Tree


async def owners_of(refs: Iterable[ResourceRef], store: Store) -> tuple[ResourceRef, ...]:
    """Those whose children these are: an edit of a child is theirs to judge."""
    found = [await store.get(ref) for ref in refs]
    owners = dict.fromkeys(one.controller for one in found if one is not None)
    return tuple(owner for owner in owners if owner is not None)


def still_owned(manifest: Tree, present: Resource | None) -> Tree:
    """The manifest with the owners of what is there, unless it names any: a cluster keeps them just so."""
    metadata = _tree(manifest.get("metadata"))
    if present is None or present.controller is None or metadata.get("ownerReferences") is not None:
        return manifest
    owners = _tree(present.document["metadata"])["ownerReferences"]
    return {**manifest, "metadata": {**metadata, "ownerReferences": owners}}


def _tree(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}

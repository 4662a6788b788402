"""What is put in the place of an object that was read: the contents are new, and what is not the owner's stays."""

from typing import Any, Final

from setpoint.core.canonical import canonical, same
from setpoint.core.kubernetes import title
from setpoint.engine.resource import Resource, Tree
from setpoint.errors import ManifestInvalid
from setpoint.stores.kubernetes.authors import require_short_numbers
from setpoint.stores.manifests import require_same
from setpoint.stores.records import decode
from setpoint.stores.secret_data import fold_secret, is_secret

_SAID: Final = ("labels", "annotations", "ownerReferences")


def replacement(seen: Resource, document: Tree) -> Tree | None:
    """The object to send, which the cluster takes only over `seen`; None when `document` says nothing new.

    ManifestInvalid for what the cluster would keep as something else. Whose each field is, is left out: it is kept.
    """
    wanted = decode(canonical(document))
    require_same(seen.ref, Resource(wanted).ref)
    require_short_numbers(seen.ref, wanted)
    made = _over(seen, wanted)
    return None if same(made, _over(seen, decode(canonical(seen.document)))) else made


def _over(seen: Resource, wanted: dict[str, Any]) -> Tree:
    body = {name: value for name, value in wanted.items() if name not in ("metadata", "status")}
    if is_secret(seen.ref):
        body = _folded(seen, body)
    found, said = seen.document["metadata"], wanted["metadata"]
    assert isinstance(found, dict)
    metadata = {
        **{name: value for name, value in found.items() if name not in _SAID},
        **{name: said[name] for name in _SAID if said.get(name)},
    }
    # Where a status is no part of its own, it would go with what is replaced.
    return {**body, "metadata": metadata, **({"status": dict(seen.status)} if seen.status else {})}


def _folded(seen: Resource, body: dict[str, Any]) -> dict[str, Any]:
    try:
        data = fold_secret(body)
    except ValueError as error:
        raise ManifestInvalid(f"{title(seen.document)}: {error}") from None
    return {**body, **({"data": data} if data else {})}

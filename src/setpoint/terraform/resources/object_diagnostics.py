"""Diagnostics about objects: not ours, made again, protected, kept, defined in the same plan."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from setpoint.core.unstructured import text_at
from setpoint.core.values.json_types import Json
from setpoint.errors import (
    KindNotServed,
    RemoteInvalid,
    RemoteRefused,
    RemoteUnavailable,
    ResponseTooLarge,
    SetpointError,
)
from setpoint.terraform.connections.clusters import unreachable_error
from setpoint.terraform.cty.values import AttributePath, AttributeValues
from setpoint.terraform.framework.diagnostics import (
    Diagnostic,
    DiagnosticsError,
    Interrupted,
    diagnostics_for,
    error,
    warning,
)
from setpoint.terraform.resources.object_config import annotated_id, manifest_attribute
from setpoint.terraform.resources.object_state import PrivateState, is_managed_under, object_ref
from setpoint.terraform.resources.schemas import FAIL
from setpoint.terraform.resources.vocabulary import engine_diagnostic

if TYPE_CHECKING:
    from setpoint.clients.kubernetes.kubeconfig import ClusterConnection

_MOST_PATHS: Final = 20
_DEFINED_HERE: Final = (
    "\n\nIf its CustomResourceDefinition changes in the same configuration, name that resource in depends_on: then it "
    "is planned and applied first."
)


def write_diagnostic(
    failure: SetpointError | Interrupted,
    connection: "ClusterConnection",
    refused: Callable[[SetpointError], Diagnostic],
) -> Diagnostic:
    """The diagnostic of a write that failed: interrupted, not answered by its cluster, or else as `refused` says."""
    if isinstance(failure, Interrupted):
        return diagnostics_for(failure)[0]
    if isinstance(failure, RemoteUnavailable) and not isinstance(failure, ResponseTooLarge):
        return unreachable_error(connection, failure)
    return refused(failure)


def wait_diagnostic(found: Diagnostic, planned: AttributeValues, kept: str) -> Diagnostic:
    """The diagnostic of a wait that failed; it says `kept` unless the configuration says that the resource fails."""
    if planned.get("on_timeout") == FAIL:
        return found
    return error(found.summary, f"{found.detail}\n\n{kept}: the next apply goes on waiting.", found.path)


def adoption_warning(id_: str) -> Diagnostic:
    """The warning about an object that is kept although Terraform plans a replacement."""
    return warning(
        "The object is kept",
        f"Its last apply failed after it was made (as {id_}). Terraform plans a replacement, but the object is neither "
        'deleted nor made anew: the next apply goes on with it. With on_timeout = "fail" it is replaced.',
    )


def undeclared_warning(paths: Sequence[str], attribute: str) -> Diagnostic:
    """The warning about fields that a takeover removes, and `projection` does not show."""
    shown = ", ".join((*paths[:_MOST_PATHS], *("…" for _ in paths[_MOST_PATHS : _MOST_PATHS + 1])))
    return warning(
        "Fields go that the manifest leaves out",
        f"{shown}: declared until now by kubectl apply, or by a manager in take_over_from. What these declared becomes "
        "part of this resource: write it into the manifest, or list it in ignore_fields, if it is to stay.",
        (attribute,),
    )


def is_of_definition(fault: SetpointError, tree: Json) -> bool:
    """Whether a change of the CustomResourceDefinition of an object might help."""
    group = text_at(tree, "apiVersion").rpartition("/")[0]
    is_custom = "." in group and not group.endswith(".k8s.io")
    return is_custom and (isinstance(fault, KindNotServed | RemoteInvalid) or _names_unknown_fields(fault))


def _names_unknown_fields(fault: SetpointError) -> bool:
    return isinstance(fault, RemoteRefused) and bool(fault.unknown_fields)


def definition_diagnostic(fault: SetpointError, path: AttributePath) -> Diagnostic:
    """The error of a field or version that the definition of a kind does not have yet."""
    found = engine_diagnostic(fault, path)
    return error(found.summary, found.detail + _DEFINED_HERE, found.path)


def require_deletable(prior: AttributeValues) -> None:
    """Raises DiagnosticsError for an object with delete protection."""
    if prior.get("delete_protection") is True:
        why = "delete_protection is set: apply delete_protection = false first, then delete or replace it."
        raise DiagnosticsError(error("The object is protected", why, ("delete_protection",)))


def require_managed(live: Json, id_: str, private: PrivateState, planned: AttributeValues) -> None:
    """Raises DiagnosticsError for an object that another resource manages, or another writer made."""
    if not is_managed_under(live, id_, private):
        raise DiagnosticsError(managed_elsewhere_error(live, planned))


def made_again_warning(live: Json) -> Diagnostic:
    """The diagnostic of an object without an ID annotation that is not the one of the state: it is not touched."""
    ref = object_ref(live)
    why = (
        f"{ref['kind']} {ref['name']} was deleted, and another writer has made one of the same name. That one is left "
        "as it is: a destroy only removes it from the state, and an update is refused. To manage it from here on, "
        f"remove it from the state (terraform state rm ADDRESS), and import it: {_import_hint(ref)}."
    )
    return warning("The object was made again by another writer", why)


def already_exists_error(tree: Json, config: AttributeValues) -> Diagnostic:
    """The diagnostic of an existing object without an ID annotation: it is not adopted."""
    ref = object_ref(tree)
    return error(
        "The object is there already",
        f"{ref['kind']} {ref['name']} was not created by this resource. "
        f"To manage it from here on, import it: {_import_hint(ref)}.",
        (manifest_attribute(config),),
    )


def managed_elsewhere_error(live: Json, planned: AttributeValues) -> Diagnostic:
    """The diagnostic of an existing object that this resource does not manage: it is not adopted."""
    if not annotated_id(live):
        return already_exists_error(live, planned)
    ref = object_ref(live)
    return error(
        "The object is kept by another resource",
        f"{ref['kind']} {ref['name']} is kept as {annotated_id(live)}, by another resource "
        "or another state of Terraform's. "
        "Remove it there first, with `terraform state rm` if the object is to stay; then import it here: "
        f"{_import_hint(ref)}.",
        (manifest_attribute(planned),),
    )


def _import_hint(ref: AttributeValues) -> str:
    """How to import an object. An import block also waits for its value; the command fails where outputs need that."""
    parts = {"apiVersion": ref["api_version"], "kind": ref["kind"], "namespace": ref["namespace"], "name": ref["name"]}
    identifier = ",".join(f"{name}={one}" for name, one in parts.items() if one)
    return f"terraform import ADDRESS '{identifier}', or with the same id in an import block"

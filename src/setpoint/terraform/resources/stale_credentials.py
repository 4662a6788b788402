"""Credentials in a state that the cluster refuses: the configuration may have new ones, which a read does not get.

Terraform reads with the state alone, and plans with the configuration. So such a read leaves the state as it is, and
the plan reads again. A deletion has the state alone, and the provider's block.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from setpoint.errors import RemoteRefused, RemoteUnavailable
from setpoint.terraform.connections.clusters import ClusterConnections, described_fault
from setpoint.terraform.cty.values import AttributeValues
from setpoint.terraform.framework.call import CallContext, InstanceState
from setpoint.terraform.framework.diagnostics import Diagnostic, error, warning
from setpoint.terraform.framework.provider import PlanRequest
from setpoint.terraform.resources.object_config import waits_for_value
from setpoint.terraform.resources.shown_values import shown_fields

if TYPE_CHECKING:
    from setpoint.clients.kubernetes.kubeconfig import ClusterConnection

_REFUSED: Final = "The credentials in the state are refused"
_READ: Final = (
    "The state is left as it is. A plan reads the object again, with the credentials of the configuration; a refresh "
    "alone and a destroy have none but these. To store the new ones, run terraform apply; to store none, name the "
    "cluster in the provider's block, and not in the resource."
)
_DELETE: Final = (
    "A deletion has no other credentials than those in the state. Run terraform apply with new ones in the "
    "configuration of this object, which stores them, and delete it then; or name the same server in the provider's "
    "block, whose credentials are used instead."
)

# Reads the object of a state; None when it does not exist any more.
StateReader: TypeAlias = Callable[[AttributeValues, bytes], Awaitable[InstanceState | None]]


def is_login_refused(fault: RemoteRefused) -> bool:
    """Whether the credentials were refused, or cannot be had, or the server's certificate is not trusted with them."""
    return type(fault) is RemoteRefused and fault.status in (None, 401, 403)


def refused_warning(connection: "ClusterConnection", fault: RemoteRefused) -> Diagnostic:
    """The diagnostic of a read with credentials that the cluster refuses."""
    return warning(_REFUSED, f"{described_fault(connection, fault)}\n\n{_READ}")


def refused_error(connection: "ClusterConnection", fault: RemoteRefused) -> Diagnostic:
    """The diagnostic of a deletion with credentials that the cluster refuses."""
    return error(_REFUSED, f"{described_fault(connection, fault)}\n\n{_DELETE}")


async def read_again(
    clusters: ClusterConnections, request: PlanRequest, call: CallContext, read: StateReader
) -> InstanceState | None:
    """The object, read with the credentials of the configuration, where those of the state are others.

    None when the state is as good: a plan compares everything but a value that is waited for by itself.
    """
    prior, cluster = request.prior, request.config.get("cluster")
    if prior is None or not clusters.is_login_changed(prior.get("cluster"), cluster):
        return None
    is_unread = clusters.is_unread(prior.get("cluster"))
    if not is_unread and not waits_for_value(request.config.get("wait_for")):
        return None
    try:
        found = await read({**prior, "cluster": cluster}, request.private)
    except RemoteUnavailable:
        # The plan says so.
        return None
    if is_unread:
        _tell_changes(prior, found, call)
    return found


def _tell_changes(prior: AttributeValues, found: InstanceState | None, call: CallContext) -> None:
    """A plan shows the state as what was before it: what differs from that is told in a warning."""
    if found is None:
        why = "The state has it, and the cluster does not, or not as this resource's any more: an apply makes it anew."
        call.add_diagnostic(warning("The object is gone", why))
        return
    before, after = prior.get("fields"), shown_fields(found.state, prior)
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        if names:
            why = f"Its state could not be read, so that this plan does not show it: {', '.join(names)}."
            call.add_diagnostic(warning("The object was changed by another writer", why))

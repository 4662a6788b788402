"""Errors in each service's words, and in the form of its front end: with a list of reasons, or with a status alone."""

from typing import Any, Final

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.localcloud.api_errors import CloudApiError
from setpoint.localcloud.google.collections import ApiCollection
from setpoint.localcloud.google.outputs import ObjectAddress

# The older front end: a list of errors, each with a reason.
_REASONS: Final = frozenset({"bigquery", "compute", "dns", "storage", "iam"})
# Compute's errors have no status.
_WITHOUT_STATUS: Final = frozenset({"compute", "storage"})


@dataclass(eq=False)
class StatusApiError(CloudApiError):
    """An error of the newer front end: a message and a status."""

    def body(self) -> dict[str, Any]:
        """The body of the error response."""
        error: dict[str, Any] = {"code": self.status, "message": self.message}
        if self.code_name is not None:
            error["status"] = self.code_name
        return {"error": error}


def in_form_of(api: str, error: CloudApiError) -> CloudApiError:
    """The error as the front end of this API writes it."""
    parts = (error.status, error.reason, error.message)
    if api not in _REASONS:
        return StatusApiError(*parts, error.code_name, error.extra, error.headers)
    name = None if api in _WITHOUT_STATUS else error.code_name
    return CloudApiError(*parts, name, error.extra, error.headers)


def not_found(address: ObjectAddress) -> CloudApiError:
    """For an object that does not exist."""
    return CloudApiError(404, "notFound", _not_found_message(address), "NOT_FOUND")


def _not_found_message(address: ObjectAddress) -> str:
    name, singular = address.name, address.collection.singular
    match address.collection.api:
        case "compute":
            return f"The resource '{name}' was not found"
        case "pubsub":
            return f"Resource not found (resource={address.id})."
        case "bigquery":
            parts = name.split("/")
            return f"Not found: {singular.capitalize()} {parts[1]}:{'.'.join(parts[3::2])}"
        case "dns":
            return f'{singular} "{name}" not found'
        case "secretmanager":
            return f"{_title(singular)} [{name}] not found."
        case "cloudkms":
            return f"{_title(singular)} {name} not found."
        case "iam" if address.collection.plural == "serviceAccounts":
            return "Unknown service account"
        case _:
            return f"Resource '{name}' was not found"


def already_exists(address: ObjectAddress) -> CloudApiError:
    """For a name that is taken."""
    match address.collection.api:
        case "compute":
            message, reason = f"The resource '{address.name}' already exists", "alreadyExists"
        case "bigquery":
            message, reason = f"Already Exists: {_title(address.collection.singular)} {address.id}", "duplicate"
        case "pubsub":
            message, reason = f"Resource already exists in the project (resource={address.id}).", "alreadyExists"
        case _:
            message, reason = f"Resource '{address.name}' already exists", "alreadyExists"
    return CloudApiError(409, reason, message, "ALREADY_EXISTS")


def no_referent(address: ObjectAddress, at: str) -> CloudApiError:
    """For a member that names an object that does not exist."""
    if address.collection.api != "compute":
        return not_found(address)
    message = (
        f"Invalid value for field 'resource.{at}': '{address.link}'. "
        f"The referenced {address.collection.singular} resource cannot be found."
    )
    return CloudApiError(400, "invalid", message)


def in_progress(address: ObjectAddress) -> CloudApiError:
    """For a write while an operation changes the object."""
    if address.collection.api == "compute":
        return CloudApiError(400, "resourceNotReady", f"The resource '{address.name}' is not ready", None)
    message = f"Resource '{address.name}' has an operation in progress: try again when it is done."
    return CloudApiError(409, "aborted", message, "ABORTED")


def stale(collection: ApiCollection, name: str) -> CloudApiError:
    """For a write that is based on an older state: its etag or fingerprint is not the current one."""
    if name == "labelFingerprint":
        message = "Labels fingerprint either invalid or resource labels have changed"
        return CloudApiError(412, "conditionNotMet", message, "FAILED_PRECONDITION")
    if collection.api == "compute":
        message = "Supplied fingerprint does not match current metadata fingerprint."
        return CloudApiError(412, "conditionNotMet", message, "FAILED_PRECONDITION")
    if collection.api in _REASONS - {"iam"}:
        return CloudApiError(412, "conditionNotMet", "Precondition Failed", "FAILED_PRECONDITION")
    message = f"The {name} does not match the current {name} of the resource: read it again, and retry."
    return CloudApiError(409, "aborted", message, "ABORTED")


def in_use(address: ObjectAddress, below: str) -> CloudApiError:
    """For the deletion of what still holds other objects."""
    if address.collection.api == "bigquery":
        message = f"Dataset {address.project}:{address.id} is still in use"
        return CloudApiError(400, "resourceInUse", message, "INVALID_ARGUMENT")
    message = f"Resource '{address.name}' has child resources, such as '{below}': delete them first, or use force."
    return CloudApiError(400, "failedPrecondition", message, "FAILED_PRECONDITION")


def invalid_id(address: ObjectAddress) -> CloudApiError:
    """For an id that is not of the service's form."""
    if address.collection.api == "compute":
        form = "(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)"
        message = f"Invalid value for field 'resource.name': '{address.id}'. Must be a match of regex '{form}'"
    else:
        message = f"Invalid resource id '{address.id}' in '{address.name}'."
    return CloudApiError(400, "invalid", message, "INVALID_ARGUMENT")


def _title(singular: str) -> str:
    return singular[:1].upper() + singular[1:]

"""Error responses: Google's error bodies, one function per reason."""

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)
class CloudApiError(Exception):
    """An error of a service, raised by its handlers and turned into a response."""

    status: int
    reason: str
    message: str
    # Google's newer front end adds the name of the code; Cloud SQL and Cloud Storage themselves do not.
    code_name: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        """The body of the error response."""
        one = {"domain": "global", "message": self.message, "reason": self.reason, **self.extra}
        error: dict[str, Any] = {"code": self.status, "errors": [one], "message": self.message}
        if self.code_name is not None:
            error["status"] = self.code_name
        return {"error": error}


# --- Any service -----------------------------------------------------------------------------------------------------


def no_such_method(method: str, path: str) -> CloudApiError:
    """For what the local cloud does not serve at all."""
    return CloudApiError(404, "notFound", f"The local cloud has no method {method} {path}", "NOT_FOUND")


def bad_json(problem: str) -> CloudApiError:
    """For a body that is not a valid JSON object."""
    return CloudApiError(400, "parseError", f"Invalid JSON payload received. {problem}", "INVALID_ARGUMENT")


def unknown_name(name: str, at: str) -> CloudApiError:
    """For a field that the resource does not have."""
    where = f" at '{at}'" if at else ""
    message = f'Invalid JSON payload received. Unknown name "{name}"{where}: Cannot find field.'
    return CloudApiError(400, "invalid", message, "INVALID_ARGUMENT")


def unknown_parameter(name: str) -> CloudApiError:
    """For a query parameter that the method does not have."""
    message = f'Invalid JSON payload received. Unknown name "{name}": Cannot bind query parameter.'
    return CloudApiError(400, "invalid", message, "INVALID_ARGUMENT")


def wrong_value(at: str, type_: str, value: object) -> CloudApiError:
    """For a value of the wrong type, or an enum value that does not exist."""
    message = f"Invalid value at '{at}' ({type_}), {json.dumps(value)}"
    return CloudApiError(400, "invalid", message, "INVALID_ARGUMENT")


def missing_parameter(name: str) -> CloudApiError:
    """For a query parameter, or a part of the body, that the method cannot do without."""
    return CloudApiError(400, "required", f"Required parameter: {name}")


def too_many_requests(retry_after: int) -> CloudApiError:
    """For more requests than the quota allows."""
    message = "Quota exceeded for requests per second. Try again later."
    return CloudApiError(429, "rateLimitExceeded", message, headers={"Retry-After": str(retry_after)})


# --- Cloud SQL -------------------------------------------------------------------------------------------------------


def invalid(problem: str) -> CloudApiError:
    """For a valid request that Cloud SQL refuses."""
    return CloudApiError(400, "invalid", f"Invalid request: {problem}.")


def no_instance() -> CloudApiError:
    """For an instance that does not exist."""
    return CloudApiError(404, "instanceDoesNotExist", "The Cloud SQL instance does not exist.")


def instance_exists(more: str = "") -> CloudApiError:
    """For a name that is taken."""
    return CloudApiError(409, "instanceAlreadyExists", f"The Cloud SQL instance already exists.{more}")


def operation_in_progress() -> CloudApiError:
    """For a second write while an operation is in progress."""
    message = "Operation failed because another operation was already in progress."
    return CloudApiError(409, "operationInProgress", message)


def wrong_state() -> CloudApiError:
    """For a write to an instance that is neither running nor busy: one that failed."""
    message = "The instance or operation is not in an appropriate state to handle the request."
    return CloudApiError(409, "invalidState", message)


def not_running() -> CloudApiError:
    """For databases and users of an instance that is not running."""
    return invalid("Invalid request since instance is not running")


def stale_settings() -> CloudApiError:
    """For a settingsVersion that is not the current one."""
    message = "Condition does not match."
    return CloudApiError(412, "staleData", message, extra={"location": "If-Match", "locationType": "header"})


def has_replicas() -> CloudApiError:
    """For what cannot be done to an instance while it has replicas."""
    message = "The requested operation is not valid for a replication master instance."
    return CloudApiError(400, "errorReplicationMasterInvalidOperation", message)


def deletion_protected() -> CloudApiError:
    """For the deletion of an instance that is protected against it."""
    message = "The instance is protected. Set deletionProtectionEnabled to false, then delete it."
    return CloudApiError(400, "instanceIsDeletionProtected", message)


def not_found() -> CloudApiError:
    """For a database, user or operation that does not exist."""
    return CloudApiError(404, "notFound", "Not Found", "NOT_FOUND")


def already_exists(what: str) -> CloudApiError:
    """For a database or user that exists already."""
    return CloudApiError(409, "alreadyExists", f"{what} already exists.", "ALREADY_EXISTS")


# --- Cloud Storage ---------------------------------------------------------------------------------------------------


def invalid_bucket(problem: str) -> CloudApiError:
    """For an invalid bucket."""
    return CloudApiError(400, "invalid", problem)


def no_bucket() -> CloudApiError:
    """For a bucket that does not exist."""
    return CloudApiError(404, "notFound", "The specified bucket does not exist.")


def no_object(bucket: str, name: str) -> CloudApiError:
    """For an object, or a version of it, that does not exist."""
    return CloudApiError(404, "notFound", f"No such object: {bucket}/{name}")


def bucket_is_yours() -> CloudApiError:
    """For a bucket that the same project owns already."""
    message = "Your previous request to create the named bucket succeeded and you already own it."
    return CloudApiError(409, "conflict", message)


def bucket_is_taken() -> CloudApiError:
    """For a name that another project owns: all projects share one namespace."""
    message = "The requested bucket name is not available: all users of the system share one namespace."
    return CloudApiError(409, "conflict", message)


def bucket_not_empty() -> CloudApiError:
    """For the deletion of a bucket that holds objects, old versions included."""
    return CloudApiError(409, "conflict", "The bucket you tried to delete is not empty.")


def condition_not_met(parameter: str) -> CloudApiError:
    """For a metageneration precondition that does not hold."""
    message = "At least one of the pre-conditions you specified did not hold."
    return CloudApiError(412, "conditionNotMet", message, extra={"location": parameter, "locationType": "parameter"})


def retention_locked(bucket: str) -> CloudApiError:
    """For an attempt to weaken a retention policy that is locked."""
    message = f"Bucket '{bucket}' has a locked retention policy: it can neither be removed nor shortened."
    return CloudApiError(403, "forbidden", message)


def retained(bucket: str, name: str, until: str) -> CloudApiError:
    """For the deletion or replacement of an object under retention."""
    message = f"Object '{bucket}/{name}' is subject to the bucket's retention policy until {until}."
    return CloudApiError(403, "retentionPolicyNotMet", message)

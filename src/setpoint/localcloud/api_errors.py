"""Error responses: Google's error bodies, one constant or function per reason."""

import json
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final

from setpoint.core.values.deferred_dataclass import dataclass


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


@dataclass(frozen=True, slots=True)
class FixedApiError:
    """An error with a fixed message. Calling it makes the exception to raise, a new one each time."""

    status: int
    reason: str
    message: str
    code_name: str | None = None
    extra: Mapping[str, str] = field(default_factory=dict)

    def __call__(self) -> CloudApiError:
        return CloudApiError(self.status, self.reason, self.message, self.code_name, dict(self.extra))


# --- Any service ------------------------------------------------------------------------------------------------------


def no_such_method(method: str, path: str) -> CloudApiError:
    """For what the local cloud does not serve at all."""
    return CloudApiError(404, "notFound", f"The local cloud has no method {method} {path}", "NOT_FOUND")


def dot_segment(path: str) -> CloudApiError:
    """For a path whose parts, decoded, are `.` or `..`: it is not resolved to another path."""
    return _invalid_argument(f"Invalid path: {path}")


def bad_json(problem: str) -> CloudApiError:
    """For a body that is not a valid JSON object."""
    return _invalid_argument(f"Invalid JSON payload received. {problem}", "parseError")


def unknown_name(name: str, at: str) -> CloudApiError:
    """For a field that the resource does not have."""
    where = f" at '{at}'" if at else ""
    return _invalid_argument(f'Invalid JSON payload received. Unknown name "{name}"{where}: Cannot find field.')


def unknown_parameter(name: str) -> CloudApiError:
    """For a query parameter that the method does not have."""
    return _invalid_argument(f'Invalid JSON payload received. Unknown name "{name}": Cannot bind query parameter.')


def wrong_value(at: str, type_: str, value: object) -> CloudApiError:
    """For a value of the wrong type, or an enum value that does not exist."""
    return _invalid_argument(f"Invalid value at '{at}' ({type_}), {json.dumps(value)}")


def _invalid_argument(message: str, reason: str = "invalid") -> CloudApiError:
    return CloudApiError(400, reason, message, "INVALID_ARGUMENT")


def missing_parameter(name: str) -> CloudApiError:
    """For a query parameter, or a part of the body, that the method cannot do without."""
    return CloudApiError(400, "required", f"Required parameter: {name}")


def too_many_requests(retry_after: int) -> CloudApiError:
    """For more requests than the quota allows."""
    message = "Quota exceeded for requests per second. Try again later."
    return CloudApiError(429, "rateLimitExceeded", message, headers={"Retry-After": str(retry_after)})


# --- Cloud SQL --------------------------------------------------------------------------------------------------------

no_instance: Final = FixedApiError(404, "instanceDoesNotExist", "The Cloud SQL instance does not exist.")
# For a second write while an operation is in progress.
operation_in_progress: Final = FixedApiError(
    409, "operationInProgress", "Operation failed because another operation was already in progress."
)
# For a write to an instance that is neither running nor busy: one that failed.
wrong_state: Final = FixedApiError(
    409, "invalidState", "The instance or operation is not in an appropriate state to handle the request."
)
# For databases and users of an instance that is not running.
not_running: Final = FixedApiError(400, "invalid", "Invalid request: Invalid request since instance is not running.")
# For a settingsVersion that is not the current one.
stale_settings: Final = FixedApiError(
    412, "staleData", "Condition does not match.", extra={"location": "If-Match", "locationType": "header"}
)
# For what cannot be done to an instance while it has replicas.
has_replicas: Final = FixedApiError(
    400,
    "errorReplicationMasterInvalidOperation",
    "The requested operation is not valid for a replication master instance.",
)
deletion_protected: Final = FixedApiError(
    400,
    "instanceIsDeletionProtected",
    "The instance is protected. Set deletionProtectionEnabled to false, then delete it.",
)
# For a database, user or operation that does not exist.
not_found: Final = FixedApiError(404, "notFound", "Not Found", "NOT_FOUND")


def invalid(problem: str) -> CloudApiError:
    """For a valid request that Cloud SQL refuses."""
    return CloudApiError(400, "invalid", f"Invalid request: {problem}.")


def instance_exists(more: str = "") -> CloudApiError:
    """For a name that is taken."""
    return CloudApiError(409, "instanceAlreadyExists", f"The Cloud SQL instance already exists.{more}")


def already_exists(what: str) -> CloudApiError:
    """For a database or user that exists already."""
    return CloudApiError(409, "alreadyExists", f"{what} already exists.", "ALREADY_EXISTS")


# --- Cloud Storage ----------------------------------------------------------------------------------------------------

no_bucket: Final = FixedApiError(404, "notFound", "The specified bucket does not exist.")
# For a bucket that the same project owns already.
bucket_is_yours: Final = FixedApiError(
    409, "conflict", "Your previous request to create the named bucket succeeded and you already own it."
)
# For a name that another project owns: all projects share one namespace.
bucket_is_taken: Final = FixedApiError(
    409, "conflict", "The requested bucket name is not available: all users of the system share one namespace."
)
# For the deletion of a bucket that holds objects, old versions included.
bucket_not_empty: Final = FixedApiError(409, "conflict", "The bucket you tried to delete is not empty.")


def invalid_bucket(problem: str) -> CloudApiError:
    """For an invalid bucket."""
    return CloudApiError(400, "invalid", problem)


def no_object(bucket: str, name: str) -> CloudApiError:
    """For an object, or a version of it, that does not exist."""
    return CloudApiError(404, "notFound", f"No such object: {bucket}/{name}")


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

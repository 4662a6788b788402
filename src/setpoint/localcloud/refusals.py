"""How the service says no: Google's error bodies, one function per reason."""

import json
from dataclasses import dataclass, field

from setpoint.localcloud.trees import Tree


@dataclass(eq=False)
class Refusal(Exception):
    """A request that is answered with an error. Over HTTP it becomes an answer."""

    status: int
    reason: str
    message: str
    # Google's newer front end adds the name of the code; Cloud SQL and Cloud Storage themselves do not.
    code_name: str | None = None
    extra: Tree = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    def body(self) -> Tree:
        """The error as it goes over the wire."""
        one = {"domain": "global", "message": self.message, "reason": self.reason, **self.extra}
        error: Tree = {"code": self.status, "errors": [one], "message": self.message}
        if self.code_name is not None:
            error["status"] = self.code_name
        return {"error": error}


# --- Any service -----------------------------------------------------------------------------------------------------


def no_such_method(method: str, path: str) -> Refusal:
    """For what the local cloud does not serve at all."""
    return Refusal(404, "notFound", f"The local cloud has no method {method} {path}", "NOT_FOUND")


def bad_json(problem: str) -> Refusal:
    """For a body that is not a JSON object."""
    return Refusal(400, "parseError", f"Invalid JSON payload received. {problem}", "INVALID_ARGUMENT")


def unknown_name(name: str, at: str) -> Refusal:
    """For a field that the resource does not have."""
    where = f" at '{at}'" if at else ""
    message = f'Invalid JSON payload received. Unknown name "{name}"{where}: Cannot find field.'
    return Refusal(400, "invalid", message, "INVALID_ARGUMENT")


def unknown_parameter(name: str) -> Refusal:
    """For a query parameter that the method does not have."""
    message = f'Invalid JSON payload received. Unknown name "{name}": Cannot bind query parameter.'
    return Refusal(400, "invalid", message, "INVALID_ARGUMENT")


def wrong_value(at: str, type_: str, value: object) -> Refusal:
    """For a value of the wrong type, or an enum value that does not exist."""
    message = f"Invalid value at '{at}' ({type_}), {json.dumps(value)}"
    return Refusal(400, "invalid", message, "INVALID_ARGUMENT")


def missing_parameter(name: str) -> Refusal:
    """For a query parameter, or a part of the body, that the method cannot do without."""
    return Refusal(400, "required", f"Required parameter: {name}")


def too_many_requests(retry_after: int) -> Refusal:
    """For more requests than the quota allows."""
    message = "Quota exceeded for requests per second. Try again later."
    return Refusal(429, "rateLimitExceeded", message, headers={"Retry-After": str(retry_after)})


# --- Cloud SQL -------------------------------------------------------------------------------------------------------


def invalid(problem: str) -> Refusal:
    """For a request that Cloud SQL understands and will not carry out."""
    return Refusal(400, "invalid", f"Invalid request: {problem}.")


def no_instance() -> Refusal:
    """For an instance that is not there."""
    return Refusal(404, "instanceDoesNotExist", "The Cloud SQL instance does not exist.")


def instance_exists(more: str = "") -> Refusal:
    """For a name that is taken."""
    return Refusal(409, "instanceAlreadyExists", f"The Cloud SQL instance already exists.{more}")


def operation_in_progress() -> Refusal:
    """For a second write while the first is still being carried out."""
    message = "Operation failed because another operation was already in progress."
    return Refusal(409, "operationInProgress", message)


def wrong_state() -> Refusal:
    """For a write to an instance that is neither running nor busy: one that failed."""
    message = "The instance or operation is not in an appropriate state to handle the request."
    return Refusal(409, "invalidState", message)


def not_running() -> Refusal:
    """For questions about what is inside an instance that is not up."""
    return invalid("Invalid request since instance is not running")


def stale_settings() -> Refusal:
    """For a settingsVersion that is not the present one."""
    message = "Condition does not match."
    return Refusal(412, "staleData", message, extra={"location": "If-Match", "locationType": "header"})


def has_replicas() -> Refusal:
    """For what cannot be done to an instance while it has replicas."""
    message = "The requested operation is not valid for a replication master instance."
    return Refusal(400, "errorReplicationMasterInvalidOperation", message)


def deletion_protected() -> Refusal:
    """For the deletion of an instance that is protected against it."""
    message = "The instance is protected. Set deletionProtectionEnabled to false, then delete it."
    return Refusal(400, "instanceIsDeletionProtected", message)


def not_found() -> Refusal:
    """For a database, user or operation that is not there."""
    return Refusal(404, "notFound", "Not Found", "NOT_FOUND")


def already_exists(what: str) -> Refusal:
    """For a database or user that is there already."""
    return Refusal(409, "alreadyExists", f"{what} already exists.", "ALREADY_EXISTS")


# --- Cloud Storage ---------------------------------------------------------------------------------------------------


def bad_bucket(problem: str) -> Refusal:
    """For a bucket that cannot be as the request says."""
    return Refusal(400, "invalid", problem)


def no_bucket() -> Refusal:
    """For a bucket that is not there."""
    return Refusal(404, "notFound", "The specified bucket does not exist.")


def no_object(bucket: str, name: str) -> Refusal:
    """For an object, or a version of it, that is not there."""
    return Refusal(404, "notFound", f"No such object: {bucket}/{name}")


def bucket_is_yours() -> Refusal:
    """For an insert that the same project has made before."""
    message = "Your previous request to create the named bucket succeeded and you already own it."
    return Refusal(409, "conflict", message)


def bucket_is_taken() -> Refusal:
    """For a name that another project owns: all projects share one namespace."""
    message = "The requested bucket name is not available: all users of the system share one namespace."
    return Refusal(409, "conflict", message)


def bucket_not_empty() -> Refusal:
    """For the deletion of a bucket that holds objects, old versions included."""
    return Refusal(409, "conflict", "The bucket you tried to delete is not empty.")


def condition_not_met(parameter: str) -> Refusal:
    """For a metageneration that is not as the request expects."""
    message = "At least one of the pre-conditions you specified did not hold."
    return Refusal(412, "conditionNotMet", message, extra={"location": parameter, "locationType": "parameter"})


def retention_locked(bucket: str) -> Refusal:
    """For an attempt to weaken a retention policy that is locked."""
    message = f"Bucket '{bucket}' has a locked retention policy: it can neither be removed nor shortened."
    return Refusal(403, "forbidden", message)


def retained(bucket: str, name: str, until: str) -> Refusal:
    """For the deletion or replacement of an object that has to be kept."""
    message = f"Object '{bucket}/{name}' is subject to the bucket's retention policy until {until}."
    return Refusal(403, "retentionPolicyNotMet", message)

"""Translates errors of the API server: every failure is a StoreError, an author's mistake a UserError."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from setpoint.core.values.messages import FieldTerm, Message
from setpoint.engine.ports import not_served
from setpoint.engine.resource import ResourceRef
from setpoint.errors import (
    KindNotServed,
    ManifestInvalid,
    RemoteConflict,
    RemoteError,
    RemoteExpired,
    RemoteInvalid,
    RemoteRefused,
    RevisionExpired,
    ServiceAccountNotFound,
    StoreError,
    UserError,
    WriteConflict,
)
from setpoint.stores.kubernetes.served_kinds import ServedKind

_FORBIDDEN: Final = 403


@contextmanager
def store_errors(kind: ServedKind | None = None) -> Iterator[None]:
    """Errors of the API server inside become StoreErrors. `kind` is ours, and has a command that installs it."""
    try:
        yield
    except KindNotServed as error:
        if kind is not None:
            raise not_served([kind.name]) from error
        raise StoreError(f"{error}; `setpoint crds` prints those of ours") from error
    except RemoteExpired as error:
        raise RevisionExpired(f"{error}: list again, then watch from there") from error
    except RemoteError as error:
        raise StoreError(f"the cluster: {error}") from error
    except UserError as error:
        if isinstance(error, ManifestInvalid):
            raise
        # A wrong kubeconfig or login.
        raise StoreError(str(error)) from error


@contextmanager
def tenant_errors() -> Iterator[None]:
    """The same for a request on behalf of a tenant: a refusal stays one, for the status of the tenant's resource."""
    try:
        yield
    except ServiceAccountNotFound:
        raise
    except RemoteRefused as error:
        if error.status == _FORBIDDEN:
            raise
        with store_errors():
            raise
    except (RemoteError, UserError):
        with store_errors():
            raise


@contextmanager
def author_errors(ref: ResourceRef) -> Iterator[None]:
    """The same for a manifest: a rejection is the author's to fix."""
    try:
        with store_errors():
            yield
    except StoreError as error:
        cause = error.__cause__
        if isinstance(cause, RemoteInvalid) and cause.causes:
            raise ManifestInvalid(Message(f"{ref}: the cluster does not take it: ", *_listed(cause.causes))) from error
        if isinstance(cause, RemoteInvalid) or _is_bad_request(cause):
            unknown = cause.unknown_fields if isinstance(cause, RemoteRefused) else ()
            message = f"{ref}: the cluster does not take it: {cause}"
            raise ManifestInvalid(message, unknown[0] if unknown else "") from error
        raise


@contextmanager
def object_errors(ref: ResourceRef) -> Iterator[None]:
    """The same for an object that an owner generates: it also reports missing permissions, quotas and namespaces."""
    try:
        with author_errors(ref):
            yield
    except StoreError as error:
        cause = error.__cause__
        if _has_status(cause, _FORBIDDEN) or (_has_status(cause, 404) and not isinstance(cause, KindNotServed)):
            raise ManifestInvalid(f"{ref}: the cluster does not take it: {cause}") from error
        raise


def _listed(causes: Sequence[tuple[str, str]]) -> Iterator[str | FieldTerm]:
    for position, (field, message) in enumerate(causes):
        if position:
            yield "; "
        if field:
            yield from (FieldTerm(field), ": ")
        yield message


def other_conflict(error: RemoteConflict) -> WriteConflict:
    """A conflict that is not about the object itself, such as one of a quota."""
    return WriteConflict(f"the cluster: {error}: read again and plan again")


def _is_bad_request(error: BaseException | None) -> bool:
    """Whether the API server reports an unknown field or a value of another type."""
    return _has_status(error, 400)


def _has_status(error: BaseException | None, code: int) -> bool:
    return isinstance(error, RemoteRefused) and error.status == code

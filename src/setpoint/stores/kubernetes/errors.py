"""Translates errors of the API server: every failure is a StoreError, an author's mistake a UserError."""

from collections.abc import Iterator
from contextlib import contextmanager

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
    StoreError,
    UserError,
    WriteConflict,
)


@contextmanager
def store_errors() -> Iterator[None]:
    """What goes wrong with the cluster goes wrong with the store."""
    try:
        yield
    except KindNotServed as error:
        raise StoreError(f"{error}; `setpoint crds` prints those of ours") from error
    except RemoteExpired as error:
        raise RevisionExpired(f"{error}: list again, then watch from there") from error
    except RemoteError as error:
        raise StoreError(f"the cluster: {error}") from error
    except UserError as error:
        if isinstance(error, ManifestInvalid):
            raise
        # A kubeconfig, or a login, that is not right.
        raise StoreError(str(error)) from error


@contextmanager
def author_errors(ref: ResourceRef) -> Iterator[None]:
    """The same for a manifest: what the cluster does not take is its author's to mend."""
    try:
        with store_errors():
            yield
    except StoreError as error:
        cause = error.__cause__
        if isinstance(cause, RemoteInvalid) and cause.causes:
            listed = "; ".join(f"{field}: {message}" if field else message for field, message in cause.causes)
            raise ManifestInvalid(f"{ref}: the cluster does not take it: {listed}") from error
        if isinstance(cause, RemoteInvalid) or _is_bad_request(cause):
            raise ManifestInvalid(f"{ref}: the cluster does not take it: {cause}") from error
        raise


@contextmanager
def object_errors(ref: ResourceRef) -> Iterator[None]:
    """The same for an object that an owner makes: rights, quotas and a namespace that is missing are told there too."""
    try:
        with author_errors(ref):
            yield
    except StoreError as error:
        cause = error.__cause__
        if _has_status(cause, 403) or (_has_status(cause, 404) and not isinstance(cause, KindNotServed)):
            raise ManifestInvalid(f"{ref}: the cluster does not take it: {cause}") from error
        raise


def other_conflict(error: RemoteConflict) -> WriteConflict:
    """One that is not about the object itself: a quota that somebody else counts on, or what came and went."""
    return WriteConflict(f"the cluster: {error}: read again and plan again")


def _is_bad_request(error: BaseException | None) -> bool:
    """Whether it says that there is a field that the kind does not have, or a value of another type."""
    return _has_status(error, 400)


def _has_status(error: BaseException | None, code: int) -> bool:
    return isinstance(error, RemoteRefused) and f": {code}: " in str(error)

"""What the cluster answers, in the words of a store: every failure is a StoreError, an author's mistake a UserError."""

from collections.abc import Iterator
from contextlib import contextmanager

from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import (
    KindNotServed,
    ManifestInvalid,
    RemoteError,
    RemoteExpired,
    RemoteInvalid,
    RemoteRefused,
    RevisionExpired,
    StoreError,
    UserError,
    WriteConflict,
)
from setpoint.stores.kubernetes.objects import Kept


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


def _is_bad_request(error: BaseException | None) -> bool:
    """Whether it is a 400: a field that the kind does not have, or a value of another type."""
    return isinstance(error, RemoteRefused) and ": 400: " in str(error)


def conflict_with(seen: Resource, now: Kept | None) -> WriteConflict:
    """What became of the object since it was seen."""
    if now is None:
        return WriteConflict(f"{seen.ref} is gone: read again and plan again")
    if now.uid != seen.uid:
        return WriteConflict(f"{seen.ref} was deleted and made anew: read it again and plan again")
    return WriteConflict(
        f"{seen.ref} has changed since it was read (revision {seen.revision}, now {now.revision}): "
        "read it again and plan again"
    )

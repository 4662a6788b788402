"""Every error `setpoint` raises. The class decides what happens next; the message says what, where and what to do."""

from enum import Enum
from math import inf
from typing import ClassVar


class Retry(Enum):
    """What the engine does after a step that failed."""

    ON_EDIT = "waits for the author"
    ON_CHANGE = "waits for the world"
    BACK_OFF = "tries again, later each time"
    STEP_AGAIN = "reads again and plans again"
    STOP = "stops: another process owns this resource"
    BUG = "logs a traceback, counts it and backs off"


class SetpointError(Exception):
    """The root of every error raised on purpose."""

    retry: ClassVar[Retry] = Retry.BUG


class Bug(SetpointError):
    """A mistake of ours: not the author's, not the service's."""


class UserError(SetpointError):
    """The author has to change something; trying again changes nothing."""

    retry = Retry.ON_EDIT


class ManifestInvalid(UserError):
    """A manifest that cannot mean anything: wrong type, missing field, contradiction."""


class NotJson(ManifestInvalid):
    """A value with no JSON form: NaN, a lone surrogate, a key that is not text, a cycle."""


class UnknownField(UserError):
    """A path that names nothing real. `nearest` holds the closest paths that exist, best first."""

    def __init__(self, message: str, nearest: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.nearest = nearest


class ImmutableFieldChanged(UserError):
    """A change to a field that is fixed when the object is created. `paths` names each."""

    def __init__(self, message: str, paths: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.paths = paths


class LocationChanged(UserError):
    """An edit that would move a resource to another place, leaving the first object behind."""


class DependencyCycle(UserError):
    """Resources that wait for each other."""


class NotReady(SetpointError):
    """The world has to change first; the resource itself has not failed."""

    retry = Retry.ON_CHANGE


class DependencyNotReady(NotReady):
    """A referenced resource is there, and not ready."""


class DependencyNotFound(DependencyNotReady):
    """A referenced resource is not there."""


class DependencyInvalid(DependencyNotReady):
    """A referenced resource is there, and lacks what was asked of it."""


class OperationRunning(NotReady):
    """The service is still at work on an earlier request. `after` is when to look again, in seconds, if it is known.

    `begun` is what the request asks for, when it is one of this very step: create, update.
    """

    def __init__(self, message: str, after: float | None = None, begun: str = "") -> None:
        super().__init__(message)
        self.after = after
        self.begun = begun


class StillWaiting(OperationRunning):
    """The object is as declared, and what is waited for has not come yet.

    `left` is what is left of its time, where whoever raises it knows.
    """

    def __init__(self, message: str, left: float = inf, begun: str = "") -> None:
        super().__init__(message, None, begun)
        self.left = left


class WaitTimedOut(NotReady):
    """A wait used up its time. The object stays; the next run goes on waiting. `why`: what is missing, in short."""

    def __init__(self, message: str, why: str = "") -> None:
        super().__init__(message)
        self.why = why or message


class WaitFailed(NotReady):
    """What is waited for will not come: the object says that it has failed, or is another one by now."""


class DeletionHeld(NotReady):
    """Somebody says that the resource may not be deleted yet: nothing is, until they let go of it."""


class Blocked(NotReady):
    """A value this resource needs is still unknown."""


class RemoteError(SetpointError):
    """A service answered badly, or not at all."""

    retry = Retry.BACK_OFF


class RemoteUnavailable(RemoteError):
    """No usable answer: connection refused, time-out, 429, 5xx. `after`: the seconds the service asked to wait."""

    def __init__(self, message: str, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


class RemoteRefused(RemoteError):
    """A clear no: 400, 401, 403, a failed operation."""


class ChildRefused(RemoteRefused):
    """The write of one child of an owner was refused: `index` is its place among the writes.

    Not the author's to mend: it may be a right, a quota, or a namespace that is missing.
    """

    def __init__(self, message: str, index: int) -> None:
        super().__init__(message)
        self.index = index


class RemoteInvalid(RemoteRefused):
    """The service takes no such object. `causes` has a field and what is wrong with it, for each that was named."""

    def __init__(self, message: str, causes: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(message)
        self.causes = causes


class HeldByOthers(RemoteRefused):
    """Somebody else owns fields that were to be set. `held` has a field and who owns it, for each of them."""

    def __init__(self, message: str, held: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(message)
        self.held = held


class KindNotServed(RemoteRefused):
    """A cluster does not know this kind, or not in this version."""


class RemoteConflict(RemoteError):
    """The object is not as it was when it was looked at: look again, plan again."""

    retry = Retry.STEP_AGAIN


class AlreadyExists(RemoteConflict):
    """What was to be made is there."""


class RemoteExpired(RemoteError):
    """The place from which to go on is too long ago for the service: list again, then watch from there."""

    retry = Retry.STEP_AGAIN


class WriteBlocked(SetpointError):
    """A write was about to go out where nothing may be written: in a preview. It did not."""

    retry = Retry.STOP


class NotRecorded(SetpointError):
    """A recorded world was asked for something that nobody asked when it was recorded: it does not guess."""

    retry = Retry.STOP


class StoreError(SetpointError):
    """The record of what was declared could not be read or written."""

    retry = Retry.STEP_AGAIN


class WriteConflict(StoreError):
    """Somebody wrote first: read again, plan again."""


class RevisionExpired(StoreError):
    """A watch asked for changes that are no longer on record: list again, then watch from there."""


class StoreInUse(StoreError):
    """Another process writes to this store."""

    retry = Retry.STOP


class LeaseLost(StoreError):
    """Another process holds the lease: this one may not write any more."""

    retry = Retry.STOP


def retry_for(error: BaseException) -> Retry:
    """What to do after `error`; whatever is not one of ours is a bug of ours."""
    return error.retry if isinstance(error, SetpointError) else Retry.BUG

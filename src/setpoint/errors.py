"""Every error `setpoint` raises. The class decides what happens next; the message says what, where and what to do."""

from enum import Enum
from math import inf
from typing import ClassVar, NamedTuple


class Retry(Enum):
    """What the engine does after a step that failed."""

    ON_EDIT = "waits for the author"
    ON_CHANGE = "waits for the world"
    BACK_OFF = "tries again, later each time"
    STEP_AGAIN = "reads again and plans again"
    STOP = "stops: another process owns this resource"
    BUG = "logs a traceback, counts it and backs off"


class SetpointError(Exception):
    """The base of every error that is raised on purpose."""

    retry: ClassVar[Retry] = Retry.BUG


class Bug(SetpointError):
    """A bug of setpoint: neither the author nor the service can fix it."""


class UserError(SetpointError):
    """The author has to change something; a retry alone has the same result."""

    retry = Retry.ON_EDIT


class ManifestInvalid(UserError):
    """A manifest that no live object can satisfy: wrong type, missing field, contradiction.

    `field` is the path at fault, where it is known and the message does not have it as a term. `problems` has the error
    of each mistake where there is more than one; the message then has a line for each.
    """

    def __init__(self, message: str = "", field: str = "", problems: tuple[UserError, ...] = ()) -> None:
        super().__init__(message)
        self.field = field
        self.problems = problems


class NotJson(ManifestInvalid):
    """A value with no JSON form: NaN, a lone surrogate, a key that is not text, a cycle."""


class YamlInvalid(ManifestInvalid):
    """A text that is not YAML, or not of the kind that is supported. `line` is where, `why` the message without it."""

    def __init__(self, message: str, line: int = 1, why: str = "") -> None:
        super().__init__(message)
        self.line = line
        self.why = why or message


class PlaceNotNamed(UserError):
    """Live objects are looked for, and it is not said where: in which project, in which regions."""


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
    """An edit that would move a resource to another location, and leave the first object behind."""


class ProjectRefused(UserError):
    """A resource names a Google project, or has one on record, that its tenant was not given."""


class RecordLost(UserError):
    """A resource is being deleted, and the record of its object is gone: nothing is deleted by a guess."""


class ManagementConflict(UserError):
    """Another resource of the same store manages the live object.

    `releases_claim`: this one has it on record as well, and gives it up.
    """

    def __init__(self, message: str, *, releases_claim: bool = False) -> None:
        super().__init__(message)
        self.releases_claim = releases_claim


class DependencyCycle(UserError):
    """Resources that wait for each other."""


class PluginBroken(UserError):
    """A kind of a plug-in that cannot be used: it fails to load, or others offer the same. The operator corrects it."""


class ResourcesFailed(UserError):
    """Resources of a command failed; `refs` names them, and the message has a line for each."""

    def __init__(self, message: str = "", refs: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.refs = refs


class NotReady(SetpointError):
    """Something outside the resource has to change first; the resource itself has not failed."""

    retry = Retry.ON_CHANGE


class BlockingLink(NamedTuple):
    """One link in a chain of blocked resources: which resource is waited for, if that is known, and why it blocks.

    `ref` has the group, kind, namespace and name.
    """

    ref: tuple[str, str, str, str] | None
    why: str


class DependencyNotReady(NotReady):
    """A referenced resource exists, and is not ready. `links` is the chain of what blocks, the nearest first."""

    def __init__(self, message: str, links: tuple[BlockingLink, ...] = ()) -> None:
        super().__init__(message)
        self.links = links


class DependencyNotFound(DependencyNotReady):
    """A referenced resource does not exist."""


class OutputMissing(DependencyNotReady):
    """The status of a referenced resource lacks a value that is needed: that at `path`, such as `status.selfLink`."""

    def __init__(self, message: str, ref: tuple[str, str, str, str] | None = None, path: str = "") -> None:
        super().__init__(message)
        self.ref = ref
        self.path = path


class DependencyInvalid(DependencyNotReady):
    """A referenced resource exists, and lacks the value or key that is referenced."""


class OperationRunning(NotReady):
    """The service still executes an earlier request. `after` is when to poll again, in seconds, if it is known.

    `begun` is the action of the request, when this step sent it: create, update.
    """

    def __init__(self, message: str, after: float | None = None, begun: str = "") -> None:
        super().__init__(message)
        self.after = after
        self.begun = begun
        # Whether other operations wait for the end of this one: then it is polled more often.
        self.is_awaited = False


class OperationQueued(OperationRunning):
    """Another operation of this process excludes this one: nothing was sent, and the step is due when that is done."""


class StillWaiting(OperationRunning):
    """The object is as declared, and its wait is not satisfied yet. `left` is what is left of its timeout."""

    def __init__(self, message: str, left: float = inf, begun: str = "") -> None:
        super().__init__(message, None, begun)
        self.left = left


class WaitTimedOut(NotReady):
    """A wait used up its timeout. The object stays; the next run waits again. `why`: what is missing, in short."""

    def __init__(self, message: str, why: str = "") -> None:
        super().__init__(message)
        self.why = why or message


class WaitFailed(NotReady):
    """A wait cannot be satisfied any more: the object reports a failure, or was replaced by another one."""


class DeletionHeld(NotReady):
    """Another controller's finalizer says that the object must not be deleted yet: nothing is until it is gone."""


class Blocked(NotReady):
    """A value this resource needs is still unknown. `links` is the chain of what blocks, the nearest first."""

    def __init__(self, message: str, links: tuple[BlockingLink, ...] = ()) -> None:
        super().__init__(message)
        self.links = links


class ReferenceNotGranted(Blocked):
    """A reference to another namespace that its owner does not grant; whether there is such a resource is not told."""


class RemoteError(SetpointError):
    """A service answered with an error, or not at all."""

    retry = Retry.BACK_OFF


class RemoteUnavailable(RemoteError):
    """No usable answer: connection refused, time-out, 429, 5xx. `after`: the seconds the service asked to wait."""

    def __init__(self, message: str, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


class ResponseTooLarge(RemoteUnavailable):
    """A response beyond the limits: of its size, where the rest of it was not read, or of the number of its values."""


class ClientRetired(RemoteError):
    """The client of a server was closed to make room for others: the next step gets a new one."""

    retry = Retry.STEP_AGAIN


class RemoteRefused(RemoteError):
    """The service refused the request: 400, 401, 403, a failed operation.

    `status` is that of the HTTP response; `unknown_fields` are the fields that the service does not know.
    """

    def __init__(self, message: str, status: int | None = None, unknown_fields: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.unknown_fields = unknown_fields


class ServiceAccountNotFound(RemoteRefused):
    """The ServiceAccount that setpoint is to act as does not exist, or is not for tenants."""


class TenantInvalid(RemoteRefused):
    """What an administrator set up for a namespace cannot be read or used: an annotation, an identity."""


class ChildRefused(RemoteRefused):
    """The write of one child of an owner was refused: `index` is its position among the writes.

    The author cannot fix it: a permission, a quota or a namespace may be missing.
    """

    def __init__(self, message: str, index: int = 0) -> None:
        super().__init__(message)
        self.index = index


class RemoteInvalid(RemoteRefused):
    """The service rejected the object as invalid. `causes` has each field that was named, and what is wrong with it."""

    def __init__(self, message: str, causes: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(message)
        self.causes = causes


class HeldByOthers(RemoteRefused):
    """Another field manager owns fields that were to be set. `held` has each field and the manager that owns it."""

    def __init__(self, message: str, held: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(message)
        self.held = held


class KindNotServed(RemoteRefused):
    """A cluster does not serve this kind, or not in this version."""


class DefinitionOutdated(RemoteRefused):
    """The CustomResourceDefinition of a kind is older than this process: the cluster drops what has to be on record."""


class RemoteConflict(RemoteError):
    """The object changed since it was observed (optimistic concurrency): observe again, plan again."""

    retry = Retry.STEP_AGAIN


class AlreadyExists(RemoteConflict):
    """The object that was to be created exists already."""


class RemoteExpired(RemoteError):
    """The resource version to watch from is too old for the service: list again, then watch from there."""

    retry = Retry.STEP_AGAIN


class WriteBlocked(SetpointError):
    """A write was about to be sent where none may be: in a preview. It was not sent."""

    retry = Retry.STOP


class NotRecorded(SetpointError):
    """A recorded world has no answer to this request: it was not made when the world was recorded."""

    retry = Retry.STOP


class StoreError(SetpointError):
    """The store could not be read or written."""

    retry = Retry.STEP_AGAIN


class WriteConflict(StoreError):
    """Another writer was first (optimistic concurrency): read again, plan again. `begun` is what the step has sent."""

    def __init__(self, message: str, begun: str = "") -> None:
        super().__init__(message)
        self.begun = begun


class RevisionExpired(StoreError):
    """A watch asked for changes that the store no longer keeps: list again, then watch from there."""


class StoreInUse(StoreError):
    """Another process writes to this store."""

    retry = Retry.STOP


class LeaseLost(StoreError):
    """Another process holds the lease: this one may not write any more."""

    retry = Retry.STOP


def retry_for(error: BaseException) -> Retry:
    """What to do after `error`; an exception that is no SetpointError is a bug of setpoint."""
    return error.retry if isinstance(error, SetpointError) else Retry.BUG


def forget_frames(error: BaseException) -> None:
    """Drops the frames of `error` and of its causes: they hold all that was read, for as long as the error is kept."""
    left: BaseException | None = error
    while left is not None and left.__traceback__ is not None:
        left.__traceback__ = None
        left = left.__cause__ or left.__context__


def is_same_error(one: SetpointError, other: SetpointError) -> bool:
    """Whether both report the same: the class and what it was made from."""
    return type(one) is type(other) and one.args == other.args

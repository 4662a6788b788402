"""A session for a patch of one object that another writer made: forecast, write, and release of its fields.

An apply patch is written by server-side apply. A merge patch or a JSON patch is evaluated here, against the object as
it would be without it, into the values of fields; these are written as one JSON patch.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar, Final, TypeAlias

from setpoint.core.decide import Decision
from setpoint.core.plan import PlannedWrite
from setpoint.core.secret_paths import has_secret_fields
from setpoint.core.values.canonical import same
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject, Missing
from setpoint.core.values.paths import Path, get_at, remove_at, set_at
from setpoint.engine.kind import Absent, Intent, LiveObservation
from setpoint.errors import RemoteConflict, RemoteRefused, SetpointError
from setpoint.kinds.kubernetes_object.managed_fields import (
    APPLY,
    PATCHES,
    PREFIX,
    UPDATE,
    managed_fields_of,
    owners_at,
)
from setpoint.objects.json_patches import (
    JsonPatchOperation,
    PatchResult,
    apply_json_patch,
    apply_merge_patch,
    json_patch_between,
)
from setpoint.objects.object_fields import declared_values, value_at
from setpoint.objects.patch_record import (
    PatchRecord,
    PatchRelease,
    is_key,
    released,
    unpatched,
    without_manager,
)
from setpoint.objects.recording_kind import RecordingKind
from setpoint.objects.session import ClusterSession, ObjectSession

# How often a write is tried again that another writer came before.
_ATTEMPTS: Final = 20
_RESOURCE_VERSION: Final = Path(("metadata", "resourceVersion"))


@dataclass(frozen=True, slots=True)
class PatchTarget:
    """The object of a patch; without a namespace, in the default one of the connection."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""

    @property
    def title(self) -> str:
        """For messages: `ConfigMap kube-system/coredns`."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class ApplyPatch:
    """Fields that are merged by server-side apply: lists of objects by their keys."""

    tree: JsonObject


@dataclass(frozen=True, slots=True)
class MergePatch:
    """RFC 7386: null removes, a list replaces the whole list."""

    tree: JsonObject


@dataclass(frozen=True, slots=True)
class JsonPatch:
    """RFC 6902: operations, one after the other."""

    operations: tuple[JsonPatchOperation, ...]


ObjectPatch: TypeAlias = ApplyPatch | MergePatch | JsonPatch


@dataclass(frozen=True, slots=True)
class FieldConflict:
    """A field of a patch that another field manager holds: another patch, or one that applies another value."""

    path: Path
    manager: str
    is_patch: bool

    @property
    def patch_id(self) -> str:
        """The ID of the other patch."""
        return self.manager.removeprefix(f"{PREFIX}{PATCHES}/")


@dataclass(frozen=True, slots=True)
class PatchForecast:
    """What a write would do: the object before and after, the fields of the patch, and those that it gives up."""

    live: Json
    after: Json
    paths: tuple[Path, ...]
    release: PatchRelease
    conflicts: tuple[FieldConflict, ...]
    is_changed: bool
    is_restored: bool


@dataclass(slots=True)
class ExistingObjectKind(RecordingKind):
    """The kind for objects that are never created here."""

    async def dry_run(self, intent: Intent, observed: LiveObservation, decision: Decision) -> tuple[PlannedWrite, ...]:
        """See SupportsDryRun."""
        if isinstance(observed, Absent):
            raise _gone(intent)
        return await RecordingKind.dry_run(self, intent, observed, decision)

    async def create(self, intent: Intent, wanted: JsonObject) -> None:
        """Never: an object that has disappeared is not made of its patch."""
        raise _gone(intent)


def _gone(intent: Intent) -> RemoteRefused:
    return RemoteRefused(f"{intent.location} was deleted meanwhile: a patch does not make it; plan again")


class _ApplySession(ObjectSession):
    kind_type: ClassVar[type[RecordingKind]] = ExistingObjectKind


class PatchSession(_ApplySession):
    """A patch of one object, under an ID that makes its field manager."""

    def __init__(
        self,
        cluster: ClusterSession,
        id_: str,
        target: PatchTarget,
        patch: ObjectPatch,
        *,
        force: bool = False,
        wait: JsonObject | None = None,
    ) -> None:
        self.patch: Final = patch
        self.target: Final = replace(target, namespace=target.namespace or cluster.client.connection.namespace)
        manifest = _manifest(self.target, patch.tree if isinstance(patch, ApplyPatch) else {})
        # A dry run under a name of its own prunes nothing and meets no conflict with what the patch owns already.
        planned: JsonObject = {"manifest": manifest, "forceConflicts": True, **({"waitFor": wait} if wait else {})}
        super().__init__(cluster, f"{id_}.plan", planned, namespace=PATCHES)
        spec: JsonObject = {"manifest": manifest, **({"forceConflicts": True} if force else {})}
        self._writer = _ApplySession(cluster, id_, spec, namespace=PATCHES)
        self.owner: Final = self._writer.manager
        # The patches of the same fields that a write has met: they were written since it was forecast.
        self.met_patches: list[FieldConflict] = []

    async def forecast_patch(self, record: PatchRecord, *, is_restored: bool, is_tested: bool = True) -> PatchForecast:
        """What `write` would do to the object as it was observed; an error that would stop it is raised.

        `is_restored`: fields that the patch gives up go back to the values before. `is_tested`: `test` is evaluated.
        """
        live = self.live
        await self.check()
        if isinstance(self.patch, ApplyPatch):
            after = (await self.forecast()).after
            paths = tuple(declared_values(after, self.manager))
            release = self._release(live, record, paths, is_restored=is_restored)
        else:
            result = self._evaluated(unpatched(live, record), is_tested=is_tested)
            paths = _fields(result, unpatched(live, record))
            release = self._release(live, record, paths, is_restored=is_restored)
            after = await self.rewrite(live, _with_fields(release.tree, result.tree, paths), dry_run=True)
        conflicts = tuple(self._conflicts(live, after, paths))
        is_changed = self._is_changed(live, after, paths, record)
        return PatchForecast(live, after, paths, release, conflicts, is_changed, is_restored)

    def is_as_written(self, record: PatchRecord) -> bool:
        """Whether the object, as it was observed, has all fields of this apply patch as the write of it left them.

        Applied once more, it would not change: no dry run is needed to see that.
        """
        live = self.live
        if not isinstance(self.patch, ApplyPatch) or set(record.before) != set(record.written):
            return False
        is_owned = set(record.before) == set(declared_values(live, self.owner))
        return is_owned and all(record.is_unchanged(live, path, self.owner) for path in record.before)

    def forecast_nothing(self, record: PatchRecord) -> PatchForecast:
        """The forecast of a patch that is as it was written."""
        live, paths = self.live, tuple(record.before)
        conflicts = tuple(self._conflicts(live, live, paths))
        return PatchForecast(live, live, paths, PatchRelease(live), conflicts, is_changed=False, is_restored=False)

    async def write(self, record: PatchRecord, forecast: PatchForecast, seconds: float) -> SetpointError | None:
        """Writes the patch, within so many seconds; the error that stopped it, if any. `live` is the result.

        RemoteConflict: another writer came before, and what was before is to be read again.
        """
        try:
            if not isinstance(self.patch, ApplyPatch):
                tree = _with_fields(forecast.release.tree, forecast.after, forecast.paths)
                await self.rewrite(forecast.live, tree)
                return None
            if forecast.release.fields:
                kept = record.only(forecast.release.fields)
                await self._give_up_all(kept, is_restored=forecast.is_restored)
            await self._writer.observe(may_be_recent=True)
            failure = await self._writer.reconcile(seconds)
            if failure is None:
                live = self._kind.live = self._writer.live
                self.met_patches = [one for one in self._conflicts(live, live, forecast.paths) if one.is_patch]
                await self._clean(UPDATE)
        except SetpointError as error:
            return error
        return failure

    async def release(self, record: PatchRecord, *, is_restored: bool) -> None:
        """Gives up all fields: with the values before, unless another writer has changed them, or as they are."""
        if await self.observe() is not None and record.is_of(self.live):
            await self._give_up_all(record, is_restored=is_restored)
            await self._clean()

    def forecast_release(self, record: PatchRecord, *, is_restored: bool) -> PatchRelease:
        """What `release` would do to the object as it was observed."""
        return self._release(self.live, record, (), is_restored=is_restored)

    @property
    def follows_live(self) -> bool:
        """Whether the fields of the patch, or their values, depend on what is in the object."""
        return isinstance(self.patch, JsonPatch) and not all(map(_is_plain, self.patch.operations))

    def is_written(self) -> bool:
        """Whether the object, as it was last observed, has fields of this patch."""
        return any(one.manager == self.owner for one in managed_fields_of(self.live))

    # --- Fields ------------------------------------------------------------------------------------------------------

    def _evaluated(self, base: Json, *, is_tested: bool) -> PatchResult:
        match self.patch:
            case JsonPatch(operations):
                return apply_json_patch(base, operations, is_tested=is_tested)
            case _:
                return apply_merge_patch(base, self.patch.tree)

    def _release(self, live: Json, record: PatchRecord, kept: Sequence[Path], *, is_restored: bool) -> PatchRelease:
        dropped = [path for path in record.before if path not in kept]
        found = released(live, record, dropped, self.owner)
        return found if is_restored else replace(found, tree=live)

    def _conflicts(self, live: Json, after: Json, paths: Sequence[Path]) -> "list[FieldConflict]":
        found = []
        for path in (path for path in paths if not is_key(path)):
            for one in owners_at(live, path):
                is_other = one.manager != self.owner and not one.subresource
                is_held = one.operation == APPLY and not _same_at(live, after, path)
                if is_other and (one.is_patch or is_held):
                    found.append(FieldConflict(path, one.manager, one.is_patch))
        return found

    def _is_changed(self, live: Json, after: Json, paths: Sequence[Path], record: PatchRecord) -> bool:
        if set(paths) != set(record.before) or not all(_same_at(live, after, path) for path in paths):
            return True
        if not isinstance(self.patch, ApplyPatch):
            return False
        return not set(paths) <= set(declared_values(live, self.owner))

    # --- Writing -----------------------------------------------------------------------------------------------------

    async def _give_up_all(self, record: PatchRecord, *, is_restored: bool) -> None:
        """Releases the fields of a record. They belong to no patch from then on."""
        await self._rewrite_live(
            lambda live: without_manager(self._release(live, record, (), is_restored=is_restored).tree, self.owner)
        )

    async def _clean(self, operation: str = "") -> None:
        """Removes what is left of this field manager: writing values has made an entry of its own."""
        await self._rewrite_live(lambda live: without_manager(live, self.owner, operation))

    async def _rewrite_live(self, change: Callable[[Json], Json]) -> None:
        """Changes the object as it is; once more if another writer comes before."""
        for attempt in range(_ATTEMPTS):
            try:
                await self.rewrite(self.live, change(self.live))
                return
            except RemoteConflict:
                if attempt == _ATTEMPTS - 1 or await self.observe() is None:
                    raise

    async def rewrite(self, live: Json, tree: Json, *, dry_run: bool = False) -> Json:
        """The object once it is `tree`. RemoteConflict if it is not `live` any more, and it is no dry run."""
        operations = json_patch_between(live, tree)
        if not operations:
            return live
        version = get_at(live, _RESOURCE_VERSION)
        location = await self.location()
        if not dry_run:
            self._kind.answers.begin_write(location)
        lock: list[Json] = [{"op": "replace", "path": "/metadata/resourceVersion", "value": str(version)}]
        try:
            found = await self._kind.remote.patch(
                location, operations if dry_run else lock + operations, self.owner, dry_run=dry_run
            )
        except RemoteRefused as error:
            if has_secret_fields(live):
                # The API server repeats values in its messages.
                why = f"the cluster refuses the values for {self.target.title}, which are secret and not shown"
                raise RemoteRefused(why, error.status) from None
            raise
        if not dry_run:
            self._kind.live = found.whole
        return found.whole


def _is_plain(one: JsonPatchOperation) -> bool:
    last = one.pointer[-1]
    is_in_list = last == "-" or last.isdecimal()
    return one.op == "test" or (one.source is None and not isinstance(one.value, dict | list) and not is_in_list)


def _manifest(target: PatchTarget, tree: JsonObject) -> dict[str, Json]:
    metadata = tree.get("metadata")
    names: dict[str, Json] = {"name": target.name, "namespace": target.namespace}
    identity = {"apiVersion": target.api_version, "kind": target.kind}
    return {**tree, **identity, "metadata": {**(metadata if isinstance(metadata, dict) else {}), **names}}


def _fields(result: PatchResult, base: Json) -> tuple[Path, ...]:
    """The fields of a patch: an object that was not there is known by its members, so that others may add to it."""
    found: list[Path] = []
    for path in result.paths:
        value = get_at(result.tree, path)
        found += _leaves(value, path) if isinstance(get_at(base, path), Missing) else [path]
    return tuple(found)


def _leaves(value: Json | Missing, at: Path) -> list[Path]:
    if not isinstance(value, dict) or not value:
        return [at]
    return [leaf for name, below in value.items() for leaf in _leaves(below, at / name)]


def _with_fields(tree: Json, source: Json, paths: Sequence[Path]) -> Json:
    """`tree` with the values that `source` has at these paths, MISSING included."""
    for path in paths:
        value = get_at(source, path)
        tree = remove_at(tree, path) if isinstance(value, Missing) else set_at(tree, path, value)
    return tree


def _same_at(one: Json, other: Json, path: Path) -> bool:
    before, after = value_at(one, path), value_at(other, path)
    if isinstance(before, Missing) or isinstance(after, Missing):
        return before is after
    return same(before, after)

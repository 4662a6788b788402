"""Waits for an object that another controller manages: the object, and even its kind, may not exist yet."""

from typing import Final

from setpoint.core.unstructured import text_at
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.core.wait.judge import (
    JudgeResult,
    ObjectFound,
    ObjectNotFound,
    Satisfied,
    Unsatisfiable,
    Unsatisfied,
    judge_observation,
)
from setpoint.core.wait.outputs import Known, Null, output_of
from setpoint.core.wait.wait_for import WaitFor, satisfaction_key
from setpoint.engine.claims.object_claims import OWN
from setpoint.engine.drivers.object_watch import ObjectWatch, ObjectWatches
from setpoint.engine.kind import Present
from setpoint.errors import OperationRunning, RemoteUnavailable, WaitFailed, WaitTimedOut
from setpoint.kinds.kubernetes_object.kind import KubernetesObjectKind
from setpoint.kinds.kubernetes_object.location import ObjectLocation
from setpoint.objects.session import ClusterSession

# The kind of an object that does not exist may not be served yet, and then cannot be watched.
_ABSENT_S: Final = 2.0
_PRESENT_S: Final = 15.0


@dataclass(frozen=True, slots=True)
class SatisfiedWait:
    """A wait that is satisfied: its value, for a field wait, and the key for which it stays satisfied."""

    value: Json
    key: str


class ObjectWait:
    """A wait for one object of a cluster, by its name."""

    def __init__(self, cluster: ClusterSession, api_version: str, kind: str, names: tuple[str, str]) -> None:
        namespace, name = names
        self.connection: Final = cluster.client.connection
        self._clock = cluster.clock
        self._location = ObjectLocation(OWN, api_version, kind, namespace or self.connection.namespace, name)
        self._kind = KubernetesObjectKind(cluster.clusters, cluster.clock)

    async def observe(self) -> Json:
        """The live object; None when there is none."""
        found = await self._kind.observe(self._location.location)
        return found.whole if isinstance(found, Present) else None

    def satisfied(self, wait_for: WaitFor, live: Json) -> SatisfiedWait | None:
        """The result, if the wait is satisfied by this live object."""
        if not isinstance(judge_observation(wait_for.wait, ObjectFound(live), MISSING), Satisfied):
            return None
        output = output_of(wait_for.wait, ObjectFound(live), Null(), "")
        return SatisfiedWait(output.value if isinstance(output, Known) else None, self.key(wait_for, live))

    def key(self, wait_for: WaitFor, live: Json) -> str:
        """The key for which the wait stays satisfied: the wait, the object and its generation."""
        found = satisfaction_key(wait_for.wait, live)
        return "" if isinstance(found, Missing) else str(found)

    async def until(self, wait_for: WaitFor) -> SatisfiedWait:
        """The result once the wait is satisfied; WaitTimedOut or WaitFailed say what is missing."""
        watches = ObjectWatches(self._clock)
        try:
            return await self._until(wait_for, watches.watch(self._kind, self._location.location))
        finally:
            await watches.close()

    async def _until(self, wait_for: WaitFor, watch: ObjectWatch) -> SatisfiedWait:
        clock = self._clock
        end = clock.monotonic() + wait_for.timeout_seconds
        uid: str | Missing = MISSING
        while True:
            live, judged = await self._judged(wait_for, uid)
            found = None if live is None else self.satisfied(wait_for, live)
            if found is not None:
                return found
            uid = text_at(live, "metadata", "uid") or uid
            left = end - clock.monotonic()
            if isinstance(judged, Unsatisfiable):
                raise WaitFailed(f"{self._location.title}: {judged.reason}: {judged.message}")
            if left <= 0:
                missing = judged.missing if isinstance(judged, Unsatisfied) else ""
                raise WaitTimedOut(f"not within {wait_for.timeout_seconds:g} s: {missing}")
            await watch.wait_for_change(min(left, _ABSENT_S if live is None else _PRESENT_S))

    async def _judged(self, wait_for: WaitFor, uid: str | Missing) -> tuple[Json, JudgeResult]:
        try:
            live = await self.observe()
        except (OperationRunning, RemoteUnavailable) as error:
            return None, Unsatisfied(str(error))
        seen = ObjectNotFound(self._location.title) if live is None else ObjectFound(live)
        return live, judge_observation(wait_for.wait, seen, uid)

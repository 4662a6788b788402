"""Waiting for an object that others manage: it may not be there yet, nor its kind."""

from dataclasses import dataclass
from typing import Final

from setpoint.core.kubernetes import text_at
from setpoint.core.outputs import Known, Null, output_of
from setpoint.core.values import MISSING, Json, Missing
from setpoint.core.verdict import Failed, NotThere, Satisfied, Seen, Verdict, Waiting, judge_observed
from setpoint.core.wait_for import WaitFor, satisfaction_key
from setpoint.engine.kind import Present
from setpoint.engine.listening import Ear, Ears
from setpoint.errors import OperationRunning, RemoteUnavailable, WaitFailed, WaitTimedOut
from setpoint.kinds.kubernetes_object.clusters import OWN
from setpoint.kinds.kubernetes_object.kind import KubernetesObjectKind
from setpoint.kinds.kubernetes_object.place import Place
from setpoint.objects.site import Site

# What is not there may be of a kind that nobody can be asked to tell of.
_ABSENT_S: Final = 2.0
_PRESENT_S: Final = 15.0


@dataclass(frozen=True, slots=True)
class Met:
    """A wait that is over: the value, where it was one that was waited for, and what it was satisfied for."""

    value: Json
    key: str


class Awaited:
    """An object in a cluster, by its name."""

    def __init__(self, site: Site, api_version: str, kind: str, names: tuple[str, str]) -> None:
        namespace, name = names
        self._site = site
        self._place = Place(OWN, api_version, kind, namespace or site.client.connection.namespace, name)
        self._kind = KubernetesObjectKind(site.clusters, site.clock)

    async def look(self) -> Json:
        """The object as it is; None when there is none."""
        found = await self._kind.observe(self._place.location)
        return found.whole if isinstance(found, Present) else None

    def met(self, wait_for: WaitFor, live: Json) -> Met | None:
        """The wait, if it is satisfied by that very object."""
        if not isinstance(judge_observed(wait_for.wait, Seen(live), MISSING), Satisfied):
            return None
        output = output_of(wait_for.wait, Seen(live), Null(), "")
        return Met(output.value if isinstance(output, Known) else None, self.key(wait_for, live))

    def key(self, wait_for: WaitFor, live: Json) -> str:
        """What stays satisfied: this wait, of this object, as it is meant to be now."""
        found = satisfaction_key(wait_for.wait, live)
        return "" if isinstance(found, Missing) else str(found)

    async def until(self, wait_for: WaitFor) -> Met:
        """The wait once it is satisfied; WaitTimedOut or WaitFailed say what is missing. One budget for all of it."""
        ears = Ears(self._site.clock)
        try:
            return await self._until(wait_for, ears.on(self._kind, self._place.location))
        finally:
            await ears.close()

    async def _until(self, wait_for: WaitFor, ear: Ear) -> Met:
        clock = self._site.clock
        end = clock.monotonic() + wait_for.timeout_seconds
        uid: str | Missing = MISSING
        while True:
            live, verdict = await self._judged(wait_for, uid)
            found = None if live is None else self.met(wait_for, live)
            if found is not None:
                return found
            uid = text_at(live, "metadata", "uid") or uid
            left = end - clock.monotonic()
            if isinstance(verdict, Failed):
                raise WaitFailed(f"{self._place.title}: {verdict.reason}: {verdict.message}")
            if left <= 0:
                missing = verdict.missing if isinstance(verdict, Waiting) else ""
                raise WaitTimedOut(f"not within {wait_for.timeout_seconds:g} s: {missing}")
            await ear.changed_within(min(left, _ABSENT_S if live is None else _PRESENT_S))

    async def _judged(self, wait_for: WaitFor, uid: str | Missing) -> tuple[Json, Verdict]:
        try:
            live = await self.look()
        except (OperationRunning, RemoteUnavailable) as error:
            return None, Waiting(str(error))
        seen = NotThere(self._place.title) if live is None else Seen(live)
        return live, judge_observed(wait_for.wait, seen, uid)

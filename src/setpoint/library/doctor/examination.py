"""The checks of the doctor, side by side and each in limited time. START HERE: `examine`."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import field, replace
from typing import Final

from setpoint.app import AppSettings, is_shared_store
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.errors import SetpointError
from setpoint.library.doctor.findings import Finding, failure, failure_of, ok
from setpoint.library.doctor.probe import Answers, ProbeResult, probe_services
from setpoint.library.doctor.process_checks import SILENT_ADVICE, check_process
from setpoint.library.doctor.service_checks import check_clock, check_endpoints, check_google_credentials, check_reads
from setpoint.library.doctor.store_checks import check_disk, check_store, check_versions


@dataclass(slots=True)
class Examination:
    """The settings of one run. What several checks need of the services is read once."""

    settings: AppSettings
    # For each check; the probe has as long.
    seconds: float
    # The user that rights in a cluster are asked for; empty for that of the context.
    acting_as: str = ""
    _probe: "asyncio.Task[ProbeResult] | None" = field(default=None)

    async def probe(self) -> ProbeResult:
        """What one look at each declared kind showed."""
        if self._probe is None:
            # Half of the time, so that the checks can report what did not answer.
            self._probe = asyncio.create_task(probe_services(self.settings, self.seconds / 2))
        return await asyncio.shield(self._probe)

    def end(self) -> None:
        """Gives up what is still going on."""
        if self._probe is not None:
            self._probe.cancel()


async def _store(run: Examination) -> Sequence[Finding]:
    return await check_store(run.settings, run.seconds / 2)


async def _disk(run: Examination) -> Sequence[Finding]:
    return await check_disk(run.settings, run.seconds)


async def _endpoints(run: Examination) -> Sequence[Finding]:
    return await check_endpoints(run.settings, run.seconds / 2, await run.probe())


async def _clock(run: Examination) -> Sequence[Finding]:
    probe = await run.probe()
    answers = Answers(dict(probe.answers.skews))
    return await check_clock(replace(probe, answers=answers))


async def _credentials(run: Examination) -> Sequence[Finding]:
    found = await check_google_credentials(run.settings, await run.probe())
    if is_shared_store(run.settings):
        from setpoint.library.doctor.cluster_checks import check_identity

        return [*found, *await check_identity(run.settings, run.acting_as)]
    return found


async def _rights(run: Examination) -> Sequence[Finding]:
    found = check_reads(await run.probe())
    if is_shared_store(run.settings):
        from setpoint.library.doctor.cluster_checks import check_rights

        return [*found, *await check_rights(run.settings, run.acting_as)]
    return found


async def _definitions(run: Examination) -> Sequence[Finding]:
    if not is_shared_store(run.settings):
        return [ok("the store is not in a cluster")]
    from setpoint.library.doctor.cluster_checks import check_definitions

    return await check_definitions(run.settings, await run.probe())


async def _versions(run: Examination) -> Sequence[Finding]:
    found = await check_versions(run.settings, run.seconds)
    if is_shared_store(run.settings):
        from setpoint.library.doctor.cluster_checks import check_api_server

        return [*found, *await check_api_server(run.settings)]
    return found


async def _process(run: Examination) -> Sequence[Finding]:
    return await check_process(run.settings, await run.probe())


CHECKS: Final[Mapping[str, Callable[[Examination], Awaitable[Sequence[Finding]]]]] = {
    "store": _store,
    "disk": _disk,
    "clock": _clock,
    "credentials": _credentials,
    "endpoints": _endpoints,
    "rights": _rights,
    "crds": _definitions,
    "versions": _versions,
    "process": _process,
}


async def examine(run: Examination, only: Collection[str] = ()) -> Sequence[Finding]:
    """The findings of these checks, or of all, in their order. A check that takes too long, or breaks, is a finding."""
    names = [name for name in CHECKS if not only or name in only]
    try:
        found = await asyncio.gather(*(_within(run, name) for name in names))
    finally:
        run.end()
    return [replace(one, check=name) for name, some in zip(names, found, strict=True) for one in some]


async def _within(run: Examination, name: str) -> Sequence[Finding]:
    try:
        async with asyncio.timeout(run.seconds):
            return await CHECKS[name](run)
    except TimeoutError:
        seen = SILENT_ADVICE if name == "process" else "see the findings of endpoints"
        advice = f"{seen}; or give it more time by --timeout"
        return [failure(f"no answer within {run.seconds:g} s", "", advice)]
    except SetpointError as error:
        return [failure_of(error)]

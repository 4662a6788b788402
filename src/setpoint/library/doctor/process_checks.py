"""Checks of what reconciles a store: the running process, its queues, the leases, and the resources that fail."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from setpoint import __version__
from setpoint.app import AppSettings, StoreAccess, is_shared_store, open_engine, store_file
from setpoint.app.store_backup import store_holder
from setpoint.clients.admin_api import connect_admin, find_socket
from setpoint.core.conditions import ConditionType
from setpoint.core.unstructured import conditions_of
from setpoint.errors import RemoteUnavailable, SetpointError
from setpoint.library.doctor.findings import Finding, failure, failure_of, ok, warning
from setpoint.library.doctor.probe import ProbeResult
from setpoint.library.executors import has_controller

# Longer than a create takes that is not a long-running operation.
_STUCK_SECONDS: Final = 600.0
_MOST_NAMED: Final = 10
SILENT_ADVICE: Final = (
    "it is stopped, or busy: its log says more; let it go on, or end it by its id and start it again: nothing is lost"
)
_SAMPLE: Final = re.compile(r"^(\w+)(?:\{([^}]*)\})? (\S+)$", re.MULTILINE)


async def check_process(settings: AppSettings, probe: ProbeResult) -> Sequence[Finding]:
    """Whether a process reconciles, how it is, and what it does not get done."""
    if is_shared_store(settings):
        found = await _check_replicas(settings)
    else:
        file = store_file(settings)
        found = [] if file is None or not file.exists() else await _check_daemon(file)
    return [*found, *_failing(probe)] or [ok("no process reconciles this store: `setpoint run` does")]


async def _check_replicas(settings: AppSettings) -> list[Finding]:
    try:
        async with open_engine(settings, StoreAccess.READ) as engine:
            is_running = await has_controller(settings, engine)
    except SetpointError as error:
        return [failure_of(error, "leases")]
    if is_running:
        return [ok("a controller renews its lease")]
    advice = "look at its pods, or install it by `setpoint install`"
    return [warning("no controller renews a lease: nothing is reconciled", settings.store, advice)]


async def _check_daemon(file: Path) -> list[Finding]:
    try:
        client = await connect_admin(file)
    except SetpointError as error:
        return [failure_of(error, str(file))]
    if client is None:
        return _silent(file)
    try:
        process = await client.hello()
        metrics = await client.page("/metrics")
        health = await client.page("/healthz")
    except RemoteUnavailable as error:
        return [failure_of(error, str(file))]
    finally:
        await client.close()
    where = f"process {process.pid}"
    found = [ok(f"setpoint {process.version} is {process.phase}", where)]
    if process.version != __version__:
        advice = f"use setpoint {process.version} here, or restart the process with this one"
        found.append(warning(f"it is setpoint {process.version}, and this is {__version__}", where, advice))
    if health.strip() != "ok":
        found.append(failure(health.strip(), where, "its log says why; restart it"))
    return [*found, *_measured(metrics, where)]


def _silent(file: Path) -> list[Finding]:
    """Without an answer: a process that is stopped, or hangs, still holds the store."""
    holder = store_holder(file)
    if holder is None or find_socket(file) is None:
        return [ok("no process reconciles this store: `setpoint run` does")]
    return [failure("it holds the store, and does not answer", f"process {holder}", SILENT_ADVICE)]


def _measured(page: str, where: str) -> Iterator[Finding]:
    """What the metrics of a process say about its queues and services."""
    for name, labels, value in _samples(page):
        which = labels.get("controller") or labels.get("service", "")
        match name:
            case "workqueue_longest_running_processor_seconds" if value > _STUCK_SECONDS:
                text = f"a step of {which} has taken {value:.0f} s"
                yield warning(text, where, "its service may hang: see the findings of endpoints, and the log")
            case "setpoint_breaker_open" if value:
                yield warning(f"{which} is taken to be down", where, "it is tried again by itself")
            case "setpoint_source_last_failed_timestamp_seconds" if value > _last_good(page, labels.get("set", "")):
                text = f"the source of the set {labels.get('set', '')} is refused"
                yield warning(text, where, "`setpoint get sets` says why")
            case _:
                pass


def _last_good(page: str, name: str) -> float:
    wanted = "setpoint_source_last_good_timestamp_seconds"
    return max(
        (value for one, labels, value in _samples(page) if (one, labels.get("set")) == (wanted, name)), default=0
    )


def _samples(page: str) -> Iterator[tuple[str, Mapping[str, str], float]]:
    for name, labels, value in _SAMPLE.findall(page):
        yield name, dict(re.findall(r'(\w+)="([^"]*)"', labels)), float(value)


def _failing(probe: ProbeResult) -> Iterator[Finding]:
    """The resources that are not ready, and why."""
    found = 0
    for one in probe.resources:
        ready = next((it for it in conditions_of(one.document) if it.type == ConditionType.READY), None)
        if ready is None or ready.status == "True":
            continue
        found += 1
        if found <= _MOST_NAMED:
            advice = f"`setpoint explain {one.ref.kind}/{one.ref.name} -n {one.ref.namespace}` says more"
            yield warning(f"{one.ref} is not ready: {ready.reason}: {ready.message}", "", advice)
    if found > _MOST_NAMED:
        yield warning(f"{found - _MOST_NAMED} more resources are not ready", "", "`setpoint get` lists them")

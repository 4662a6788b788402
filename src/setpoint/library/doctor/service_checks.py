"""Checks of the services that declared kinds need: reachable, trusted, in time, with credentials that may read."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import isinf
from typing import Final

from setpoint.app import AppSettings
from setpoint.clients.google.client import GoogleAuth, GoogleSettings, settings_from
from setpoint.clients.http import HttpClient, HttpRequest
from setpoint.errors import RemoteError, RemoteRefused, RemoteUnavailable, UserError
from setpoint.library.doctor.findings import Finding, counted, failure, failure_of, ok, warning
from setpoint.library.doctor.probe import Answers, ProbeResult, origin_of
from setpoint.library.doctor.store_checks import in_thread

# Tokens are refused from five minutes on, and a lease lasts fifteen seconds.
_SKEW_WARNING: Final = 10.0
_SKEW_ERROR: Final = 240.0
_GOOGLE: Final = ".cnrm.cloud.google.com"
_SOON: Final = 60.0
# Of the kinds in one finding.
_NAMED: Final = 5


async def check_endpoints(settings: AppSettings, seconds: float, probe: ProbeResult) -> Sequence[Finding]:
    """Whether each service that was asked answers, and each that a variable names."""
    try:
        named = overridden_endpoints(settings.environment)
    except UserError as error:
        return [failure_of(error)]
    answers = await _ask(list(named), seconds)
    failures = {**answers.failures, **probe.answers.failures}
    found = list[Finding]()
    for origin in sorted({*named, *answers.skews, *probe.answers.skews, *failures}):
        variable = named.get(origin, "")
        where = f"{origin} ({variable})" if variable else origin
        if origin in failures:
            advice = f"correct {variable}, or start what it names" if variable else "check network, proxy and firewall"
            found.append(failure(str(failures[origin]), where, advice))
        else:
            found.append(
                ok("answers" if origin.startswith("http:") else "answers, and its certificate is trusted", where)
            )
    return found or [ok("no declared kind needs a service")]


async def check_clock(probe: ProbeResult) -> Sequence[Finding]:
    """How far the clocks of the services are from that of this machine."""
    skews = {origin: skew for origin, skew in probe.answers.skews.items() if skew is not None}
    if not skews:
        return [ok("no service was asked for the time")]
    origin, skew = max(skews.items(), key=lambda item: abs(item[1]))
    text = f"{abs(skew):.0f} s {'behind' if skew > 0 else 'ahead of'} the service"
    advice = "set this machine's clock, by NTP: tokens and leases are refused when it is too far off"
    if abs(skew) > _SKEW_ERROR:
        return [failure(text, origin, advice)]
    if abs(skew) > _SKEW_WARNING:
        return [warning(text, origin, advice)]
    return [ok(f"within {_SKEW_WARNING:g} s of {counted(len(skews), 'service')}")]


async def check_google_credentials(settings: AppSettings, probe: ProbeResult) -> Sequence[Finding]:
    """Whether Application Default Credentials give a token, of which account; only where a declared kind needs them."""
    try:
        auth = settings_from(settings.environment).auth
    except UserError as error:
        return [failure_of(error)]
    if auth is GoogleAuth.ANONYMOUS:
        return [ok("no credentials are sent to Google", "SETPOINT_GCP_AUTH=anonymous")]
    if not any(one.ref.group.endswith(_GOOGLE) for one in probe.resources):
        return [ok("no declared kind needs Google's credentials")]
    from setpoint.clients.google.application_default import check_credentials

    try:
        report = await in_thread(check_credentials)
    except RemoteError as error:
        what, _, advice = str(error).rpartition("; ")
        return [failure(what or advice, "Google", advice if what else "")]
    left = "" if isinf(report.seconds) else f", valid for {report.seconds / 60:.0f} min"
    text = f"a token of {report.account}{left}"
    if report.seconds < _SOON:
        return [warning(text, report.where, "renew it: it expires before the next step ends")]
    return [ok(text, report.where)]


def check_reads(probe: ProbeResult) -> Sequence[Finding]:
    """Whether what is declared may be read: one resource of each kind was looked at."""
    if probe.unread is not None:
        return [failure_of(probe.unread, "the store")]
    found, unseen = list[Finding](), list[str]()
    for ref, error in probe.looked_at:
        match error:
            case RemoteRefused():
                found.append(
                    failure(f"{ref}: {error}", ref.kind, "give the account the role that the page of the kind names")
                )
            case RemoteUnavailable():
                unseen.append(ref.kind)
            case RemoteError():
                found.append(warning(f"{ref}: {error}", ref.kind, f"`setpoint plan {ref.kind}/{ref.name}` says more"))
            case _:
                # Whatever else stops a step is about its manifest.
                found.append(ok(f"{ref.kind} can be read", str(ref)))
    return [*found, *_unseen(unseen)] or [ok("nothing is declared")]


def _unseen(kinds: Sequence[str]) -> Sequence[Finding]:
    """One finding for all kinds whose service does not answer: the check of endpoints has one for each service."""
    if not kinds:
        return []
    names = ", ".join(kinds[:_NAMED]) + (f" and {len(kinds) - _NAMED} more" if len(kinds) > _NAMED else "")
    text = f"{counted(len(kinds), 'kind')} could not be looked at: the service does not answer"
    return [warning(text, names, "see the findings of endpoints")]


def overridden_endpoints(environment: Mapping[str, str]) -> Mapping[str, str]:
    """The origins that variables name in place of Google's, with the variable."""
    settings, usual = settings_from(environment), GoogleSettings()
    chosen = [
        *(own for own, one in ((settings.sql, usual.sql), (settings.storage, usual.storage)) if own != one),
        *([settings.base] if settings.base else []),
        *settings.overrides.values(),
    ]
    return {origin_of(one): _variable_of(origin_of(one), environment) for one in chosen}


def _variable_of(origin: str, environment: Mapping[str, str]) -> str:
    host = origin.partition("://")[2]
    names = [
        name for name, value in environment.items() if host in value and ("ENDPOINT" in name or "EMULATOR" in name)
    ]
    return min(names, default="a variable")


async def _ask(origins: Sequence[str], seconds: float) -> Answers:
    """Asks each of them for its root: any answer will do."""
    answers = Answers()
    http = HttpClient(interceptor=answers)

    async def ask(origin: str) -> None:
        with suppress(RemoteError):
            await http.send(HttpRequest("GET", f"{origin}/", seconds=seconds))

    try:
        await asyncio.gather(*map(ask, origins))
    finally:
        await http.close()
    return answers

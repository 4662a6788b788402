"""Calls of Google's APIs before they are sent: paths, and the quota that each is charged to, with its initial rate.

Cloud SQL counts per project, user, region and minute: 500 gets, 500 lists, 180 changes. Cloud Storage names no quota
for reads and changes, but takes about one bucket creation or deletion per two seconds and project. Initial rates
are above these, since most runs are short and many quotas are raised; AIMD lowers them.
"""

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, assert_never
from urllib.parse import quote, urlencode, urlsplit

from setpoint.clients.ratelimit.limiter import QuotaKey
from setpoint.clients.ratelimit.token_bucket import AimdSettings

_ALWAYS: Final = "alt=json&prettyPrint=false"
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.~-]+").fullmatch


class GoogleService(StrEnum):
    """A service, by the path its methods start with."""

    SQL = "/sql/v1beta4"
    STORAGE = "/storage/v1"


@dataclass(frozen=True, slots=True)
class GoogleCall:
    """A method of a service: the parts of its path as they are meant, unquoted, and its query."""

    service: GoogleService
    parts: tuple[str, ...]
    query: Mapping[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The path with its query, quoted."""
        path = f"{self.service.value}/{'/'.join(map(_quoted, self.parts))}?"
        return f"{path}{urlencode(self.query)}&{_ALWAYS}" if self.query else path + _ALWAYS


def _quoted(part: str) -> str:
    # Most names need no quotes, and to see that is cheaper than to find none.
    return part if _PLAIN(part) else quote(part, safe="")


class GoogleQuota(StrEnum):
    """Calls that are counted together."""

    READS = "reads"
    WRITES = "writes"
    BUCKETS = "buckets"


INITIAL_RATES: Final = {
    (GoogleService.SQL, GoogleQuota.READS): AimdSettings(start=25, burst=100, ceiling=100, growth=0.5),
    (GoogleService.SQL, GoogleQuota.WRITES): AimdSettings(start=10, burst=50, ceiling=50, growth=0.2),
    (GoogleService.STORAGE, GoogleQuota.READS): AimdSettings(start=500, burst=500, ceiling=1000, growth=10),
    (GoogleService.STORAGE, GoogleQuota.WRITES): AimdSettings(start=100, burst=200, ceiling=500, growth=5),
    (GoogleService.STORAGE, GoogleQuota.BUCKETS): AimdSettings(start=10, burst=50, ceiling=50, growth=0.1),
}
# The header in which credentials name the project whose quota their calls use up.
QUOTA_PROJECT_HEADER: Final = "x-goog-user-project"
# Who stands in for Google has limits that we know nothing of, and mostly none.
EMULATOR_RATE: Final = AimdSettings(start=1000, burst=1000, ceiling=10_000, growth=100)


def quota_key(method: str, call: GoogleCall, quota_project: str | None = None) -> QuotaKey:
    """What a call is charged to: the project that the credentials name for that, or else the one it is about.

    Calls on a bucket do not say whose it is: they are charged to no project, together.
    """
    match call.service:
        case GoogleService.SQL:
            project = call.parts[1] if call.parts[0] == "projects" else ""
            return QuotaKey("sql", quota_project or project, _reads_or_writes(method))
        case GoogleService.STORAGE:
            owner, quota = call.query.get("project", ""), _storage_quota(method, call.parts)
            if quota is GoogleQuota.BUCKETS and owner:
                # Counted where the bucket is to be, whoever asks for it.
                return QuotaKey("storage", owner, quota)
            return QuotaKey("storage", quota_project or owner, quota)
        case _:
            assert_never(call.service)


def initial_rate(method: str, call: GoogleCall, address: str) -> AimdSettings:
    """How fast calls like this one start."""
    if not (urlsplit(address).hostname or "").endswith(".googleapis.com"):
        return EMULATOR_RATE
    return INITIAL_RATES[call.service, GoogleQuota(quota_key(method, call).quota)]


def default_caller_key(call: GoogleCall) -> Hashable:
    """What a call is about, as the caller when nobody says who calls: the instance, the operation or the bucket."""
    return call.parts[:4] if call.service is GoogleService.SQL else call.parts[:2]


def _storage_quota(method: str, parts: tuple[str, ...]) -> GoogleQuota:
    is_bucket = parts == ("b",) or len(parts) == 2
    return GoogleQuota.BUCKETS if is_bucket and method in ("POST", "DELETE") else _reads_or_writes(method)


def _reads_or_writes(method: str) -> GoogleQuota:
    return GoogleQuota.READS if method == "GET" else GoogleQuota.WRITES

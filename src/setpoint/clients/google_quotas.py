"""What Google counts together, and how fast we start: its own figures, which projects may have had changed.

Cloud SQL counts by project, user, region and minute: 500 gets, 500 lists, 180 changes. Cloud Storage names no quota for
reads and changes as such, but takes only about one new or deleted bucket in two seconds from each project. We start
above all that, since most runs are short and many quotas are higher, and let the answers bring us down.
"""

from collections.abc import Hashable
from enum import StrEnum
from typing import Final, assert_never
from urllib.parse import urlsplit

from setpoint.clients.budgets import Charge
from setpoint.clients.google_calls import Call, Service
from setpoint.clients.rate import Pace


class Quota(StrEnum):
    """Calls that are counted together."""

    READS = "reads"
    WRITES = "writes"
    BUCKETS = "buckets"


PACES: Final = {
    (Service.SQL, Quota.READS): Pace(start=25, burst=100, ceiling=100, growth=0.5),
    (Service.SQL, Quota.WRITES): Pace(start=10, burst=50, ceiling=50, growth=0.2),
    (Service.STORAGE, Quota.READS): Pace(start=500, burst=500, ceiling=1000, growth=10),
    (Service.STORAGE, Quota.WRITES): Pace(start=100, burst=200, ceiling=500, growth=5),
    (Service.STORAGE, Quota.BUCKETS): Pace(start=10, burst=50, ceiling=50, growth=0.1),
}
# The header in which credentials name the project whose quota their calls use up.
QUOTA_PROJECT: Final = "x-goog-user-project"
# Who stands in for Google has limits that we know nothing of, and mostly none.
ELSEWHERE: Final = Pace(start=1000, burst=1000, ceiling=10_000, growth=100)


def charge_for(method: str, call: Call, quota_project: str | None = None) -> Charge:
    """What a call is charged to: the project that the credentials name for that, or else the one it is about.

    Calls on a bucket do not say whose it is: they are charged to no project, together.
    """
    match call.service:
        case Service.SQL:
            project = call.parts[1] if call.parts[0] == "projects" else ""
            return Charge("sql", quota_project or project, _reads_or_writes(method))
        case Service.STORAGE:
            owner, quota = call.query.get("project", ""), _storage_quota(method, call.parts)
            if quota is Quota.BUCKETS and owner:
                # Counted where the bucket is to be, whoever asks for it.
                return Charge("storage", owner, quota)
            return Charge("storage", quota_project or owner, quota)
        case _:
            assert_never(call.service)


def pace_for(method: str, call: Call, address: str) -> Pace:
    """How fast calls like this one start."""
    if not (urlsplit(address).hostname or "").endswith(".googleapis.com"):
        return ELSEWHERE
    return PACES[call.service, Quota(charge_for(method, call).quota)]


def subject_of(call: Call) -> Hashable:
    """What a call is about, as the caller when nobody says who calls: the instance, the operation or the bucket."""
    return call.parts[:4] if call.service is Service.SQL else call.parts[:2]


def _storage_quota(method: str, parts: tuple[str, ...]) -> Quota:
    is_bucket = parts == ("b",) or len(parts) == 2
    return Quota.BUCKETS if is_bucket and method in ("POST", "DELETE") else _reads_or_writes(method)


def _reads_or_writes(method: str) -> Quota:
    return Quota.READS if method == "GET" else Quota.WRITES

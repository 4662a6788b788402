"""Calls of Google's APIs before they are sent: paths, and the quota that each is charged to, with its initial rate.

Cloud SQL counts per project, user, region and minute: 500 gets, 500 lists, 180 changes. Cloud Storage names no quota
for reads and changes, but takes about one bucket creation or deletion per two seconds and project. Initial rates
are above these, since most runs are short and many quotas are raised; AIMD lowers them.
"""

from collections.abc import Hashable, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Final, NamedTuple, assert_never
from urllib.parse import urlsplit

from setpoint.clients.ratelimit.limiter import QuotaKey
from setpoint.clients.ratelimit.token_bucket import AimdSettings
from setpoint.clients.url_path import encode_query, join_path, quote_object_name
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.errors import ProjectRefused

_QUERY: Final = "alt=json&prettyPrint=false"


class GoogleService(StrEnum):
    """A service, by the path its methods start with."""

    SQL = "/sql/v1beta4"
    STORAGE = "/storage/v1"


class GoogleApi(NamedTuple):
    """An API by its host and the path that its methods start with, such as `/v1` or `/compute/v1`."""

    host: str
    prefix: str


@dataclass(frozen=True, slots=True)
class GoogleCall:
    """A method of a service: the segments of its path, unquoted, its query, and the object of a bucket, if any."""

    service: GoogleService | GoogleApi
    parts: tuple[str, ...]
    query: Mapping[str, str] = field(default_factory=dict)
    # The last segment: the only one that may have slashes and dots of any kind in it.
    object_name: str | None = None
    # A custom method, which follows the path after a colon.
    method: str = ""

    @property
    def path(self) -> str:
        """The path with its query, quoted; ManifestInvalid for a part that would lead to another path."""
        prefix = self.service.prefix if isinstance(self.service, GoogleApi) else self.service
        path = prefix + join_path(self.parts)
        if self.object_name is not None:
            path = f"{path}/{quote_object_name(self.object_name)}"
        if self.method:
            path = f"{path}:{self.method}"
        return f"{path}?{encode_query(self.query)}&{_QUERY}" if self.query else f"{path}?{_QUERY}"


# What to do about a project that is not the tenant's.
PROJECT_ADVICE: Final = (
    "leave it out; or an administrator sets the project of the namespace by the annotation "
    "cnrm.cloud.google.com/project-id of its Namespace, or runs setpoint with --tenancy single, where all namespaces "
    "belong to one tenant"
)


def recorded_elsewhere(project: str, own: str) -> ProjectRefused:
    """The error for an object on record, or an operation, in another project than the tenant's `own`."""
    return ProjectRefused(
        f"what is on record is in the project {project!r}, and resources of this namespace are in {own!r}: nothing is "
        "sent there. To let go of it, annotate the resource with cnrm.cloud.google.com/deletion-policy: abandon, and "
        "delete it; or an administrator changes the annotation cnrm.cloud.google.com/project-id of the Namespace, or "
        "runs setpoint with --tenancy single, where all namespaces belong to one tenant"
    )


def project_in(call: GoogleCall) -> str | None:
    """The project that a call names; None for a call on a bucket or an object in it, which are named without one."""
    if isinstance(call.service, GoogleApi):
        return call.parts[1] if call.parts[:1] == ("projects",) and len(call.parts) > 1 else ""
    if call.service is GoogleService.STORAGE and call.parts[:1] == ("b",) and len(call.parts) > 1:
        return None
    if call.service is GoogleService.STORAGE:
        return call.query.get("project", "")
    return call.parts[1] if call.parts[:1] == ("projects",) and len(call.parts) > 1 else ""


class GoogleQuota(StrEnum):
    """Calls that count against the same quota."""

    READS = "reads"
    WRITES = "writes"
    BUCKETS = "buckets"


_STORAGE: Final = GoogleService.STORAGE
_READS: Final = GoogleQuota.READS

INITIAL_RATES: Final = {
    (GoogleService.SQL, GoogleQuota.READS): AimdSettings(start=25, burst=100, ceiling=100, growth=0.5),
    (GoogleService.SQL, GoogleQuota.WRITES): AimdSettings(start=10, burst=50, ceiling=50, growth=0.2),
    (GoogleService.STORAGE, GoogleQuota.READS): AimdSettings(start=500, burst=500, ceiling=1000, growth=10),
    (GoogleService.STORAGE, GoogleQuota.WRITES): AimdSettings(start=100, burst=200, ceiling=500, growth=5),
    (GoogleService.STORAGE, GoogleQuota.BUCKETS): AimdSettings(start=10, burst=50, ceiling=50, growth=0.1),
}
# Of an API whose quotas are not known here: low enough for most, and AIMD finds what it allows.
_API_RATES: Final = {
    GoogleQuota.READS: AimdSettings(start=20, burst=100, ceiling=200, growth=1),
    GoogleQuota.WRITES: AimdSettings(start=5, burst=30, ceiling=50, growth=0.5),
}
# The header in which credentials name the project that calls are charged to.
QUOTA_PROJECT_HEADER: Final = "x-goog-user-project"
# Emulators have limits that are unknown here, and mostly none.
EMULATOR_RATE: Final = AimdSettings(start=1000, burst=1000, ceiling=10_000, growth=100)


def quota_key(method: str, call: GoogleCall, quota_project: str | None = None) -> QuotaKey:
    """The quota that a call is charged to: of the project that the credentials name, or else of the one in the call.

    Calls on a bucket do not name its project: they share one budget without a project.
    """
    if call.service is _STORAGE and method == "GET":
        # Before the patterns below: buckets are many, and are observed again and again.
        return QuotaKey("storage", quota_project or call.query.get("project", ""), _READS)
    match call.service:
        case GoogleApi(host=host):
            return QuotaKey(host.partition(".")[0], quota_project or project_in(call) or "", _reads_or_writes(method))
        case GoogleService.SQL:
            project = call.parts[1] if call.parts[0] == "projects" else ""
            return QuotaKey("sql", quota_project or project, _reads_or_writes(method))
        case GoogleService.STORAGE:
            owner, quota = call.query.get("project", ""), _storage_quota(method, call.parts)
            if quota is GoogleQuota.BUCKETS and owner:
                # Charged to the project of the bucket, whatever the credentials name.
                return QuotaKey("storage", owner, quota)
            return QuotaKey("storage", quota_project or owner, quota)
        case _:
            assert_never(call.service)


def initial_rate(method: str, call: GoogleCall, address: str) -> AimdSettings:
    """The rate that the budget of the call starts with, and its bounds."""
    if not (urlsplit(address).hostname or "").endswith(".googleapis.com"):
        return EMULATOR_RATE
    if isinstance(call.service, GoogleApi):
        return _API_RATES[_reads_or_writes(method)]
    return INITIAL_RATES[call.service, GoogleQuota(quota_key(method, call).quota)]


def default_caller_key(call: GoogleCall) -> Hashable:
    """The caller of a call that is not made on behalf of a resource: its instance, operation or bucket."""
    return call.parts[:2] if call.service is GoogleService.STORAGE else call.parts[:4]


def _storage_quota(method: str, parts: tuple[str, ...]) -> GoogleQuota:
    is_bucket = parts == ("b",) or len(parts) == 2
    return GoogleQuota.BUCKETS if is_bucket and method in ("POST", "DELETE") else _reads_or_writes(method)


def _reads_or_writes(method: str) -> GoogleQuota:
    return GoogleQuota.READS if method == "GET" else GoogleQuota.WRITES

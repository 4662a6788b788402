"""Settings of a process, and how its clients are wired."""

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import Final

from setpoint.clients.http import HttpInterceptor
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.management import CookieLocation
from setpoint.engine.ports import Clock, Store, SystemClock
from setpoint.engine.resource import DEFAULT_NAMESPACE
from setpoint.engine.tenancy.tenants import TenancyMode
from setpoint.errors import ManifestInvalid, UserError

DEFAULT_STORE = "sqlite:///.setpoint/state.db"
STORE_VARIABLE: Final = "SETPOINT_STORE"
COOKIE_LOCATION_VARIABLE: Final = "SETPOINT_COOKIE_LOCATION"
# How far the tenants of a store in a cluster are kept apart, where no option says so.
TENANCY_VARIABLE: Final = "SETPOINT_TENANCY"
# How much of the history of each resource is kept.
HISTORY_ENTRIES_VARIABLE: Final = "SETPOINT_HISTORY_ENTRIES"
HISTORY_DAYS_VARIABLE: Final = "SETPOINT_HISTORY_DAYS"


class StoreAccess(StrEnum):
    """What a command needs the store for."""

    READ = "read"
    WRITE = "write"
    # To write for as long as the process runs.
    RUN = "run"
    # To plan as a controller does: on behalf of tenants, and without a write.
    PREVIEW = "preview"


def _ignore_warning(_text: str) -> None:
    """For callers without a terminal."""


@dataclass(frozen=True, slots=True)
class AppSettings:
    """The settings of the process, from options and the environment."""

    store: str = DEFAULT_STORE
    cookies: CookieLocation = CookieLocation.STATUS
    environment: Mapping[str, str] = field(default_factory=dict)
    clock: Clock = field(default_factory=SystemClock)
    # The only kinds that are reconciled; empty for all of them.
    kinds: Sequence[str] = ()
    # For a store in a cluster: where servers of kubeconfigs in Secrets may be, and where not; see `address_policy`.
    allowed_addresses: Sequence[str] = ()
    denied_addresses: Sequence[str] = ()
    # Takes warnings for the operator.
    warn: Callable[[str], None] = _ignore_warning
    # How far the tenants of a store in a cluster are kept apart; without effect on other stores.
    tenancy: TenancyMode = TenancyMode.STRICT


def tenancy_from(environment: Mapping[str, str], word: str = "") -> TenancyMode:
    """By `word`, or by the environment where it is empty; UserError for an unknown word."""
    word = word or environment.get(TENANCY_VARIABLE) or TenancyMode.STRICT.value
    if word not in tuple(TenancyMode):
        raise UserError(f"{TENANCY_VARIABLE} is {word!r}: write {' or '.join(TenancyMode)}")
    return TenancyMode(word)


def history_limits(environment: Mapping[str, str]) -> tuple[int, int]:
    """How many entries of the history of a resource are kept, and for how many days; UserError for no such number."""
    return (
        _number_in(environment, HISTORY_ENTRIES_VARIABLE, 200, (1, 10_000)),
        _number_in(environment, HISTORY_DAYS_VARIABLE, 30, (1, 3_650)),
    )


def _number_in(environment: Mapping[str, str], name: str, default: int, limits: tuple[int, int]) -> int:
    text, (least, most) = environment.get(name, "").strip(), limits
    if not text:
        return default
    if not (text.isascii() and text.isdecimal() and least <= int(text[:9]) <= most):
        raise UserError(f"{name} is {text[:40]!r}: write a number from {least} to {most:,}")
    return int(text)


def default_namespace(settings: AppSettings) -> str:
    """The namespace of what names none: that of the store's address, if it has one."""
    _, _, namespace = settings.store.partition("?namespace=") if is_shared_store(settings) else ("", "", "")
    return namespace or DEFAULT_NAMESPACE


def is_shared_store(settings: AppSettings) -> bool:
    """Whether the store is in a cluster: other clients write to it, and a controller reconciles."""
    return settings.store.startswith("kubernetes")


def store_file(settings: AppSettings) -> Path | None:
    """The absolute path of the store's file; None for a store without one."""
    path = store_path(settings.store)
    return None if path is None else path.absolute().resolve()


def store_path(url: str) -> Path | None:
    """The path that the URL of a store names; None for a store without a file."""
    if url == "memory:" or url.startswith("kubernetes"):
        return None
    scheme, colon, rest = url.partition("://")
    if scheme != "sqlite" or not colon or not rest.startswith("/") or rest == "/":
        raise ManifestInvalid(f"the store {url!r} is none we know: write sqlite:///path/to/state.db, or kubernetes")
    return Path(rest.removeprefix("/"))


# --- Clients ----------------------------------------------------------------------------------------------------------

# The clients by name: Google's, and that of a store in a cluster.
GOOGLE: Final = "google"
STORE: Final = "store"
# Clients that are not opened here: a plugin's own.
OTHER_CLIENTS: Final = "elsewhere"
# Before the name of a service that a kind of a plug-in calls.
SERVICE_PREFIX: Final = "service:"


def _no_interceptor(_client: str) -> HttpInterceptor | None:
    """Requests pass unchanged."""
    return None


@dataclass(frozen=True, slots=True)
class ClientWiring:
    """How clients are wired: the interceptor of each by name, or a recorded store in place of all of them."""

    interceptor: Callable[[str], HttpInterceptor | None] = _no_interceptor
    # The store of a recorded world; then no service is reached at all.
    recorded: Store | None = None
    # The default cluster, if it is known.
    cluster: str = ""
    # Why clusters could not be opened, by their IDs: filled where the world is recorded.
    unopened: MutableMapping[str, str] | None = None
    # The environment that kinds and owners see, in place of the process' own.
    environment: Mapping[str, str] | None = None
    # Of a recorded world with tenants: how far they were kept apart.
    recorded_tenancy: TenancyMode | None = None
    # A store of this process that is open already, and stays open.
    opened: Store | None = None


DIRECT_WIRING: Final = ClientWiring()

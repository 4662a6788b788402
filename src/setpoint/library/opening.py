"""Opens sessions: for programs with an event loop, and for those without one. START HERE: `open`."""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from setpoint.app import COOKIE_LOCATION_VARIABLE, DEFAULT_STORE, STORE_VARIABLE, AppSettings, tenancy_from
from setpoint.engine.management import CookieLocation
from setpoint.errors import UserError
from setpoint.library.session import Session
from setpoint.library.sync_session import SyncSession

_log: Final = logging.getLogger(__name__)


def open(  # noqa: A001  # read as setpoint.open
    store: str | os.PathLike[str] | None = None,
    *,
    namespace: str | None = None,
    environment: Mapping[str, str] | None = None,
    cookies: str | None = None,
    kinds: Sequence[str] = (),
    warn: Callable[[str], None] | None = None,
) -> Session:
    """A session on a store: `async with setpoint.open("sqlite:///state.db") as session:`.

    `store` is a URL as `--store` has it (`sqlite:///path`, `memory:`, `kubernetes`), or the path of a file; without
    one, that of SETPOINT_STORE, else the default of the command line. `environment` stands for the variables of the
    process.
    `namespace` is that of manifests and KIND/NAME that name none. `cookies` is `status` or `annotation`. `kinds` are
    the only ones that `run` reconciles. `warn` gets warnings for the operator, which are logged otherwise.

    Nothing is opened before it is needed: a store in a file is locked from the first call that writes.
    """
    settings = settings_for(store, environment=environment, cookies=cookies, kinds=kinds, warn=warn)
    return Session(settings, namespace)


def open_sync(
    store: str | os.PathLike[str] | None = None,
    *,
    namespace: str | None = None,
    environment: Mapping[str, str] | None = None,
    cookies: str | None = None,
    kinds: Sequence[str] = (),
    warn: Callable[[str], None] | None = None,
) -> SyncSession:
    """The same for programs without an event loop, and for notebooks: `with setpoint.open_sync(…) as session:`."""
    settings = settings_for(store, environment=environment, cookies=cookies, kinds=kinds, warn=warn)
    return SyncSession(settings, namespace)


def settings_for(
    store: str | os.PathLike[str] | None,
    *,
    environment: Mapping[str, str] | None,
    cookies: str | None,
    kinds: Sequence[str],
    warn: Callable[[str], None] | None,
) -> AppSettings:
    """The settings of a session; UserError for an unknown location of cookies, or an unknown tenancy."""
    variables = dict(os.environ if environment is None else environment)
    if store is None:
        store = variables.get(STORE_VARIABLE) or DEFAULT_STORE
    elif not isinstance(store, str):
        store = f"sqlite:///{os.fspath(store)}"
    place = cookies or variables.get(COOKIE_LOCATION_VARIABLE) or CookieLocation.STATUS.value
    if place not in tuple(CookieLocation):
        raise UserError(f"cookies are kept in {' or '.join(CookieLocation)}, not in {place!r}: write one of them")
    return AppSettings(
        store,
        CookieLocation(place),
        environment=variables,
        kinds=tuple(kinds),
        warn=_log_warning if warn is None else warn,
        tenancy=tenancy_from(variables),
    )


def _log_warning(text: str) -> None:
    _log.warning("%s", text)

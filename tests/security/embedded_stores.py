"""Embedded stores with every kind of the application, and processes that are killed while they write to one."""

import os
import signal
from collections.abc import Callable, Coroutine
from itertools import count
from pathlib import Path
from typing import Any

from setpoint.core.secret_fields import SecretFields
from setpoint.engine.kind import secret_fields_of
from setpoint.engine.resource import ResourceRef
from setpoint.stores.sqlite.store import OpenMode, SqliteStore, open_sqlite
from tests.engine.clock import FakeClock
from tests.security.secret_places import resource_types

SECRETS = secret_fields_of(resource_types())
USER = ResourceRef("sql.cnrm.cloud.google.com", "SQLUser", "default", "app")
PASSWORD = "correct horse battery staple"
OTHER = "Sesame, öffne dich"


def opened(
    path: Path, mode: OpenMode = OpenMode.WRITE, secrets: SecretFields = SECRETS
) -> Coroutine[Any, Any, SqliteStore]:
    numbers = count(1)
    return open_sqlite(path, FakeClock(), lambda: f"uid-{next(numbers)}", mode, secrets=secrets)


def in_child(work: Callable[[], None]) -> None:
    """Runs a function in a forked process, which kills itself."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(9)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), status


def kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)

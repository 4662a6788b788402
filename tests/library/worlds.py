"""A local cloud and sessions on it, in one event loop."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import setpoint
from setpoint.localcloud.server import LocalCloud

PROJECT: Final = {"cnrm.cloud.google.com/project-id": "some-project"}
WEBSITE: Final = {"website": {"mainPageSuffix": "index.html"}}
# Longer than any test takes, on a machine that is busy with others.
DEADLINE: Final = 120.0


def bucket(name: str = "logs", **spec: Any) -> dict[str, Any]:
    """The manifest of a bucket."""
    return {
        "apiVersion": "storage.cnrm.cloud.google.com/v1beta1",
        "kind": "StorageBucket",
        "metadata": {"name": name, "annotations": dict(PROJECT)},
        "spec": {"location": "EU", **spec},
    }


def database(name: str, instance: str) -> dict[str, Any]:
    """The manifest of a database in an instance that is declared."""
    return {
        "apiVersion": "sql.cnrm.cloud.google.com/v1beta1",
        "kind": "SQLDatabase",
        "metadata": {"name": name, "annotations": dict(PROJECT)},
        "spec": {"charset": "UTF8", "instanceRef": {"name": instance}},
    }


@dataclass(slots=True)
class World:
    """A local cloud, and the sessions that lead to it."""

    cloud: LocalCloud
    store: str = "memory:"
    warnings: list[str] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """The variables of the program."""
        return environment_for(self.cloud.url)

    def open(self, **options: Any) -> setpoint.Session:
        """A session on the store of the world."""
        options = {"store": self.store, "environment": self.environment, "warn": self.warnings.append, **options}
        return setpoint.open(**options)

    @property
    def buckets(self) -> list[str]:
        """The names of the buckets in the cloud."""
        body: Any = self.cloud.call("GET", "/storage/v1/b?project=some-project").body
        return sorted(one["name"] for one in body.get("items", ()))

    def drift(self, name: str = "logs") -> None:
        """Another writer changes a bucket."""
        self.cloud.edit(f"/b/{name}", WEBSITE)

    @property
    def writes(self) -> int:
        """How many requests wrote to the cloud so far."""
        found: int = self.cloud.journal.counts()["writes"]
        return found


def environment_for(url: str) -> dict[str, str]:
    """Variables that lead to the cloud at `url`."""
    variables = {"STORAGE_EMULATOR_HOST": url, "CLOUDSDK_API_ENDPOINT_OVERRIDES_SQL": f"{url}/"}
    return {"SETPOINT_GCP_AUTH": "anonymous", **variables}


@asynccontextmanager
async def world(folder: Path | None = None) -> AsyncIterator[World]:
    """A new cloud; the store is a file in `folder`, or in memory."""
    async with asyncio.timeout(DEADLINE), LocalCloud() as cloud:
        yield World(cloud, "memory:" if folder is None else f"sqlite:///{folder}/state.db")


async def until(condition: Callable[[], object]) -> None:
    """Returns when the condition holds; the deadline of the world ends a wait in vain."""
    while not condition():
        await asyncio.sleep(0.01)

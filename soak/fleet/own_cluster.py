"""An API server of the soak's own, which knows our kinds."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from setpoint.app import definitions
from setpoint.core.values.json_types import JsonObject
from soak.fleet.scenario import Place, Print
from tests.cluster.access import Access
from tests.cluster.assets import Missing, find
from tests.cluster.polling import until
from tests.cluster.progress import Progress
from tests.cluster.server import Cluster, Settings

_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@contextmanager
def own_cluster(folder: Path, report: Print) -> Iterator[Place]:
    """A namespace there; it ends with the block. SystemExit when there are no programs for it."""
    assets = find(os.environ, Progress(report))
    if isinstance(assets, Missing):
        raise SystemExit(f"no API server: {assets.reason}")
    server = folder / "cluster"
    server.mkdir(exist_ok=True)
    with Cluster(assets, server, Settings()) as cluster:
        _install(cluster.access)
        yield Place(cluster.access, cluster.access.new_namespace(), folder)


def _install(access: Access) -> None:
    """Our kinds are served when this returns."""
    found = list(definitions().values())
    for one in found:
        assert access.call("POST", _DEFINITIONS, one).status == HTTPStatus.CREATED
    until(lambda: all(access.call("GET", _collection(one)).status == HTTPStatus.OK for one in found))


def _collection(definition: JsonObject) -> str:
    spec: Any = definition["spec"]
    return f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"

"""Fixtures for KubernetesObjects on a real API server."""

from collections.abc import Iterator

import pytest

from tests.cluster.access import Access
from tests.cluster.objects.object_harness import Site, environment


@pytest.fixture
def site(api_server: Access, namespace: str) -> Iterator[Site]:
    """A namespace, and a process that keeps objects in it."""
    made = Site(api_server, namespace, environment(api_server.kubeconfig))
    yield made
    made.close()

"""Fixtures for KubernetesObjects on a real API server."""

from collections.abc import Iterator

import pytest

from tests.cluster.access import Access
from tests.cluster.objects.object_harness import ObjectHarness, environment


@pytest.fixture
def harness(api_server: Access, namespace: str) -> Iterator[ObjectHarness]:
    """An engine that reconciles KubernetesObjects in a namespace of its own."""
    made = ObjectHarness(api_server, namespace, environment(api_server.kubeconfig))
    yield made
    made.close()

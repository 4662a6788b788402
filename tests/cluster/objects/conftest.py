"""Fixtures for KubernetesObjects on a real API server."""

from collections.abc import Iterator

import pytest

from tests.cluster.access import Access
from tests.cluster.objects.object_harness import ObjectHarness, environment
from tests.cluster.objects.sent_requests import SentRequests


@pytest.fixture
def requests() -> SentRequests:
    """The requests of the harness."""
    return SentRequests()


@pytest.fixture
def harness(api_server: Access, namespace: str, requests: SentRequests) -> Iterator[ObjectHarness]:
    """An engine that reconciles KubernetesObjects in a namespace of its own."""
    made = ObjectHarness(api_server, namespace, environment(api_server.kubeconfig))
    made.clusters.interceptor = lambda _cluster: requests
    yield made
    made.close()

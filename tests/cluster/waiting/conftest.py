"""A namespace with fake controllers and a CustomResourceDefinition of a DNS service."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.access import Access
from tests.cluster.polling import until
from tests.cluster.waiting.manifests import definition
from tests.cluster.waiting.wait_harness import WaitHarness

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_GROUP = "names.example.com"


@pytest.fixture(scope="session")
def dns(api_server: Access) -> Access:
    """The shared API server, which serves DNSRecord."""
    serve_records(api_server)
    return api_server


def serve_records(access: Access) -> None:
    """Defines DNSRecord, and returns when it is served."""
    made = access.call("POST", _DEFINITIONS, definition(_GROUP))
    assert made.status in (201, 409), made
    until(lambda: access.call("GET", f"/apis/{_GROUP}/v1/dnsrecords").status == 200)


@pytest.fixture
def harness(dns: Access, namespace: str, tmp_path: Path) -> Iterator[WaitHarness]:
    """A namespace of the test's own, and a SQLite store."""
    with WaitHarness(dns, namespace, tmp_path) as harness:
        yield harness


@pytest.fixture(scope="module")
def common(dns: Access, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WaitHarness]:
    """A namespace and a store that the tests of a module share."""
    namespace = dns.new_namespace()
    with WaitHarness(dns, namespace, tmp_path_factory.mktemp("common")) as harness:
        yield harness

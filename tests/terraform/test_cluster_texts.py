"""The attribute `cluster`: any text in any of its members is used, or is an error that names it."""

import asyncio
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from setpoint.clients.kubernetes.requests import Endpoint
from setpoint.errors import SetpointError
from setpoint.terraform.connections.clusters import CLUSTER, ClusterConnections, validate_cluster
from setpoint.terraform.framework.diagnostics import DiagnosticsError

pytestmark = pytest.mark.laws

# No server listens there.
CLOSED = "127.0.0.1:1"
TEXTS = st.text(max_size=12) | st.text("0123456789abc.:/@[]%?#\x00\n ", max_size=12)
ADDRESSES = TEXTS.map(lambda text: f"https://{CLOSED}{text}") | st.just(f"http://{CLOSED}")
MEMBERS: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("cluster_ca_certificate", "server_name", "token"), TEXTS),
    "insecure": st.booleans(),
    "proxy_url": TEXTS.map(lambda text: f"http://{CLOSED}{text}"),
}
PEM = st.builds("-----BEGIN {0}-----\n{1}\n-----END {0}-----\n".format, st.sampled_from(["CERTIFICATE", "X"]), TEXTS)
PAIR = st.fixed_dictionaries({"client_certificate": PEM | TEXTS, "client_key": PEM | TEXTS})
COMMAND = st.fixed_dictionaries(
    {
        "api_version": st.none() | TEXTS,
        "command": TEXTS.map(lambda text: f"/no/such/command{text}"),
        "args": st.none() | st.lists(TEXTS, max_size=2).map(tuple),
        "env": st.none() | st.dictionaries(TEXTS, TEXTS, max_size=2),
    }
)
HOSTS = st.builds(
    lambda host, *more: {"host": host, **{name: one for some in more for name, one in some.items()}},
    ADDRESSES,
    st.fixed_dictionaries({}, optional=MEMBERS),
    st.just({}) | PAIR,
    st.just({}) | COMMAND.map(lambda one: {"exec": one}),
)
FILES = st.fixed_dictionaries(
    {"config_path": TEXTS.map(lambda text: f"/no/such/file{text}")}, optional={"context": TEXTS}
)
CONFIGS = st.fixed_dictionaries({"kubeconfig": TEXTS}, optional={"context": TEXTS})


async def use(cluster: Any) -> None:
    connections = ClusterConnections({"KUBECONFIG": "/no/such/file"})
    whole = {**dict.fromkeys(CLUSTER.type.attributes), **cluster}  # type: ignore[union-attr]
    validate_cluster(whole)
    client = connections.session(whole).client
    try:
        await client.get(Endpoint("", "v1", "namespaces", None, "default"))
    finally:
        await client.close()


@given(HOSTS | FILES | CONFIGS)
@example({"host": "https://127.0.0.1:99999"})
@example({"host": "https://127.0.0.1:port"})
@example({"host": "https://[127.0.0.1"})
@example({"host": f"https://{CLOSED}", "proxy_url": "http://127.0.0.1:99999"})
def test_any_text_of_a_cluster_is_used_or_named_in_an_error(cluster: Any) -> None:
    with pytest.raises((SetpointError, DiagnosticsError)):
        asyncio.run(use(cluster))


@given(TEXTS)
@example("127.0.0.1:99999")
@example("https://")
@example("ftp://127.0.0.1")
def test_any_host_is_an_address_or_a_clear_error(host: str) -> None:
    cluster = {**dict.fromkeys(CLUSTER.type.attributes), "host": host}  # type: ignore[union-attr]
    details = [""]
    try:
        ClusterConnections({"KUBECONFIG": "/no/such/file"}).session(cluster)
    except DiagnosticsError as refused:
        details = [one.detail for one in refused.diagnostics]
    except SetpointError as error:
        details = [str(error)]

    assert host == "" or details == [""] or details[0].startswith("cluster: host is ")

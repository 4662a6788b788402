"""A tenant of a real API server who hands over kubeconfigs, and servers that the tenant has setpoint call."""

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web

from setpoint.app import AppSettings, StoreAccess, definitions, open_app
from setpoint.engine.ports import Store
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.outcomes import StepOutcome
from setpoint.engine.step.reconcile import step
from setpoint.kinds.kubernetes_object.spec import GROUP, NAME
from tests.clients.loopback_servers import http_server
from tests.cluster.access import Access
from tests.cluster.certificates import Authority
from tests.cluster.polling import until

TENANT = "alice"
RBAC = "rbac.authorization.k8s.io"
KINDS = f"/apis/{GROUP}/v1alpha1/namespaces/{{}}/kubernetesobjects"


@dataclass
class TenantsOfCluster:
    """A namespace in which a tenant may do what the role `edit` gives, and the engine of an installation there."""

    access: Access
    namespace: str
    environment: dict[str, str]

    @staticmethod
    def of(access: Access, namespace: str) -> "TenantsOfCluster":
        definition = definitions()[GROUP, NAME]
        made = access.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        assert made.status in (201, 409), made
        until(lambda: access.call("GET", KINDS.format(namespace)).status == 200)
        rules = [
            {"apiGroups": [GROUP], "resources": ["kubernetesobjects"], "verbs": ["*"]},
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["*"]},
        ]
        subjects = [{"apiGroup": RBAC, "kind": "User", "name": TENANT}]
        reference = {"apiGroup": RBAC, "kind": "Role", "name": "edit"}
        path = f"/apis/{RBAC}/v1/namespaces/{namespace}"
        for plural, body in (
            ("roles", {"rules": rules}),
            ("rolebindings", {"roleRef": reference, "subjects": subjects}),
        ):
            answer = access.call("POST", f"{path}/{plural}", {"metadata": {"name": "edit"}, **body})
            assert answer.status == 201, answer
        access.until_permitted(TENANT, "create", f"kubernetesobjects.{GROUP}", namespace)
        environment = {"KUBECONFIG": str(access.kubeconfig), "SETPOINT_GCP_AUTH": "anonymous"}
        return TenantsOfCluster(access, namespace, environment)

    def declare(self, name: str, kubeconfig: str) -> ResourceRef:
        """The tenant applies a Secret with the kubeconfig, and a KubernetesObject in the cluster that it names."""
        secret = {"metadata": {"name": name}, "stringData": {"kubeconfig": kubeconfig}}
        made = self.access.call("POST", f"/api/v1/namespaces/{self.namespace}/secrets", secret, user=TENANT)
        assert made.status == 201, made
        reference = {"valueFrom": {"secretKeyRef": {"name": name, "key": "kubeconfig"}}}
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}}
        resource = {
            "apiVersion": f"{GROUP}/v1alpha1",
            "kind": NAME,
            "metadata": {"name": name},
            "spec": {"cluster": {"kubeconfig": reference}, "manifest": manifest},
        }
        made = self.access.call("POST", KINDS.format(self.namespace), resource, user=TENANT)
        assert made.status == 201, made
        return ResourceRef(GROUP, NAME, self.namespace, name)

    @asynccontextmanager
    async def operator(self, **environment: str) -> AsyncIterator["Operator"]:
        """The engine of the operator, on the store in the cluster."""
        settings = AppSettings("kubernetes", environment={**self.environment, **environment})
        async with open_app(settings, StoreAccess.WRITE) as opened:
            yield Operator(opened.engine.store, lambda ref: step(ref, opened.engine))

    def shown(self, ref: ResourceRef) -> str:
        """All that the tenant can read of the resource: itself, its status, and the events of the namespace."""
        resource = self.access.call("GET", f"{KINDS.format(self.namespace)}/{ref.name}").body
        events = self.access.call("GET", f"/api/v1/namespaces/{self.namespace}/events").body
        return json.dumps([resource.get("status"), events])


@dataclass(frozen=True)
class Operator:
    """The store of the operator, and its steps."""

    store: Store
    step: Any

    async def outcome(self, ref: ResourceRef) -> StepOutcome:
        """The outcome of one step."""
        found: StepOutcome = await self.step(ref)
        return found


@dataclass
class TlsServers:
    """Servers on the loopback interface with certificates of one authority, which the tenant knows."""

    folder: Path
    authority: Authority = field(default_factory=Authority)
    # The paths that were requested.
    asked: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def answering(self, *names: str, **answer: Any) -> AsyncIterator[str]:
        """The address of a server that gives one answer to all requests."""

        async def handler(request: web.BaseRequest) -> web.Response:
            self.asked.append(str(request.rel_url))
            return web.Response(**answer)

        async with http_server(handler, self.tls(*names)) as url:
            yield url

    def tls(self, *names: str) -> ssl.SSLContext:
        """The TLS context of a server with these names, and that of the loopback interface."""
        pair = self.authority.for_server(*names, "server.test")
        (self.folder / "pair.pem").write_bytes(pair.certificate + pair.key)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.folder / "pair.pem")
        return context

    def kubeconfig(self, server: str, **cluster: object) -> str:
        """A kubeconfig for a server with a certificate of the authority; a member that is None is left out."""
        authority = base64.b64encode(self.authority.certificate).decode()
        members = {"server": server, "certificate-authority-data": authority, **cluster}
        return kubeconfig_of({name: value for name, value in members.items() if value is not None})


def kubeconfig_of(cluster: dict[str, object], user: dict[str, object] | None = None) -> str:
    """A kubeconfig with one context."""
    config = {
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": "t0ken"} if user is None else user}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }
    return yaml.safe_dump(config)


@asynccontextmanager
async def connect_proxy(target: str) -> AsyncIterator[str]:
    """The address of a proxy that leads every CONNECT to `target`, whatever it asks for."""

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        host, _, port = target.removeprefix("https://").partition(":")
        upstream = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.gather(forward(reader, upstream[1]), forward(upstream[0], writer), return_exceptions=True)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()

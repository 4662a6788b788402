"""A mutating admission webhook on the loopback address: it changes or refuses the objects of one namespace."""

import base64
import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, TypeAlias

from tests.cluster.access import Access
from tests.cluster.certificates import Authority
from tests.cluster.polling import until

_PATH: Final = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
_RULE: Final = {
    "apiGroups": ["", "apps"],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE"],
    "resources": ["configmaps", "deployments"],
}
_PROBE: Final = "webhook-probe"


@dataclass(frozen=True, slots=True)
class Review:
    """A request that is to be admitted: the object as it would be, and whether it is a dry run."""

    object: Mapping[str, Any]
    is_dry_run: bool
    # How often the webhook was asked before.
    count: int


# The JSON patch that the webhook answers with; or a text, with which it refuses.
Mutation: TypeAlias = Callable[[Review], list[dict[str, Any]] | str]


@contextmanager
def admission_webhook(access: Access, namespace: str, folder: Path, rules: Mapping[str, Mutation]) -> Iterator[None]:
    """Inside, each ConfigMap and Deployment of the namespace is admitted by the rule that its name begins with."""
    authority = Authority()
    pair = authority.for_server("localhost")
    (folder / "webhook.pem").write_bytes(pair.key + pair.certificate)
    server = _Server(rules)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "webhook.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        answer = access.call("POST", _PATH, _configuration(namespace, server.server_port, authority.certificate))
        assert answer.status == 201, answer
        until(lambda: _is_in_force(access, namespace))
        yield
    finally:
        access.call("DELETE", f"{_PATH}/{namespace}")
        until(lambda: not _is_in_force(access, namespace))
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, rules: Mapping[str, Mutation]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.rules: Final = {**rules, _PROBE: _mark}
        self.count = 0

    def admitted(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The response to a request."""
        # Server-side apply has the name in the object, a create by POST as well.
        name = request["object"]["metadata"].get("name", "")
        rule = next((one for prefix, one in self.rules.items() if name.startswith(prefix)), None)
        found = [] if rule is None else rule(Review(request["object"], bool(request.get("dryRun")), self.count))
        self.count += 1
        if isinstance(found, str):
            return {"uid": request["uid"], "allowed": False, "status": {"message": found, "code": 403}}
        patch = base64.b64encode(json.dumps(found).encode()).decode()
        return {"uid": request["uid"], "allowed": True, "patchType": "JSONPatch", "patch": patch}


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """An AdmissionReview."""
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        review["response"] = self.server.admitted(review.pop("request"))
        body = json.dumps(review).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing is logged."""


def _mark(_: Review) -> list[dict[str, Any]]:
    return [{"op": "add", "path": "/data", "value": {"marked": "yes"}}]


def _configuration(namespace: str, port: int, authority: bytes) -> dict[str, Any]:
    client = {"url": f"https://127.0.0.1:{port}/", "caBundle": base64.b64encode(authority).decode()}
    webhook = {
        "name": "tests.example.com",
        "clientConfig": client,
        "rules": [_RULE],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "admissionReviewVersions": ["v1"],
        # What it does to an object is no side effect: it is also asked in a dry run.
        "sideEffects": "None",
        "failurePolicy": "Fail",
    }
    return {"metadata": {"name": namespace}, "webhooks": [webhook]}


def _is_in_force(access: Access, namespace: str) -> bool:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    answer = access.call("POST", path, {"metadata": {"name": _PROBE}})
    assert answer.status == 201, answer
    access.call("DELETE", f"{path}/{_PROBE}")
    return "data" in answer.body

"""Counts the requests of a controller by verb and resource, from the audit log of the API server."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

POLICY: Final = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
"""
# The API server calls itself.
_OWN_USER_AGENT: Final = "kube-apiserver/"


class _ObjectReference(msgspec.Struct):
    resource: str = ""
    subresource: str = ""


class _AuditEvent(msgspec.Struct):
    verb: str
    uri: str = msgspec.field(name="requestURI", default="")
    user_agent: str = msgspec.field(name="userAgent", default="")
    object_ref: _ObjectReference = msgspec.field(name="objectRef", default_factory=_ObjectReference)


_DECODER: Final = msgspec.json.Decoder(_AuditEvent)


def api_server_arguments(folder: Path) -> Sequence[str]:
    """Writes the audit policy into `folder`; the arguments that make the API server write the log there."""
    (folder / "audit-policy.yaml").write_text(POLICY, encoding="utf-8")
    return (
        f"--audit-policy-file={folder / 'audit-policy.yaml'}",
        f"--audit-log-path={folder / 'audit.log'}",
        # In megabytes: a larger log would be rotated.
        "--audit-log-maxsize=100000",
    )


class AuditLog:
    """The audit log of an API server; each request is counted once."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "audit.log"
        self._offset = 0

    def counts(self) -> Counter[str]:
        """The requests of the controllers since the last call."""
        with self._file.open("rb") as file:
            file.seek(self._offset)
            complete = file.read().rpartition(b"\n")[0]
        self._offset += len(complete) + 1 if complete else 0
        return request_counts(complete.splitlines())


def request_counts(lines: Iterable[bytes]) -> Counter[str]:
    """The requests with a user agent, which the harness does not have, as `patch configmaps`.

    Watches and requests for leases are left out: they do not depend on the number of objects.
    """
    return Counter(_requests(lines))


def _requests(lines: Iterable[bytes]) -> Iterator[str]:
    for line in lines:
        event = _DECODER.decode(line)
        target = event.object_ref
        is_counted = event.user_agent and not event.user_agent.startswith(_OWN_USER_AGENT)
        if is_counted and event.verb != "watch" and target.resource not in ("", "leases"):
            subresource = f"/{target.subresource}" if target.subresource else ""
            dry_run = "dry-run " if "dryRun=" in event.uri else ""
            yield f"{dry_run}{event.verb} {target.resource}{subresource}"

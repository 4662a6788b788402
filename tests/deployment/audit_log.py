"""The audit log of an API server."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

POLICY: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}


class AuditedRequest(NamedTuple):
    """A request, and whether it was forbidden. The core group is empty text."""

    group: str
    resource: str
    verb: str
    is_refused: bool


def arguments(folder: Path) -> tuple[str, ...]:
    """The arguments of an API server that writes an audit log into `folder`."""
    policy = folder / "policy.json"
    policy.write_text(json.dumps(POLICY), encoding="utf-8")
    return f"--audit-policy-file={policy}", f"--audit-log-path={folder / 'audit.log'}"


def requests_of(user: str, folder: Path) -> set[AuditedRequest]:
    """The requests of `user` so far, without discovery."""
    return {_asked(one) for one in _entries(folder) if _user_of(one) == user and "objectRef" in one}


def _entries(folder: Path) -> Iterator[Any]:
    with (folder / "audit.log").open(encoding="utf-8") as log:
        for line in log:
            yield json.loads(line)


def _user_of(entry: Any) -> str:
    """The user whose rights counted: the impersonated one, if there was any."""
    return str(entry.get("impersonatedUser", entry["user"])["username"])


def _asked(entry: Any) -> AuditedRequest:
    what = entry["objectRef"]
    resource = "/".join(filter(None, (what["resource"], what.get("subresource"))))
    code = entry.get("responseStatus", {}).get("code")
    return AuditedRequest(what.get("apiGroup", ""), resource, entry["verb"], is_refused=code == 403)

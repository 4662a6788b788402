"""Kubeconfig files for tests."""

import json
from base64 import b64encode
from pathlib import Path
from typing import Any


def encoded(text: str) -> str:
    return b64encode(text.encode()).decode()


Members = dict[str, Any] | None


def config(
    cluster: Members = None, user: Members = None, name: str = "prod", context: Members = None
) -> dict[str, Any]:
    """One cluster, one user, and a context of both: all called `name`."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}.test:6443"} | (cluster or {})}],
        "users": [{"name": name, "user": user or {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name} | (context or {})}],
    }


def written(file: Path, content: object) -> Path:
    """A file with `content`: JSON is YAML, too."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return file

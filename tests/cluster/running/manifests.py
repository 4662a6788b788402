"""Manifests of Google resources."""

import base64
from typing import Any, Final

from setpoint.engine.requeue import jittered_resync
from setpoint.engine.resource import ResourceRef

PROJECT: Final = "some-project"
STORAGE, SQL = "storage.cnrm.cloud.google.com/v1beta1", "sql.cnrm.cloud.google.com/v1beta1"
_PROJECT_ID: Final = "cnrm.cloud.google.com/project-id"


def declared(api_version: str, kind: str, name: str, spec: Any, **annotations: str) -> dict[str, Any]:
    """A resource with annotations of Config Connector."""
    own = {f"cnrm.cloud.google.com/{key.replace('_', '-')}": text for key, text in annotations.items()}
    metadata = {"name": name, "annotations": {_PROJECT_ID: PROJECT, **own}}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def bucket(name: str, **annotations: str) -> dict[str, Any]:
    """A bucket."""
    return declared(STORAGE, "StorageBucket", name, {"location": "EU"}, **annotations)


def quickly_resynced(namespace: str) -> str:
    """The name of a bucket with the shortest jittered resync for an interval of a second: half a second."""

    def resync(name: str) -> float:
        return jittered_resync(ResourceRef("storage.cnrm.cloud.google.com", "StorageBucket", namespace, name), 1)

    return min((f"resynced-{number}" for number in range(100)), key=resync)


def instance(name: str) -> dict[str, Any]:
    """An instance of MySQL."""
    settings = {"tier": "db-custom-1-3840"}
    return declared(
        SQL, "SQLInstance", name, {"databaseVersion": "MYSQL_8_0", "region": "europe-west1", "settings": settings}
    )


def database(name: str, of: str) -> dict[str, Any]:
    """A database in a declared instance."""
    return declared(SQL, "SQLDatabase", name, {"charset": "utf8mb4", "instanceRef": {"name": of}})


def user(name: str, of: str, secret: str) -> dict[str, Any]:
    """A user of a declared instance, with a password from a Secret."""
    password = {"valueFrom": {"secretKeyRef": {"name": secret, "key": "password"}}}
    return declared(SQL, "SQLUser", name, {"instanceRef": {"name": of}, "password": password})


def secret(name: str, password: str) -> dict[str, Any]:
    """A Secret with a password."""
    data = {"password": base64.b64encode(password.encode()).decode()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data}


def bucket_path(name: str) -> str:
    """The path of a bucket in the cloud."""
    return f"/storage/v1/b/{name}"


def instance_path(name: str) -> str:
    """The path of an instance in the cloud."""
    return f"/sql/v1beta4/projects/{PROJECT}/instances/{name}"

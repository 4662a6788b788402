"""OAuth scopes of service accounts: the aliases that `gcloud` and Config Connector take for them."""

from collections.abc import Mapping
from typing import Final

_SCOPES: Final = "https://www.googleapis.com/auth/"
_ALIASES: Final[Mapping[str, str]] = {
    "bigquery": "bigquery",
    "cloud-platform": "cloud-platform",
    "cloud-source-repos": "source.full_control",
    "cloud-source-repos-ro": "source.read_only",
    "compute-ro": "compute.readonly",
    "compute-rw": "compute",
    "datastore": "datastore",
    "logging-write": "logging.write",
    "monitoring": "monitoring",
    "monitoring-read": "monitoring.read",
    "monitoring-write": "monitoring.write",
    "pubsub": "pubsub",
    "service-control": "servicecontrol",
    "service-management": "service.management.readonly",
    "sql": "sqlservice",
    "sql-admin": "sqlservice.admin",
    "storage-full": "devstorage.full_control",
    "storage-ro": "devstorage.read_only",
    "storage-rw": "devstorage.read_write",
    "taskqueue": "taskqueue",
    "trace": "trace.append",
    "useraccounts-ro": "cloud.useraccounts.readonly",
    "useraccounts-rw": "cloud.useraccounts",
    "userinfo-email": "userinfo.email",
}


def oauth_scope(text: str) -> str:
    """The scope that an alias stands for; another text as it is."""
    return f"{_SCOPES}{_ALIASES[text]}" if text in _ALIASES else text

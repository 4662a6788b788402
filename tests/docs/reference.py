"""The reference of a kind, read off its types: a row for each field.

`python -m tests.docs.reference` rewrites the tables of the pages; what stands around them is written by hand.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from setpoint.app import described_types
from setpoint.app.kind_reference import FIELDS_HEAD, STATUS_HEAD, fields_of, outputs_of
from setpoint.core.schema.annotations import ANNOTATIONS, AnnotationScope, KnownAnnotation
from setpoint.engine.capabilities import keeps_cookie
from setpoint.engine.kind import ResourceType
from setpoint.engine.owner import Owner
from setpoint.kinds.gcp.iam.spec import (
    PartialPolicyStatus,
    PartialPolicyTree,
    PolicyMemberStatus,
    PolicyMemberTree,
    PolicyStatus,
    PolicyTree,
)
from setpoint.kinds.gcp.service_account_key.spec import ServiceAccountKeyStatus, ServiceAccountKeyTree
from setpoint.kinds.gcp.sql_database import SqlDatabaseStatus, SqlDatabaseTree
from setpoint.kinds.gcp.sql_instance.spec import SqlInstanceTree
from setpoint.kinds.gcp.sql_instance.status import SqlInstanceStatus
from setpoint.kinds.gcp.sql_user.spec import SqlUserStatus, SqlUserTree
from setpoint.kinds.gcp.storage_bucket.spec import StorageBucketStatus, StorageBucketTree
from setpoint.kinds.kubernetes_object.spec import KubernetesObjectStatus, KubernetesObjectTree
from setpoint.kinds.trustee.kbs_config.spec import KbsConfigStatus, KbsConfigTree
from setpoint.kinds.trustee.trustee_config.spec import TrusteeConfigStatus, TrusteeConfigTree
from setpoint.stores.kubernetes.crds import CommonStatus
from tests.docs.google_reference import write as write_google_pages
from tests.kinds.trustee.edit_policies import EditPolicy, field_policies


@dataclass(frozen=True, slots=True)
class Types:
    """The types of a page: what an author writes, and what the status shows besides."""

    tree: type[msgspec.Struct]
    status: type[msgspec.Struct]


FOLDER: Final = Path("docs/kinds")
README: Final = FOLDER / "README.md"
PAGES: Final[Mapping[Path, Types]] = {
    FOLDER / "sql-instance.md": Types(SqlInstanceTree, SqlInstanceStatus),
    FOLDER / "sql-database.md": Types(SqlDatabaseTree, SqlDatabaseStatus),
    FOLDER / "sql-user.md": Types(SqlUserTree, SqlUserStatus),
    FOLDER / "storage-bucket.md": Types(StorageBucketTree, StorageBucketStatus),
    FOLDER / "iam-policy.md": Types(PolicyTree, PolicyStatus),
    FOLDER / "iam-partial-policy.md": Types(PartialPolicyTree, PartialPolicyStatus),
    FOLDER / "iam-policy-member.md": Types(PolicyMemberTree, PolicyMemberStatus),
    FOLDER / "iam-service-account-key.md": Types(ServiceAccountKeyTree, ServiceAccountKeyStatus),
    FOLDER / "kubernetes-object.md": Types(KubernetesObjectTree, KubernetesObjectStatus),
    FOLDER / "trustee-config.md": Types(TrusteeConfigTree, TrusteeConfigStatus),
    FOLDER / "kbs-config.md": Types(KbsConfigTree, KbsConfigStatus),
}
TRUSTEE: Final = Path("docs/how-to/run-trustee.md")
ANNOTATIONS_PAGE: Final = Path("docs/annotations.md")
HEAD: Final = FIELDS_HEAD
COOKIES_HEAD: Final = "| kind | reconciliation | `status.lastModifiedCookie` |\n|---|---|---|\n"
POLICIES_HEAD: Final = "| field of the KbsConfig | whose it is |\n|---|---|\n"
EFFECTS_HEAD: Final = "| annotation | on | values | what it does |\n|---|---|---|---|\n"
NO_EFFECTS_HEAD: Final = "| annotation | what to do |\n|---|---|\n"
RECORDS_HEAD: Final = "| annotation | what it is |\n|---|---|\n"


def with_tables(page: str, types: Types) -> str:
    """The page with the tables that the types ask for."""
    return with_table(with_table(page, HEAD, rows_of(types.tree)), STATUS_HEAD, status_rows_of(types.status))


def with_table(page: str, head: str, rows: Sequence[str]) -> str:
    """The page with these rows in its one table that starts with `head`."""
    table = head + "".join(f"{row}\n" for row in rows)
    rewritten, count = re.subn(re.escape(head) + r"(?:\|.*\n)*", lambda _: table, page)
    if count != 1:
        raise ValueError(f"a page has one table that starts with {head!r}, not {count}")
    return rewritten


def rows_of(tree_type: type[msgspec.Struct]) -> list[str]:
    """A row for each field that an author may write."""
    return [one.row for one in fields_of(tree_type)]


def status_rows_of(type_: type[msgspec.Struct]) -> list[str]:
    """A row for each member of the status."""
    return [f"| `{one.path}` | {one.description} |" for one in outputs_of(type_)]


def with_every_status(page: str) -> str:
    """The page on all kinds with the table that their common status asks for."""
    return with_table(page, STATUS_HEAD, status_rows_of(CommonStatus))


def with_cookies(page: str) -> str:
    """The page on all kinds with a row for each that says whether its resources keep a cookie."""
    rows = [_cookie_row(name, one) for (_, name), one in described_types().items()]
    return with_table(page, COOKIES_HEAD, rows)


def _cookie_row(name: str, type_: ResourceType) -> str:
    how = "owner" if isinstance(type_, Owner) else "stateful" if keeps_cookie(type_) else "stateless"
    return f"| `{name}` | {how} | {'yes' if keeps_cookie(type_) else 'no'} |"


def with_policies(page: str) -> str:
    """The page on Trustee with a row for each field of a KbsConfig, editable ones first."""
    policies = sorted(field_policies().items(), key=lambda one: one[1] is EditPolicy.MANAGED)
    return with_table(page, POLICIES_HEAD, [f"| `spec.{field}` | {policy.value} |" for field, policy in policies])


def with_annotations(page: str) -> str:
    """The page on annotations with a row for each one of the list."""
    silent = (AnnotationScope.NONE, AnnotationScope.RECORD)
    effects = [
        f"| `{one.key}` | {one.scope} | {_values(one)} | {one.meaning} |"
        for one in ANNOTATIONS
        if one.scope not in silent
    ]
    page = with_table(page, EFFECTS_HEAD, effects)
    for head, scope in zip((NO_EFFECTS_HEAD, RECORDS_HEAD), silent, strict=True):
        page = with_table(page, head, [f"| `{one.key}` | {one.meaning} |" for one in ANNOTATIONS if one.scope is scope])
    return page


def _values(annotation: KnownAnnotation) -> str:
    return "" if annotation.values is None else annotation.values.advice.removeprefix("write ")


if __name__ == "__main__":
    write_google_pages()
    ANNOTATIONS_PAGE.write_text(with_annotations(ANNOTATIONS_PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    TRUSTEE.write_text(with_policies(TRUSTEE.read_text(encoding="utf-8")), encoding="utf-8")
    README.write_text(with_cookies(with_every_status(README.read_text(encoding="utf-8"))), encoding="utf-8")
    for path, types in PAGES.items():
        path.write_text(with_tables(path.read_text(encoding="utf-8"), types), encoding="utf-8")

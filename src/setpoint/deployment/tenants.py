"""What an administrator gives a namespace: a ServiceAccount that setpoint acts as there, with its rights.

They are given to the tenant as well: users with the role `edit` may act as any account of their namespace.
"""

import re
from collections.abc import Mapping
from typing import Final

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import JsonObject
from setpoint.deployment.installation import DEFAULT_NAMESPACE, NAME, namespaced_metadata, require_namespace_name
from setpoint.deployment.rbac import (
    KUBERNETES_OBJECTS,
    KindAccess,
    binding,
    by_group,
    impersonation_rule,
    role,
    role_binding,
    rule,
)
from setpoint.engine.tenancy.tenants import (
    DEFAULT_SERVICE_ACCOUNT,
    GOOGLE_ACCOUNT,
    PROBLEMS,
    PROJECT_ID,
    is_service_account_name,
    is_valid,
)
from setpoint.errors import UserError

TENANT_ANNOTATIONS: Final = (PROJECT_ID, GOOGLE_ACCOUNT)
_KEEP: Final = ("get", "create", "update", "delete")
_ROLE_PATTERN: Final = re.compile(r"[^\s/%]+")


@dataclass(frozen=True, slots=True)
class TenantOptions:
    """The options of `setpoint tenant`: a namespace, its account, and what the account gets."""

    namespace: str
    account: str = DEFAULT_SERVICE_ACCOUNT
    # The ClusterRole that is bound in the namespace, for KubernetesObjects; empty for none.
    role: str = "edit"
    # The Google project and the Google service account of the namespace; empty to leave them as they are.
    project: str = ""
    google_account: str = ""
    # The account of the controller.
    operator_namespace: str = DEFAULT_NAMESPACE
    operator_account: str = NAME

    def __post_init__(self) -> None:
        require_namespace_name(self.namespace)
        require_namespace_name(self.operator_namespace)
        for name in (self.account, self.operator_account):
            if not is_service_account_name(name):
                raise UserError(
                    f"{name!r} cannot be a ServiceAccount: write lower-case letters, digits, - and ., "
                    "with a letter or digit at both ends"
                )
        if self.role and not _ROLE_PATTERN.fullmatch(self.role):
            raise UserError(f"--role: {self.role!r} cannot be a ClusterRole: write one such as edit, or '' for none")
        if self.project and not is_valid(PROJECT_ID, self.project):
            problem = PROBLEMS[PROJECT_ID]
            raise UserError(f"--project is {self.project!r}, which is {problem}: write it as in `gcloud projects list`")
        if self.google_account and not is_valid(GOOGLE_ACCOUNT, self.google_account):
            raise UserError(
                f"--google-service-account is {self.google_account!r}, which is {PROBLEMS[GOOGLE_ACCOUNT]}: write "
                "name@project.iam.gserviceaccount.com"
            )
        if (self.namespace, self.account) == (self.operator_namespace, self.operator_account):
            raise UserError(
                f"ServiceAccount {self.namespace}/{self.account} is that of setpoint itself, which acts for no tenant: "
                "name the namespace of a tenant, or with --operator-service-account the account that setpoint runs as"
            )

    @property
    def annotations(self) -> Mapping[str, str]:
        """What tenants cannot write: the annotations of the Namespace."""
        given = {PROJECT_ID: self.project, GOOGLE_ACCOUNT: self.google_account}
        return {name: text for name, text in given.items() if text}

    @property
    def is_default_account(self) -> bool:
        """Whether the account is the one that setpoint acts as unless a spec names another."""
        return self.account == DEFAULT_SERVICE_ACCOUNT

    @property
    def role_name(self) -> str:
        """The name of the roles that are made for the account."""
        return f"{NAME}-tenant" if self.is_default_account else f"{NAME}-tenant-{self.account}"


def tenant_manifests(tenant: TenantOptions, access: KindAccess) -> list[JsonObject]:
    """What the namespace gets for kinds that take `access`, in the order in which it is applied."""
    return [
        *([namespace_annotations(tenant.namespace, tenant.annotations)] if tenant.annotations else []),
        _service_account(tenant),
        *(_rights(tenant, access) if tenant.is_default_account else _impersonation(tenant)),
        *([objects_binding(tenant)] if tenant.role and KUBERNETES_OBJECTS in access.kinds else []),
    ]


def namespace_annotations(name: str, annotations: Mapping[str, str]) -> JsonObject:
    """The annotations of the Namespace, which tenants cannot write."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": dict(annotations)}}


def _service_account(tenant: TenantOptions) -> JsonObject:
    """The account. No pod needs a token of the default one; another one may be that of pods as well."""
    account: JsonObject = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": namespaced_metadata(tenant.namespace, tenant.account),
    }
    return {**account, "automountServiceAccountToken": False} if tenant.is_default_account else account


def _rights(tenant: TenantOptions, access: KindAccess) -> list[JsonObject]:
    """A Role that stays when it has no rules: an earlier run may have given it some."""
    metadata = namespaced_metadata(tenant.namespace, tenant.role_name)
    return [role("Role", metadata, tenant_rules(access)), binding("Role", metadata, _subject(tenant))]


def tenant_rules(access: KindAccess) -> list[JsonObject]:
    """To keep the children of owners, and to read what resources refer to.

    Some clusters require permission on the finalizers of an owner to refer to it.
    """
    return [
        *(rule(group, plurals, ("get",)) for group, plurals in by_group(access.read)),
        *(rule(group, plurals, _KEEP) for group, plurals in by_group(access.children)),
        *(
            rule(group, [f"{one}/finalizers" for one in plurals], ("update",))
            for group, plurals in by_group(access.owners)
        ),
    ]


def _impersonation(tenant: TenantOptions) -> list[JsonObject]:
    """The right of the controller to act as this very account: it may act as `setpoint` only, otherwise."""
    metadata = namespaced_metadata(tenant.namespace, tenant.role_name)
    operator = {"kind": "ServiceAccount", "name": tenant.operator_account, "namespace": tenant.operator_namespace}
    return [role("Role", metadata, [impersonation_rule(tenant.account)]), binding("Role", metadata, operator)]


def objects_binding(tenant: TenantOptions) -> JsonObject:
    """What KubernetesObjects of the namespace may do with the objects there: what the ClusterRole says."""
    metadata = namespaced_metadata(tenant.namespace, f"{tenant.role_name}-objects")
    return role_binding(metadata, "ClusterRole", tenant.role, _subject(tenant))


def _subject(tenant: TenantOptions) -> JsonObject:
    return {"kind": "ServiceAccount", "name": tenant.account, "namespace": tenant.namespace}

"""`setpoint tenant`: the manifests that it prints, and its errors."""

from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from setpoint.cli.main import main
from setpoint.deployment.tenants import TenantOptions, tenant_manifests
from tests.cluster.access import Access
from tests.deployment.installed_objects import ALL_KINDS, DEFAULT_KINDS, access, by_key, in_stream

OBJECT = ("KubernetesObject",)


def _tenant(*options: str, kubeconfig: str = "/nowhere") -> Result:
    return CliRunner(env={"KUBECONFIG": kubeconfig}).invoke(main, ["tenant", *options], catch_exceptions=False)


@pytest.mark.parametrize(
    ("options", "tenant", "kinds"),
    [
        ([], TenantOptions("shop"), DEFAULT_KINDS),
        (["--kinds", ",".join(ALL_KINDS)], TenantOptions("shop"), ALL_KINDS),
        (["--kinds", "sqlusers"], TenantOptions("shop"), ("SQLUser",)),
        (["--role", "view"], TenantOptions("shop", role="view"), DEFAULT_KINDS),
        (["--role", ""], TenantOptions("shop", role=""), DEFAULT_KINDS),
        (["--project", "demo-1"], TenantOptions("shop", project="demo-1"), DEFAULT_KINDS),
        (
            ["--google-service-account", "a@b.iam.gserviceaccount.com"],
            TenantOptions("shop", google_account="a@b.iam.gserviceaccount.com"),
            DEFAULT_KINDS,
        ),
        (["--service-account", "deployer"], TenantOptions("shop", "deployer"), OBJECT),
        (
            ["--service-account", "deployer", "--operator-namespace", "ops", "--operator-service-account", "blue"],
            TenantOptions("shop", "deployer", operator_namespace="ops", operator_account="blue"),
            OBJECT,
        ),
    ],
)
def test_all_objects_are_printed_for_another_tool_to_apply(
    options: Sequence[str], tenant: TenantOptions, kinds: Sequence[str]
) -> None:
    printed = _tenant("shop", "--dry-run", *options)
    as_json: Any = orjson.loads(_tenant("shop", "--dry-run", "-o", "json", *options).output)

    wanted = by_key(tenant_manifests(tenant, access(kinds)))
    assert in_stream(printed.output) == wanted
    assert by_key(as_json["items"]) == wanted


def test_nothing_is_outside_of_the_namespace_but_its_own_annotations() -> None:
    options = ["--project", "demo-1", "--kinds", ",".join(ALL_KINDS)]

    printed = in_stream(_tenant("shop", "--dry-run", *options).output)

    assert {(kind, name) for kind, namespace, name in printed if namespace != "shop"} == {("Namespace", "shop")}
    assert printed["Namespace", "", "shop"]["metadata"] == {
        "name": "shop",
        "annotations": {"cnrm.cloud.google.com/project-id": "demo-1"},
    }
    assert {one["roleRef"]["name"] for (kind, _, _), one in printed.items() if kind == "RoleBinding"} == {
        "setpoint-tenant",
        "edit",
    }
    assert {str(one["subjects"]) for (kind, _, _), one in printed.items() if kind == "RoleBinding"} == {
        "[{'kind': 'ServiceAccount', 'name': 'setpoint', 'namespace': 'shop'}]"
    }


def test_pods_keep_the_tokens_of_an_account_that_is_not_ours_alone() -> None:
    ours, other = (tenant_manifests(TenantOptions("shop", name), access(OBJECT))[0] for name in ("setpoint", "web"))

    assert (ours["automountServiceAccountToken"], "automountServiceAccountToken" in other) == (False, False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["Shop_1"], "'Shop_1' cannot be a namespace"),
        (["shop", "--operator-namespace", ""], "'' cannot be a namespace"),
        (["shop", "--service-account", "../default"], "'../default' cannot be a ServiceAccount"),
        (["shop", "--service-account", "a:b"], "'a:b' cannot be a ServiceAccount"),
        (["shop", "--role", "a/b"], "--role: 'a/b' cannot be a ClusterRole"),
        (["shop", "--project", "projects/demo"], "--project is 'projects/demo', which is no ID of a project"),
        (["shop", "--project", "123456"], "--project is '123456', which is no ID of a project"),
        (
            ["shop", "--google-service-account", "shop"],
            "--google-service-account is 'shop', which is no e-mail",
        ),
        (["setpoint-system"], "ServiceAccount setpoint-system/setpoint is that of setpoint itself"),
        (["shop", "--operator-namespace", "shop"], "ServiceAccount shop/setpoint is that of setpoint itself"),
        (["shop", "--kinds", "TrusteeConfig"], "a TrusteeConfig makes a KbsConfig"),
        (["shop", "--kinds", "SQLInstant"], "did you mean SQLInstance?"),
        (["shop", "--kinds", "SQLUser", "--role", "view"], "--role says what a KubernetesObject may do"),
        (["shop", "--kinds", "SQLUser", "--service-account", "web"], "--kinds: a SQLUser names no account"),
    ],
    ids=str,
)
def test_an_invalid_option_is_refused_before_any_request(options: list[str], message: str) -> None:
    result = _tenant(*options)

    assert (result.exit_code, message in result.output) == (1, True), result.output


def test_a_namespace_that_is_not_there_is_not_made(api_server: Access) -> None:
    result = _tenant("no-such-shop", "--project", "demo-1", kubeconfig=str(api_server.kubeconfig))

    assert (result.exit_code, result.output.strip()) == (
        1,
        "error: there is no namespace no-such-shop: make it first with `kubectl create namespace no-such-shop`, "
        "or check the name",
    )
    assert api_server.call("GET", "/api/v1/namespaces/no-such-shop").status == 404


def test_a_tenant_sets_up_no_tenant(api_server: Access) -> None:
    namespace = api_server.new_namespace(is_tenant=False)
    result = _tenant(namespace, kubeconfig=str(api_server.kubeconfig_of("alice")))

    assert result.exit_code == 1
    assert "Give this user a role with the verb get on namespaces" in result.output

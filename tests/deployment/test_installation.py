"""The manifests of an installation: permissions, pods, probes, options."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import aiohttp
import click
import pytest

from setpoint.cli.main import main
from setpoint.core.values.durations import parse_duration
from setpoint.deployment.installation import Installation
from setpoint.deployment.manifests import container_arguments, deployment, pod_spec, store_url
from setpoint.deployment.rbac import (
    GRANTS,
    KUBERNETES_OBJECTS,
    SECRETS,
    GroupResource,
    KindAccess,
    controller_rbac,
    resources_of,
    user_rbac,
)
from setpoint.deployment.tenants import TenantOptions, tenant_manifests
from setpoint.errors import UserError
from setpoint.runtime.manager import Phase
from setpoint.runtime.server import HttpServer
from setpoint.stores.kubernetes.factory import POD_NAMESPACE, SYSTEM_NAMESPACE, ClusterAddress, parse_cluster_address
from tests.deployment.installed_objects import ALL_KINDS, DEFAULT_KINDS, access, crds, process

LAMPS = (
    GroupResource("house.example.com", "lamps"),
    GroupResource("house.example.com", "plugs"),
    GroupResource("yard.example.com", "taps"),
)
SWITCHES = KindAccess(
    LAMPS[:1],
    owners=LAMPS[:1],
    children=(GroupResource("", "secrets"), LAMPS[2]),
    read=(GroupResource("", "configmaps"),),
    cluster_scoped=(GroupResource("", "nodes"),),
)


def _container(installation: Installation) -> Any:
    (container,) = _list(pod_spec(installation)["containers"])
    return container


def _list(value: Any) -> list[Any]:
    assert isinstance(value, list)
    return value


def _parsed(command: str, options: list[str]) -> dict[str, Any]:
    """The parameters of the command, parsed below `main`: a command caches its help option."""
    above = click.Context(main, **main.context_settings)
    return main.commands[command].make_context(command, options, parent=above).params


# --- Permissions ------------------------------------------------------------------------------------------------------


def _rules(role: Any) -> list[tuple[str, str, str]]:
    """A line for each rule: group, resources, verbs."""
    return [(*rule["apiGroups"], " ".join(rule["resources"]), " ".join(rule["verbs"])) for rule in role["rules"]]


def test_the_controller_has_least_privilege() -> None:
    role, _, leases, _ = controller_rbac(Installation(), KindAccess(LAMPS))

    assert (role["kind"], _rules(role)) == (
        "ClusterRole",
        [
            ("house.example.com", "lamps plugs", "get list watch patch"),
            ("yard.example.com", "taps", "get list watch patch"),
            ("house.example.com", "lamps/status plugs/status", "patch"),
            ("yard.example.com", "taps/status", "patch"),
            ("setpoint.dev", "referencegrants", "get list watch"),
            ("", "events", "get create patch"),
            ("", "serviceaccounts", "get impersonate"),
            ("", "namespaces", "get list watch"),
        ],
    )
    assert [rule["resourceNames"] for rule in _list(role["rules"]) if "resourceNames" in rule] == [["setpoint"]]
    assert (leases["kind"], _rules(leases)) == ("Role", [("coordination.k8s.io", "leases", "get list create update")])


def test_the_controller_watches_what_owners_make_and_read_and_writes_none_of_it() -> None:
    role, *_ = controller_rbac(Installation(), SWITCHES)

    assert _rules(role) == [
        ("house.example.com", "lamps", "get list watch patch"),
        ("house.example.com", "lamps/status", "patch"),
        ("setpoint.dev", "referencegrants", "get list watch"),
        ("", "events", "get create patch"),
        ("", "serviceaccounts", "get impersonate"),
        ("", "namespaces", "get list watch"),
        ("", "configmaps secrets", "list watch"),
        ("yard.example.com", "taps", "list watch"),
        ("", "nodes", "get list watch"),
    ]


def test_the_account_of_a_namespace_keeps_children_and_reads_sources() -> None:
    account, role, *_ = tenant_manifests(TenantOptions("team"), SWITCHES)

    assert account["automountServiceAccountToken"] is False
    assert _rules(role) == [
        ("", "configmaps", "get"),
        ("", "secrets", "get create update delete"),
        ("yard.example.com", "taps", "get create update delete"),
        ("house.example.com", "lamps/finalizers", "update"),
    ]


def test_with_one_namespace_its_annotations_are_read_and_no_cluster_scoped_kind_is() -> None:
    role, *_ = controller_rbac(Installation(watch_namespace="team"), SWITCHES)

    assert "nodes" not in str(role)
    assert [rule for rule in _rules(role) if "namespaces" in rule] == [("", "namespaces", "get")]


def test_with_one_namespace_there_are_no_cluster_roles() -> None:
    objects = process(Installation(watch_namespace="team", kinds=ALL_KINDS)).values()

    assert [one["kind"] for one in objects if "namespace" not in _metadata(one)] == ["Namespace"]
    assert {_metadata(one)["namespace"] for one in objects if one["kind"] == "Role"} == {"team", "setpoint-system"}


@pytest.mark.parametrize(("home", "account"), [("setpoint-system", "setpoint"), ("team", "setpoint-controller")])
def test_the_account_of_the_pods_is_not_that_of_the_tenant(home: str, account: str) -> None:
    objects = process(Installation(home, watch_namespace="team", kinds=DEFAULT_KINDS))

    pod: Any = objects["Deployment", home, "setpoint"]["spec"]
    bound = [one["subjects"] for (kind, _, _), one in objects.items() if kind == "RoleBinding"]
    assert ("ServiceAccount", home, account) in objects
    assert pod["template"]["spec"]["serviceAccountName"] == account
    assert bound == [[{"kind": "ServiceAccount", "name": account, "namespace": home}]] * 2


def _metadata(tree: Any) -> Any:
    return tree["metadata"]


def test_user_roles_aggregate_to_view_and_edit_and_those_of_grants_to_admin() -> None:
    roles = view, edit, admin = user_rbac(LAMPS[:1])

    assert _rules(view) == [
        ("house.example.com", "lamps", "get list watch"),
        ("setpoint.dev", "referencegrants", "get list watch"),
        ("house.example.com", "lamps/status", "get"),
    ]
    assert _rules(edit) == [("house.example.com", "lamps", "create update patch delete deletecollection")]
    # A grant opens its namespace: an author of resources there cannot write one.
    assert _rules(admin) == [("setpoint.dev", "referencegrants", "create update patch delete deletecollection")]
    for one, name in zip(roles, ("view", "edit", "admin"), strict=True):
        labels = [label for label in _metadata(one)["labels"] if label.startswith("rbac.")]
        assert labels == [f"rbac.authorization.k8s.io/aggregate-to-{name}"]


def test_a_kubernetes_object_is_seen_by_users_and_written_only_if_the_administrator_says_so() -> None:
    view, edit, _ = user_rbac([KUBERNETES_OBJECTS])
    _, more, _ = user_rbac([KUBERNETES_OBJECTS], objects_too=True)

    assert ("setpoint.dev", "kubernetesobjects referencegrants", "get list watch") in _rules(view)
    # The role is there without a rule: an earlier installation may have given it some.
    assert _rules(edit) == []
    assert _rules(more) == [("setpoint.dev", "kubernetesobjects", "create update patch delete deletecollection")]


def test_secrets_are_watched_only_for_kinds_that_refer_to_them() -> None:
    assert {
        kind: SECRETS in access([kind]).watched for kind in (*DEFAULT_KINDS, "KbsConfig", "IAMServiceAccountKey")
    } == {
        "KubernetesObject": True,
        "SQLDatabase": False,
        "SQLInstance": True,
        "SQLUser": True,
        "StorageBucket": False,
        **dict.fromkeys(("IAMPartialPolicy", "IAMPolicy", "IAMPolicyMember"), False),
        "IAMServiceAccountKey": True,
        "KbsConfig": True,
    }


def test_plural_and_group_are_the_name_of_the_crd() -> None:
    defined = crds([*ALL_KINDS, "ReferenceGrant"])
    names = {f"{kind.plural}.{kind.group}" for kind in (*resources_of(defined), GRANTS)}

    assert names == {_metadata(one)["name"] for one in defined}


# --- Pods -------------------------------------------------------------------------------------------------------------


def test_the_arguments_of_a_pod_are_valid() -> None:
    command, *options = container_arguments(Installation(shards=3))

    parsed = _parsed(str(command), [str(option) for option in options])

    assert (parsed["shards"], parsed["identity"], parsed["metrics"]) == (3, "$(POD_NAME)", ":8080")


def test_a_pod_is_told_which_kinds_it_handles() -> None:
    *_, kinds = container_arguments(Installation(kinds=("SQLUser", "SQLInstance")))

    assert kinds == "--kinds=SQLUser,SQLInstance"


@pytest.mark.parametrize("watched", [None, "team"])
def test_the_store_of_a_pod_has_the_watched_namespace(watched: str | None) -> None:
    assert parse_cluster_address(store_url(Installation(watch_namespace=watched))) == ClusterAddress(namespace=watched)


def test_leases_are_in_the_namespace_of_the_pod() -> None:
    assert (
        Installation().namespace,
        *(one["name"] for one in _container(Installation())["env"] if one["name"].endswith("_NAMESPACE")),
    ) == (SYSTEM_NAMESPACE, POD_NAMESPACE)


class _Healthy:
    phase = Phase.RUNNING
    is_ready = True
    failed_tasks: Sequence[str] = ()
    unserved_kinds: Sequence[str] = ()
    outdated_kinds: Sequence[str] = ()


class _NoMetrics:
    async def page(self, accept: str) -> tuple[bytes, str]:
        return b"", "text/plain"


def test_the_probes_of_a_pod_are_served() -> None:
    container = _container(Installation())
    probes = [container[name]["httpGet"] for name in ("startupProbe", "livenessProbe", "readinessProbe")]

    assert {probe["port"] for probe in probes} == {container["ports"][0]["name"]}
    assert asyncio.run(_statuses([probe["path"] for probe in probes])) == [200, 200, 200]


async def _statuses(paths: Sequence[str]) -> list[int]:
    server = HttpServer(_Healthy(), _NoMetrics())
    await server.start("127.0.0.1", 0)
    try:
        async with aiohttp.ClientSession() as session:
            return [(await session.get(server.address + path)).status for path in paths]
    finally:
        await server.close()


def test_the_termination_grace_period_exceeds_the_grace_of_steps() -> None:
    (grace,) = (text for text in _container(Installation())["args"] if text.startswith("--grace="))
    seconds: Any = pod_spec(Installation())["terminationGracePeriodSeconds"]

    assert seconds > parse_duration(grace.removeprefix("--grace="))


def test_a_selector_never_changes() -> None:
    """A cluster refuses a Deployment with another one: an upgrade would fail."""
    spec: Any = deployment(Installation())["spec"]

    assert spec["selector"]["matchLabels"] == {
        "app.kubernetes.io/name": "setpoint",
        "app.kubernetes.io/instance": "setpoint",
    }


@pytest.mark.parametrize("replicas", [1, 2])
def test_one_pod_may_be_evicted_at_a_time(replicas: int) -> None:
    budget: Any = process(Installation(replicas=replicas, kinds=DEFAULT_KINDS))[
        "PodDisruptionBudget", "setpoint-system", "setpoint"
    ]

    assert budget["spec"]["maxUnavailable"] == 1


@pytest.mark.parametrize(
    "installation", [Installation(namespace="team", watch_namespace="team"), Installation(namespace="default")]
)
def test_a_namespace_with_other_workloads_is_left_as_it_is(installation: Installation) -> None:
    assert [kind for kind, _, _ in process(replace(installation, kinds=DEFAULT_KINDS)) if kind == "Namespace"] == []


# --- Options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"namespace": "Team_A"}, "'Team_A' cannot be a namespace: write up to 63 lower-case letters"),
        ({"watch_namespace": ""}, "'' cannot be a namespace"),
        ({"watch_namespace": "a" * 64}, "cannot be a namespace"),
        ({"image": "set point"}, "'set point' names no image: write it as registry.example.com/setpoint:"),
        ({"replicas": 0}, "0 replicas and 8 shards: there has to be one of each at least"),
    ],
)
def test_an_invalid_installation_is_refused(choices: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Installation(**choices)


def test_the_help_shows_the_defaults() -> None:
    chosen = _parsed("install", [])

    assert Installation() == Installation(
        *(chosen[name] for name in ("namespace", "image", "replicas", "shards", "watch_namespace"))
    )
    assert (chosen["env"], chosen["kinds"]) == ((), "")

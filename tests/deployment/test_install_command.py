"""`setpoint install`: the manifests that it prints, and its errors."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from setpoint.cli.main import main
from setpoint.engine.management import CookieLocation
from tests.cluster.access import Access
from tests.deployment.installed_objects import DEFAULT, by_key, in_stream, process, types


def _install(kubeconfig: Path | str, *options: str) -> Result:
    return CliRunner(env={"KUBECONFIG": str(kubeconfig)}).invoke(main, ["install", *options], catch_exceptions=False)


# --- Printed ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "choices"),
    [
        ([], {}),
        (["--namespace", "keepers", "--watch-namespace", "team"], {"namespace": "keepers", "watch_namespace": "team"}),
        (["--image", "a/b:c", "--replicas", "1", "--shards", "3"], {"image": "a/b:c", "replicas": 1, "shards": 3}),
        (["--env", "A=b=c", "--env", "D="], {"environment": (("A", "b=c"), ("D", ""))}),
        (["--kinds", "sqlusers,SQLInstance, sqluser"], {"kinds": ("SQLUser", "SQLInstance")}),
        (["--kinds", "KbsConfig"], {"kinds": ("KbsConfig",)}),
        (["--kinds", "TrusteeConfig,KbsConfig"], {"kinds": ("TrusteeConfig", "KbsConfig")}),
        (["--cookie-location", "annotation"], {"cookies": CookieLocation.ANNOTATION}),
        (["--dashboard"], {"dashboard": True}),
    ],
)
def test_all_objects_are_printed_for_another_tool_to_apply(options: Sequence[str], choices: dict[str, Any]) -> None:
    printed = _install("/nowhere", "--dry-run", *options)
    as_json: Any = orjson.loads(_install("/nowhere", "--dry-run", "-o", "json", *options).stdout)

    installation = replace(DEFAULT, **choices)
    wanted = {**types(installation.kinds), **process(installation)}
    assert in_stream(printed.stdout) == wanted
    assert by_key(as_json["items"]) == wanted


def test_the_dashboard_takes_the_rights_to_ask_who_its_users_are_and_a_service() -> None:
    before: dict[Any, Any] = {**process(DEFAULT)}
    after: dict[Any, Any] = {**process(replace(DEFAULT, dashboard=True))}
    role = ("ClusterRole", "", "setpoint")
    added = [one for one in after[role]["rules"] if one not in before[role]["rules"]]

    assert [(one["resources"], one["verbs"]) for one in added] == [
        (["tokenreviews"], ["create"]),
        (["subjectaccessreviews"], ["create"]),
    ]
    assert after.keys() - before.keys() == {("Service", "setpoint-system", "setpoint-dashboard")}
    refused = _install("/nowhere", "--dry-run", "--dashboard", "--watch-namespace", "team")
    assert (refused.exit_code, "leave one of the two out" in refused.stderr) == (1, True)


def test_without_crds_no_crd_is_printed() -> None:
    printed = in_stream(_install("/nowhere", "--dry-run", "--no-crds").stdout)

    assert printed == process(DEFAULT)


def test_kubernetes_objects_are_aggregated_on_request() -> None:
    printed = in_stream(_install("/nowhere", "--dry-run", "--aggregate-kubernetes-objects").stdout)

    assert printed == {**types(objects_too=True), **process(DEFAULT)}


def test_an_owner_without_the_kind_that_it_makes_is_refused() -> None:
    result = _install("/nowhere", "--dry-run", "--kinds", "TrusteeConfig")

    assert (result.exit_code, result.output.strip()) == (
        1,
        "error: --kinds: a TrusteeConfig makes a KbsConfig, which has to be handled as well: add KbsConfig",
    )


def test_an_unknown_kind_is_refused_with_a_suggestion() -> None:
    result = _install("/nowhere", "--dry-run", "--kinds", "SQLInstant")

    assert (result.exit_code, "did you mean SQLInstance?" in result.output) == (1, True)


def test_an_invalid_option_is_refused_before_any_request() -> None:
    result = _install("/nowhere", "--namespace", "Team_A")

    assert (result.exit_code, result.output.strip()) == (
        1,
        "error: 'Team_A' cannot be a namespace: write up to 63 lower-case letters, digits and -, "
        "with a letter or digit at both ends",
    )


@pytest.mark.parametrize("variable", ["KBS_IMAGE_NAME", "2=3", "=3", "A B=c"])
def test_a_variable_has_a_name_and_a_value(variable: str) -> None:
    result = _install("/nowhere", "--dry-run", "--env", variable)

    assert result.exit_code == 1
    assert "names no variable: write NAME=VALUE, such as KBS_IMAGE_NAME=kbs:1" in result.output


# --- Errors -----------------------------------------------------------------------------------------------------------


def test_a_missing_permission_of_the_user_is_named(api_server: Access) -> None:
    result = _install(api_server.kubeconfig_of("alice"))

    assert result.exit_code == 1
    assert "Give this user a role with the verb get on customresourcedefinitions.apiextensions.k8s.io" in result.output


def test_a_missing_kubeconfig_is_named(tmp_path: Path) -> None:
    result = _install(tmp_path / "kubeconfig")

    assert result.exit_code == 1
    assert str(tmp_path / "kubeconfig") in result.output

"""`setpoint crds`: what a cluster has to know, ready for kubectl."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from setpoint.cli.main import main

IAM = ("iampartialpolicies", "iampolicies", "iampolicymembers", "iamserviceaccountkeys")
NAMES = [
    "kbsconfigs.confidentialcontainers.org",
    "trusteeconfigs.confidentialcontainers.org",
    *(f"{name}.iam.cnrm.cloud.google.com" for name in IAM),
    "kubernetesobjects.setpoint.dev",
    "referencegrants.setpoint.dev",
    "sqldatabases.sql.cnrm.cloud.google.com",
    "sqlinstances.sql.cnrm.cloud.google.com",
    "sqlusers.sql.cnrm.cloud.google.com",
    "storagebuckets.storage.cnrm.cloud.google.com",
]
# The admission policy that warns of annotations, and its binding.
POLICIES = ["setpoint-annotations", "setpoint-annotations"]


def crds(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["crds", *arguments])


def test_crds_prints_a_document_for_each_kind_and_the_policy_that_goes_with_all() -> None:
    printed = crds()

    assert printed.exit_code == 0
    assert [one["metadata"]["name"] for one in yaml.safe_load_all(printed.output)] == [*NAMES, *POLICIES]


def test_the_yaml_has_no_aliases() -> None:
    assert "&id" not in crds().output


def test_the_json_is_a_list_as_kubectl_accepts_it() -> None:
    listed = json.loads(crds("-o", "json").output)

    assert (listed["apiVersion"], listed["kind"]) == ("v1", "List")
    assert [one["metadata"]["name"] for one in listed["items"]] == [*NAMES, *POLICIES]


@pytest.mark.parametrize("word", ["SQLUser", "sqlusers", "sqluser"])
def test_a_kind_is_named_in_any_case_singular_or_plural(word: str) -> None:
    assert yaml.safe_load(crds(word).output)["metadata"]["name"] == "sqlusers.sql.cnrm.cloud.google.com"
    assert json.loads(crds(word, "-o", "json").output)["kind"] == "CustomResourceDefinition"


def test_several_kinds_are_printed_in_the_order_of_the_arguments() -> None:
    printed = crds("StorageBucket", "SQLUser").output

    assert [one["spec"]["names"]["kind"] for one in yaml.safe_load_all(printed)] == ["StorageBucket", "SQLUser"]


def test_an_unknown_kind_is_refused_with_the_command_that_lists_the_known_ones() -> None:
    refused = crds("Pod")

    assert refused.exit_code == 1
    assert "no kind 'Pod' is known here; `setpoint kinds` lists those that are" in refused.output


def test_an_unknown_kind_is_refused_with_the_one_that_may_be_meant() -> None:
    refused = crds("Bucket")

    assert refused.exit_code == 1
    assert "no kind 'Bucket' is known here; did you mean StorageBucket?" in refused.output


def test_no_store_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SETPOINT_STORE", "nonsense://")

    assert crds().exit_code == 0


# --- Kinds of the catalogue -------------------------------------------------------------------------------------------


def kinds_in(printed: Result) -> list[str]:
    assert printed.exit_code == 0, printed.output
    return [one["spec"]["names"]["kind"] for one in yaml.safe_load_all(printed.output)]


def test_the_definitions_are_those_of_the_kinds_that_the_manifests_use(tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text(
        """apiVersion: pubsub.cnrm.cloud.google.com/v1beta1
kind: PubSubTopic
metadata: {name: orders}
---
apiVersion: storage.cnrm.cloud.google.com/v1beta1
kind: StorageBucket
metadata: {name: logs}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
"""
    )

    assert kinds_in(crds("-f", str(tmp_path))) == ["PubSubTopic", "StorageBucket"]
    assert kinds_in(crds("-f", str(tmp_path), "ComputeNetwork")) == ["ComputeNetwork", "PubSubTopic", "StorageBucket"]


def test_the_definitions_of_a_service_are_printed_together() -> None:
    assert {"PubSubSchema", "PubSubSubscription", "PubSubTopic"} <= set(kinds_in(crds("--service", "pubsub")))


def test_a_service_that_is_not_known_is_refused() -> None:
    refused = crds("--service", "mainframe")

    assert refused.exit_code == 1
    assert "--service: no kind of the catalogue is of 'mainframe'" in refused.output


def test_manifests_of_no_kind_of_ours_are_refused(tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text("{apiVersion: v1, kind: Pod, metadata: {name: a}}")
    refused = crds("-f", str(tmp_path / "pod.yaml"))

    assert refused.exit_code == 1
    assert "no manifest is of a kind that has a definition here" in refused.output

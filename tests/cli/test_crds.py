"""`setpoint crds`: what a cluster has to know, ready for kubectl."""

import json

import pytest
import yaml
from click.testing import CliRunner, Result

from setpoint.cli.main import main

NAMES = [
    "kbsconfigs.confidentialcontainers.org",
    "trusteeconfigs.confidentialcontainers.org",
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


def test_an_unknown_kind_is_refused_with_the_known_ones() -> None:
    refused = crds("Pod")

    assert refused.exit_code == 1
    known = "KbsConfig, KubernetesObject, ReferenceGrant, SQLDatabase, SQLInstance, SQLUser, StorageBucket"
    assert f"no kind 'Pod' is known here; there is {known}, TrusteeConfig" in refused.output


def test_an_unknown_kind_is_refused_with_the_one_that_may_be_meant() -> None:
    refused = crds("Bucket")

    assert refused.exit_code == 1
    assert "no kind 'Bucket' is known here; did you mean StorageBucket?" in refused.output


def test_no_store_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SETPOINT_STORE", "nonsense://")

    assert crds().exit_code == 0

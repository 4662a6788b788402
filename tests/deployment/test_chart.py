"""The Helm chart renders the same objects as the source, with values to choose from."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import yaml

from setpoint import __version__
from setpoint.deployment.installation import Installation
from setpoint.deployment.manifests import service_monitor
from setpoint.engine.management import CookieLocation
from setpoint.engine.tenancy.tenants import TenancyMode
from tests.deployment.chart import rendered, run, without
from tests.deployment.deploy_files import CHART, KEEP, prometheus_rule
from tests.deployment.installed_objects import ALL_KINDS, DEFAULT, TRUSTEE_KINDS, Key, by_key, process, types

VALUES = (CHART / "values.yaml").read_text(encoding="utf-8")
SCHEMA = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
OBJECT = ["KubernetesObject"]
DEPLOYMENT = ("Deployment", "setpoint-system", "setpoint")


def _without_namespace(objects: Mapping[Any, Any]) -> dict[Any, Any]:
    """Helm creates it with `--create-namespace`."""
    return {key: one for key, one in objects.items() if key[0] != "Namespace"}


# --- The same objects -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "choices"),
    [
        ([], {}),
        (["replicas=1"], {"replicas": 1}),
        (["replicas=5", "shards=20"], {"replicas": 5, "shards": 20}),
        (["watchNamespace=team"], {"watch_namespace": "team"}),
        (["watchNamespace=setpoint-system"], {"watch_namespace": "setpoint-system"}),
        (
            ["image.repository=registry.example.com/setpoint"],
            {"image": f"registry.example.com/setpoint:{__version__}"},
        ),
        (["image.tag=next"], {"image": "setpoint:next"}),
        (["kinds={SQLUser,SQLInstance}"], {"kinds": ("SQLUser", "SQLInstance")}),
        (["kinds={sqlusers,SQLUser}"], {"kinds": ("SQLUser",)}),
        (["kinds={StorageBucket}"], {"kinds": ("StorageBucket",)}),
        (["kinds={KbsConfig}"], {"kinds": ("KbsConfig",)}),
        (["kinds={computeaddresses,AlloyDBUser}"], {"kinds": ("ComputeAddress", "AlloyDBUser")}),
        ([f"kinds={{{','.join(ALL_KINDS)}}}"], {"kinds": ALL_KINDS}),
        (["kinds={KbsConfig,TrusteeConfig}", "watchNamespace=a"], {"kinds": TRUSTEE_KINDS, "watch_namespace": "a"}),
        ([f"image.digest=sha256:{'0' * 64}"], {"image": f"setpoint@sha256:{'0' * 64}"}),
        (["dashboard.enabled=true"], {"dashboard": True}),
        (["tenancy=single"], {"tenancy": TenancyMode.SINGLE}),
        (["cookieLocation=annotation"], {"cookies": CookieLocation.ANNOTATION}),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, list) else "",
)
def test_a_release_has_the_objects_of_setpoint_install(settings: list[str], choices: dict[str, Any]) -> None:
    assert rendered("crds.install=false", *settings) == _without_namespace(process(replace(DEFAULT, **choices)))


def test_a_release_may_be_in_any_namespace() -> None:
    assert rendered("crds.install=false", namespace="elsewhere") == _without_namespace(
        process(replace(DEFAULT, namespace="elsewhere"))
    )


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ([], types()),
        (["kinds={KubernetesObject}"], types(OBJECT)),
        (["kinds={KubernetesObject}", "aggregateKubernetesObjects=true"], types(OBJECT, objects_too=True)),
        (["aggregateKubernetesObjects=true"], types(objects_too=True)),
        ([f"kinds={{{','.join(ALL_KINDS)}}}"], types(ALL_KINDS)),
    ],
    ids=["default", "one", "one aggregated", "aggregated", "all"],
)
def test_the_crds_of_the_kinds_are_installed_and_kept_on_uninstall(settings: list[str], wanted: dict[Key, Any]) -> None:
    kinds = {key: one for key, one in rendered(*settings).items() if key in types(ALL_KINDS)}

    assert {key for key, one in kinds.items() if one["metadata"]["annotations"] != KEEP} == set()
    assert without(kinds, frozenset({"annotations"})) == without(wanted, frozenset({"annotations"}))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["kinds={SQLInstant}"], 'kinds: no kind "SQLInstant" is known here; there is iampartialpolicy, '),
        (["dashboard.enabled=true", "watchNamespace=team"], "leave one of the two out"),
        (["kinds={TrusteeConfig}"], "kinds: a TrusteeConfig makes a KbsConfig, which has to be handled as well"),
        (
            ["watchNamespace=team", "serviceAccount.name=setpoint"],
            "serviceAccount.name: setpoint is the account of the tenant",
        ),
    ],
)
def test_values_that_contradict_each_other_are_refused(settings: list[str], message: str) -> None:
    values = [word for setting in settings for word in ("--set", setting)]

    done = run("template", "setpoint", str(CHART), "--namespace", "team", *values)

    assert done.returncode != 0
    assert message in done.stderr


def test_a_service_monitor_is_rendered_when_enabled() -> None:
    ((key, monitor),) = by_key([service_monitor(Installation())]).items()

    assert key not in rendered()
    assert rendered("serviceMonitor.enabled=true")[key] == monitor


def test_alerts_are_rendered_when_enabled() -> None:
    ((key, rule),) = by_key([prometheus_rule(Installation())]).items()

    assert key not in rendered()
    assert rendered("prometheusRule.enabled=true")[key] == rule


def test_two_releases_share_no_object() -> None:
    first, second = rendered("crds.install=false"), rendered("crds.install=false", release="blue")

    assert set(first) & set(second) == set()
    assert {name for _, _, name in second} == {
        "blue-setpoint",
        "blue-setpoint-leases",
        "blue-setpoint-metrics",
        "blue-setpoint-writes",
    }


def test_the_policy_covers_the_kinds_of_the_catalogue_that_are_named() -> None:
    key = ("ValidatingAdmissionPolicy", "", "setpoint-annotations")
    (plain, named) = (rendered(*words)[key]["spec"] for words in ([], ["kinds={PubSubTopic}"]))
    rules, more = (one.pop("matchConstraints")["resourceRules"] for one in (plain, named))

    assert more[:-1] == rules
    assert (more[-1]["apiGroups"], more[-1]["resources"]) == (["pubsub.cnrm.cloud.google.com"], ["pubsubtopics"])
    assert named == plain


def test_the_definitions_of_the_catalogue_are_not_in_the_chart() -> None:
    assert [key for key in rendered("kinds={PubSubTopic}") if "pubsub" in key[2]] == []


# --- Values -----------------------------------------------------------------------------------------------------------


def test_pods_act_as_a_google_service_account_without_a_key() -> None:
    objects = rendered(
        "google.serviceAccount=keeper@shop.iam.gserviceaccount.com", "serviceAccount.annotations.team=sre"
    )

    assert objects["ServiceAccount", "setpoint-system", "setpoint"]["metadata"]["annotations"] == {
        "iam.gke.io/gcp-service-account": "keeper@shop.iam.gserviceaccount.com",
        "team": "sre",
    }


def test_pods_act_with_a_key_that_they_can_read() -> None:
    pod = rendered("google.keySecret=keeper")[DEPLOYMENT]["spec"]["template"]["spec"]
    container = pod["containers"][0]

    assert pod["volumes"] == [{"name": "google-key", "secret": {"secretName": "keeper", "defaultMode": 0o440}}]
    # The file is readable by its group: the pod has to be in it.
    assert pod["securityContext"]["fsGroup"] == pod["securityContext"]["runAsGroup"]
    assert {"name": "GOOGLE_APPLICATION_CREDENTIALS", "value": "/var/run/secrets/google/key.json"} in container["env"]
    assert container["volumeMounts"][0]["mountPath"] == "/var/run/secrets/google"


def test_scheduling_values_are_in_the_pod_template() -> None:
    pod = rendered(
        "priorityClassName=high", "nodeSelector.disk=fast", "tolerations[0].operator=Exists", "podLabels.team=sre"
    )[DEPLOYMENT]["spec"]["template"]

    assert pod["metadata"]["labels"]["team"] == "sre"
    assert [pod["spec"][name] for name in ("priorityClassName", "nodeSelector", "tolerations")] == [
        "high",
        {"disk": "fast"},
        [{"operator": "Exists"}],
    ]


def test_values_become_arguments_and_environment_variables() -> None:
    pod = rendered(
        "kinds={SQLUser,SQLInstance}", "logLevel=debug", "graceSeconds=50", "env[0].name=A", "env[0].value=b"
    )
    spec = pod[DEPLOYMENT]["spec"]["template"]["spec"]
    arguments = spec["containers"][0]["args"]

    assert {"--kinds=SQLUser,SQLInstance", "--log-level=debug", "--grace=50s"} <= set(arguments)
    assert spec["terminationGracePeriodSeconds"] == 60
    assert {"name": "A", "value": "b"} in spec["containers"][0]["env"]


def test_addresses_of_clusters_are_allowed_and_denied() -> None:
    pod = rendered("clusterAddresses.allow={10.100.0.0/16,api.example.com}", "clusterAddresses.deny={10.244.0.0/16}")
    arguments = pod[DEPLOYMENT]["spec"]["template"]["spec"]["containers"][0]["args"]

    assert [one for one in arguments if "cluster-address" in one] == [
        "--allow-cluster-address=10.100.0.0/16",
        "--allow-cluster-address=api.example.com",
        "--deny-cluster-address=10.244.0.0/16",
    ]


def test_access_to_metrics_can_be_restricted() -> None:
    policy = rendered("networkPolicy.from[0].podSelector.matchLabels.app=prometheus")
    ingress = policy["NetworkPolicy", "setpoint-system", "setpoint"]["spec"]["ingress"]

    assert ingress[0]["from"] == [{"podSelector": {"matchLabels": {"app": "prometheus"}}}]


# --- The chart itself -------------------------------------------------------------------------------------------------


def test_helm_lint_passes() -> None:
    done = run("lint", "--strict", str(CHART))

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_chart_has_the_version_of_the_program() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))

    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


def test_every_value_has_a_comment() -> None:
    lines = VALUES.splitlines()
    values = [number for number, line in enumerate(lines) if re.match(r"(?:  )?[a-zA-Z]+: \S", line)]

    assert len(values) > 25
    assert [lines[number] for number in values if not lines[number - 1].lstrip().startswith("#")] == []


def test_the_schema_has_exactly_the_values() -> None:
    def names(values: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
        known = schema["properties"]
        below = [
            name
            for key, value in values.items()
            if isinstance(value, dict) and "properties" in known.get(key, {})
            for name in names(value, known[key])
        ]
        return [*(key for key in {*values, *known} if key not in values or key not in known), *below]

    # Helm itself puts the values of all charts there.
    assert names(yaml.safe_load(VALUES), SCHEMA) == ["global"]


@pytest.mark.parametrize(
    "setting",
    [
        "replicas=0",
        "shards=none",
        "watchNamespace=Team_A",
        "image.digest=sha256:0",
        "image.pullPolicy=Sometimes",
        "logLevel=loud",
        "crds.install=maybe",
        "google.serviceAccount=keeper",
        "replica=3",
        "image.name=setpoint",
    ],
)
def test_an_invalid_value_is_refused(setting: str) -> None:
    done = run("template", "setpoint", str(CHART), "--set", setting)

    assert done.returncode != 0
    assert setting.partition("=")[0].rpartition(".")[2] in done.stderr

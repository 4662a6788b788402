"""The CustomResourceDefinitions of both kinds on a real API server accept and refuse what upstream's do."""

import json
from typing import Any

import pytest
import yaml

from tests.cluster.crds.resources import printed_definitions
from tests.cluster.trustee.manifests import kbs_config, trustee_config
from tests.cluster.trustee.trustee_cluster import TrusteeCluster
from tests.cluster.trustee.trustee_namespace import TrusteeNamespace


@pytest.fixture(scope="module")
def printed() -> str:
    """The output of `setpoint crds TrusteeConfig KbsConfig`."""
    return printed_definitions("TrusteeConfig", "KbsConfig")


def _spec(printed: str, kind: str) -> Any:
    (found,) = (one["spec"] for one in yaml.safe_load_all(printed) if one["spec"]["names"]["kind"] == kind)
    return found


def test_applying_them_again_changes_nothing(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace, printed: str
) -> None:
    def versions() -> list[Any]:
        names = ("trusteeconfigs.confidentialcontainers.org", "kbsconfigs.confidentialcontainers.org")
        found = [json.loads(trustee.kubectl("get", "crd", name, "-o", "json")) for name in names]
        return [(one["metadata"]["resourceVersion"], _conditions(one)) for one in found]

    before = versions()
    trustee.kubectl("apply", "--server-side", "-f", "-", stdin=printed)

    assert versions() == before
    assert [conditions for _, conditions in before] == [{"NamesAccepted": "True", "Established": "True"}] * 2
    trustee.kubectl("apply", "--dry-run=server", "-f", "-", stdin=printed)
    assert trustee_cluster.controller.bugs() == []


def _conditions(definition: Any) -> dict[str, str]:
    return {one["type"]: one["status"] for one in definition["status"]["conditions"]}


@pytest.mark.parametrize(("kind", "plural"), [("TrusteeConfig", "trusteeconfigs"), ("KbsConfig", "kbsconfigs")])
def test_names_scope_and_status_are_those_of_upstream(printed: str, kind: str, plural: str) -> None:
    spec = _spec(printed, kind)

    assert (spec["group"], spec["names"]["plural"]) == ("confidentialcontainers.org", plural)
    assert spec["scope"] == "Namespaced"
    (version,) = spec["versions"]
    assert (version["name"], version["subresources"]) == ("v1alpha1", {"status": {}})


def test_the_status_of_a_kbs_config_requires_is_ready(printed: str) -> None:
    (version,) = _spec(printed, "KbsConfig")["versions"]

    status = version["schema"]["openAPIV3Schema"]["properties"]["status"]
    assert (status["required"], status["properties"]["isReady"]["type"]) == (["isReady"], "boolean")


# --- Accepted specs ---------------------------------------------------------------------------------------------------

EVERYTHING = kbs_config(
    "own",
    kbsConfigMapName="a",
    kbsAsConfigMapName="b",
    kbsRvpsConfigMapName="c",
    kbsRvpsRefValuesConfigMapName="d",
    kbsAuthSecretName="e",
    kbsServiceType="LoadBalancer",
    kbsDeploymentType="MicroservicesDeployment",
    kbsHttpsKeySecretName="f",
    kbsHttpsCertSecretName="g",
    kbsAttestationKeySecretName="h",
    kbsAttestationCertSecretName="i",
    kbsSecretResources=["j"],
    kbsAttestationPolicyConfigMapName="k",
    kbsGpuAttestationPolicyConfigMapName="l",
    kbsResourcePolicyConfigMapName="m",
    ibmSEConfigSpec={"certStorePvc": "n"},
    KbsEnvVars={"RUST_LOG": ""},
    kbsLocalCertCacheSpec={"secrets": [{"secretName": "o", "mountPath": ""}]},
    KbsDeploymentSpec={"replicas": 0},
)


def _dry_run(trustee: TrusteeNamespace, document: Any) -> Any:
    """The object that the API server would store."""
    return json.loads(
        trustee.kubectl("create", "--dry-run=server", "-f", "-", "-o", "json", stdin=json.dumps(document))
    )


def test_every_field_of_upstream_is_accepted(trustee: TrusteeNamespace) -> None:
    custom = {"profile": "custom", "minVersion": "1.2", "maxVersion": "1.3", "ciphers": ["a"], "groups": ["x25519"]}
    whole = trustee_config(
        profileType="Restricted",
        kbsServiceType="NodePort",
        httpsSpec={"tlsSecretName": "a"},
        attestationTokenVerificationSpec={"tlsSecretName": "b"},
        ibmSE={"pvName": "c"},
        tlsConfig=custom,
    )

    assert _dry_run(trustee, whole)["spec"] == whole["spec"]
    assert _dry_run(trustee, EVERYTHING)["spec"] == EVERYTHING["spec"]


def test_the_sample_of_upstream_is_accepted(trustee: TrusteeNamespace) -> None:
    sample = trustee_config(httpsSpec=None, attestationTokenVerificationSpec={"certificate": "pruned"})
    done = trustee.kubectl.run(
        "create", "--dry-run=server", "--validate=false", "-f", "-", "-o", "json", stdin=json.dumps(sample)
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["spec"]["attestationTokenVerificationSpec"] == {}


def test_no_defaults_are_added_to_a_spec(trustee: TrusteeNamespace) -> None:
    assert _dry_run(trustee, trustee_config(tlsConfig={}))["spec"] == trustee_config(tlsConfig={})["spec"]


# --- Refused specs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (trustee_config(ibmSE={}), "spec.ibmSE.pvName: Required value"),
        (trustee_config(tlsConfig={"profile": "none"}), 'spec.tlsConfig.profile: Unsupported value: "none"'),
        (
            trustee_config(tlsConfig={"minVersion": "1.4"}),
            r"spec.tlsConfig.minVersion in body should match '^1\.[0-3]$'",
        ),
        (trustee_config(tlsConfig={"maxVersion": "1.x"}), r"maxVersion in body should match '^1\.[0-3]$'"),
        (
            trustee_config(tlsConfig={"profile": "custom", "minVersion": "1.3", "maxVersion": "1.2"}),
            "minVersion must not be greater than maxVersion",
        ),
        (trustee_config(kbsReplicas=1), 'unknown field "spec.kbsReplicas"'),
        (kbs_config("own", kbsDeploymentType="Other"), 'spec.kbsDeploymentType: Unsupported value: "Other"'),
        (kbs_config("own", kbsSecretResources="one"), "spec.kbsSecretResources"),
        (kbs_config("own", KbsDeploymentSpec={"replicas": "two"}), "spec.KbsDeploymentSpec.replicas"),
        (kbs_config("own", KbsDeploymentSpec={"replicas": 2**31}), "spec.KbsDeploymentSpec.replicas"),
        (kbs_config("own", kbsLocalCertCacheSpec={"secrets": [{}]}), "secrets[0].secretName: Required value"),
        (kbs_config("own", KbsEnvVars={"A": 1}), "spec.KbsEnvVars.A"),
    ],
)
def test_an_invalid_spec_is_refused_with_the_field(trustee: TrusteeNamespace, document: Any, message: str) -> None:
    done = trustee.kubectl.run("create", "--dry-run=server", "-f", "-", stdin=json.dumps(document))

    assert done.returncode == 1, done.stdout
    assert message in done.stderr

"""The spec of the KbsConfig that a TrusteeConfig stands for."""

from setpoint.core.values import Json
from setpoint.kinds.trustee.trustee_config.names import SAMPLE_SECRET, Names
from setpoint.kinds.trustee.trustee_config.spec import ProfileType, TrusteeConfigSpec


def kbs_spec(names: Names, spec: TrusteeConfigSpec) -> dict[str, Json]:
    """What is generated; what is not there is cleared where it is managed."""
    return {
        "kbsDeploymentType": "AllInOneDeployment",
        "KbsDeploymentSpec": {"replicas": 1},
        "kbsConfigMapName": names.kbs_config,
        "kbsAuthSecretName": names.auth_secret,
        "kbsResourcePolicyConfigMapName": names.resource_policy,
        "kbsRvpsRefValuesConfigMapName": names.reference_values,
        "kbsSecretResources": [SAMPLE_SECRET],
        **_attestation(names, spec),
        **_tls(names, spec),
        **({"kbsServiceType": spec.kbsServiceType} if spec.kbsServiceType else {}),
        **({"KbsEnvVars": {"RUST_LOG": "debug"}} if spec.profile is ProfileType.PERMISSIVE else {}),
    }


def _attestation(names: Names, spec: TrusteeConfigSpec) -> dict[str, Json]:
    if spec.ibmSE:
        return {"ibmSEConfigSpec": {"certStorePvc": names.ibm_se_claim}}
    return {
        "kbsAttestationPolicyConfigMapName": names.cpu_policy,
        "kbsGpuAttestationPolicyConfigMapName": names.gpu_policy,
    }


def _tls(names: Names, spec: TrusteeConfigSpec) -> dict[str, Json]:
    found: dict[str, Json] = {}
    if spec.https_secret:
        found |= {"kbsHttpsKeySecretName": names.https_key, "kbsHttpsCertSecretName": names.https_certificate}
    if spec.token_secret:
        found |= {
            "kbsAttestationKeySecretName": names.token_key,
            "kbsAttestationCertSecretName": names.token_certificate,
        }
    return found

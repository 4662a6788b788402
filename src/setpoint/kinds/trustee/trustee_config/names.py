"""What a TrusteeConfig calls its children."""

from typing import Final, NamedTuple

# The same for all: clients ask for it by this name.
SAMPLE_SECRET: Final = "attestation-status"


class Names(NamedTuple):
    """The names that follow from a TrusteeConfig's own."""

    parent: str

    @property
    def kbs_config(self) -> str:
        """The KbsConfig, and the ConfigMap with its settings."""
        return f"{self.parent}-kbs-config"

    @property
    def auth_secret(self) -> str:
        """The administrator's key pair."""
        return f"{self.parent}-auth-secret"

    @property
    def resource_policy(self) -> str:
        """Who gets which resource."""
        return f"{self.parent}-resource-policy"

    @property
    def reference_values(self) -> str:
        """What measurements are compared with."""
        return f"{self.parent}-rvps-reference-values"

    @property
    def cpu_policy(self) -> str:
        """How evidence of a CPU is judged."""
        return f"{self.parent}-attestation-policy-cpu"

    @property
    def gpu_policy(self) -> str:
        """How evidence of a GPU is judged."""
        return f"{self.parent}-attestation-policy-gpu"

    @property
    def ibm_se_claim(self) -> str:
        """The claim on the volume with IBM's certificates."""
        return f"{self.parent}-ibmse-certstore-pvc"

    @property
    def https_key(self) -> str:
        """The server's private key."""
        return f"{self.parent}-https-key-secret"

    @property
    def https_certificate(self) -> str:
        """The server's certificate."""
        return f"{self.parent}-https-cert-secret"

    @property
    def token_key(self) -> str:
        """The key that tokens are signed with."""
        return f"{self.parent}-attestation-key-secret"

    @property
    def token_certificate(self) -> str:
        """The certificate of tokens."""
        return f"{self.parent}-attestation-cert-secret"

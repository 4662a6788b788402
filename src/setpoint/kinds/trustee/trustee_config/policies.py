"""Policies in Rego: access to resources, and appraisal of evidence.

An appraisal is a number for each claim, as in AR4SI: 2 to 31 affirms, 32 to 95 warns, 96 and more contraindicates; 0
is no claim. The names of rules, claims and reference values are those that the attestation service knows.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from setpoint.kinds.trustee.trustee_config.spec import ProfileType, TrusteeConfigSpec

_ALLOW_ALL: Final = """\
# For trying out: whoever asks for a resource gets it.
package policy

import rego.v1

default allow := false

allow if data.plugin == "resource"
"""

_ALLOW_ATTESTED: Final = """\
# Whoever proved what they are, in every part, gets what they ask for.
package policy

import rego.v1

default allow := false

allow if {
	count(input.submods) > 0
	every appraisal in input.submods {
		appraisal["ear.status"] == "affirming"
	}
}
"""

_SECURE_EXECUTION: Final = """\
# IBM Secure Execution: one image on one kind of host. Put the values of yours in the place of those in angle brackets.
package policy

import rego.v1

default allow := false

evidence := input.submods.cpu0["ear.veraison.annotated-evidence"].se

allow if {
	data.plugin == "resource"
	evidence.version == 256
	evidence.tag == "<se.tag>"
	evidence.image_phkh == "<se.image_phkh>"
	evidence.attestation_phkh == "<se.attestation_phkh>"
}
"""

_CLAIMS: Final = """\
package policy

import rego.v1

# What is not shown: unknown executables, unknown hardware, a configuration that nobody can see.
default executables := 33
default hardware := 97
default configuration := 36

# Nothing is asserted about the rest.
default file_system := 0
default instance_identity := 0
default runtime_opaque := 0
default storage_opaque := 0
default sourced_data := 0

trust_claims := {
	"configuration": configuration,
	"executables": executables,
	"file-system": file_system,
	"hardware": hardware,
	"instance-identity": instance_identity,
	"runtime-opaque": runtime_opaque,
	"sourced-data": sourced_data,
	"storage-opaque": storage_opaque,
}

# Whether a value is one of the reference values of that name.
known(value, name) if value in query_reference_value(name)
"""

_CPU: Final = """\
# AMD SEV-SNP.
snp := input.snp

executables := 3 if known(snp.measurement, "snp_launch_measurement")

hardware := 2 if {
	known(snp.reported_tcb_bootloader, "snp_bootloader")
	known(snp.reported_tcb_microcode, "snp_microcode")
	known(snp.reported_tcb_snp, "snp_snp_svn")
	known(snp.reported_tcb_tee, "snp_tee_svn")
}

snp_is_closed if {
	snp.policy_debug_allowed == false
	snp.policy_migrate_ma == false
}

# Every setting is the one that is wanted; or at least none opens the guest.
configuration := 2 if {
	snp_is_closed
	snp.platform_smt_enabled == query_reference_value("snp_smt_enabled")
	snp.platform_tsme_enabled == query_reference_value("snp_tsme_enabled")
	snp.policy_abi_major == query_reference_value("snp_guest_abi_major")
	snp.policy_abi_minor == query_reference_value("snp_guest_abi_minor")
	snp.policy_single_socket == query_reference_value("snp_single_socket")
	snp.policy_smt_allowed == query_reference_value("snp_smt_allowed")
} else := 3 if snp_is_closed

# Intel TDX.
tdx := input.tdx

tdx_boot_is_known if {
	known(tdx.quote.body.rtmr_1, "rtmr_1")
	known(tdx.quote.body.rtmr_2, "rtmr_2")
}

# A kernel that the firmware started is in the event log; one that a boot loader started is not.
executables := 3 if {
	tdx_boot_is_known
	some image in tdx.uefi_event_logs
	image.type_name == "EV_EFI_BOOT_SERVICES_APPLICATION"
	"File(kernel)" in image.details.device_paths
	some kernel in image.digests
	kernel.digest == query_reference_value("tdvfkernel")
	some options in tdx.uefi_event_logs
	options.type_name == "EV_EVENT_TAG"
	options.details.string == "LOADED_IMAGE::LoadOptions"
	some parameters in options.digests
	parameters.digest == query_reference_value("tdvfkernelparams")
} else := 4 if tdx_boot_is_known

# A quote for TDX, by the quoting enclave of Intel.
is_intels(quote) if {
	quote.header.tee_type == "81000000"
	quote.header.vendor_id == "939a7233f79c4ca9940a0db3957f0607"
}

hardware := 2 if {
	is_intels(tdx.quote)
	known(tdx.quote.body.mr_td, "mr_td")
	tdx.tcb_status == "UpToDate"
	tdx.collateral_expiration_status == "0"
}

configuration := 2 if {
	tdx.td_attributes.debug == false
	known(tdx.quote.body.xfam, "xfam")
}

# AMD SEV-SNP behind the virtual TPM of Azure.
azure_snp := input["az-snp-vtpm"]

executables := 3 if {
	known(azure_snp.measurement, "measurement")
	known(azure_snp.tpm.pcr11, "snp_pcr11")
}

hardware := 2 if {
	known(azure_snp.reported_tcb_bootloader, "tcb_bootloader")
	known(azure_snp.reported_tcb_microcode, "tcb_microcode")
	known(azure_snp.reported_tcb_snp, "tcb_snp")
	known(azure_snp.reported_tcb_tee, "tcb_tee")
}

configuration := 2 if {
	known(azure_snp.platform_smt_enabled, "smt_enabled")
	known(azure_snp.platform_tsme_enabled, "tsme_enabled")
	known(azure_snp.policy_abi_major, "abi_major")
	known(azure_snp.policy_abi_minor, "abi_minor")
	known(azure_snp.policy_single_socket, "single_socket")
	known(azure_snp.policy_smt_allowed, "smt_allowed")
}

# Intel TDX behind the virtual TPM of Azure.
azure_tdx := input["az-tdx-vtpm"]

executables := 3 if known(azure_tdx.tpm.pcr11, "tdx_pcr11")

hardware := 2 if {
	is_intels(azure_tdx.quote)
	known(azure_tdx.quote.body.mr_td, "mr_td")
	azure_tdx.tcb_status == "UpToDate"
}

configuration := 2 if known(azure_tdx.quote.body.xfam, "xfam")

# A TPM says what was started, and nothing of the machine's settings.
executables := 3 if known(input.tpm.pcr11, "tpm_pcr11")

hardware := 2 if input.tpm

configuration := 0 if input.tpm

# IBM Secure Execution: evidence that got this far was checked, measurements and all.
executables := 3 if input.se

hardware := 2 if input.se

configuration := 2 if input.se

# The sample attester proves nothing: it is there for trying out.
sample := input.sample

executables := 3 if known(sample.launch_digest, "launch_digest")

hardware := 2 if {
	known(sample.svn, "svn")
	sample.platform_version.major == query_reference_value("major_version")
	sample.platform_version.minor >= query_reference_value("minimum_minor_version")
}

configuration := 2 if sample.debug == false
"""

_GPU: Final = """\
# NVIDIA.
gpu := input.nvidia

is_good(chain) if {
	chain["x-nvidia-cert-ocsp-status"] == "good"
	chain["x-nvidia-cert-status"] == "valid"
}

hardware := 2 if {
	is_good(gpu["x-nvidia-gpu-attestation-report-cert-chain"])
	gpu["x-nvidia-gpu-arch-check"] == true
	every check in ["cert-chain-fwid-match", "parsed", "signature-verified"] {
		gpu[concat("-", ["x-nvidia-gpu-attestation-report", check])] == true
	}
}

# What the vendor says of its firmware and driver was fetched, is the vendor's own, and fits what was measured.
executables := 3 if {
	is_good(gpu["x-nvidia-gpu-vbios-rim-cert-chain"])
	gpu.measres == "success"
	every software in ["driver", "vbios"] {
		every check in [
			"fetched",
			"measurements-available",
			"schema-validated",
			"signature-verified",
			"version-match",
		] {
			gpu[concat("-", ["x-nvidia-gpu", software, "rim", check])] == true
		}
	}
}

gpu_is_closed if {
	gpu.secboot == true
	gpu.dbgstat == "disabled"
}

configuration := 2 if {
	gpu_is_closed
	known(gpu["x-nvidia-gpu-vbios-version"], "allowed_vbios_versions")
	known(gpu["x-nvidia-gpu-driver-version"], "allowed_driver_versions")
} else := 3 if gpu_is_closed

# The sample device proves nothing: it is there for trying out.
hardware := 2 if known(input.sampledevice.svn, "device_svn")
"""

CPU_ATTESTATION: Final = f"# How evidence of a CPU is judged.\n{_CLAIMS}\n{_CPU}"
GPU_ATTESTATION: Final = f"# How evidence of a GPU is judged.\n{_CLAIMS}\n{_GPU}"


class ResourceAccess(StrEnum):
    """Which clients a generated resource policy gives resources to."""

    ALL = "every client"
    ATTESTED = "clients whose evidence affirms all that they claim"
    SECURE_EXECUTION = "one image of IBM Secure Execution"


RESOURCE_POLICIES: Final[Mapping[ResourceAccess, str]] = {
    ResourceAccess.ALL: _ALLOW_ALL,
    ResourceAccess.ATTESTED: _ALLOW_ATTESTED,
    ResourceAccess.SECURE_EXECUTION: _SECURE_EXECUTION,
}


def resource_access(spec: TrusteeConfigSpec) -> ResourceAccess:
    """The access that the spec asks for."""
    if spec.ibmSE:
        return ResourceAccess.SECURE_EXECUTION
    return ResourceAccess.ATTESTED if spec.profile is ProfileType.RESTRICTED else ResourceAccess.ALL


def resource_policy(spec: TrusteeConfigSpec) -> str:
    """The policy for access to resources."""
    return RESOURCE_POLICIES[resource_access(spec)]

"""Generated objects that users edit, over several passes of their TrusteeConfig."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.merge.children import child_update, last_generated_status, read_last_generated
from setpoint.core.merge.merge_report import Resolution
from setpoint.core.values.json_types import Json
from tests.kinds.trustee.trustee_objects import made

SETTINGS = "ConfigMap/tc-kbs-config"
POLICY = "ConfigMap/tc-resource-policy"
KBS = "KbsConfig/tc-kbs-config"
RESTRICTED = {"profileType": "Restricted"}


class Cluster:
    """The live children, and the last generated values in the status of their owner."""

    def __init__(self, **spec: Any) -> None:
        self.live: dict[str, Any] = {key: child.object for key, child in made(**spec).items()}
        self.memory: Json = last_generated_status(list(made(**spec).values()))
        self.resolutions: dict[str, Resolution] = {}

    def edit(self, key: str, old: str, new: str) -> None:
        """Changes the one text of a ConfigMap."""
        ((name, text),) = self.live[key]["data"].items()
        assert old in text
        self.live[key] = {**self.live[key], "data": {name: text.replace(old, new)}}

    def text(self, key: str) -> str:
        (text,) = self.live[key]["data"].values()
        return str(text)

    def reconcile(self, **spec: Any) -> set[str]:
        """One pass; the children that it wrote."""
        written, self.resolutions = set(), {}
        for key, child in made(**spec).items():
            renewal = child_update(child, self.live[key], read_last_generated(self.memory, child))
            self.resolutions |= {f"{key} {one.path}": one.resolution for one in renewal.resolutions}
            if renewal.object is not self.live[key]:
                self.live[key] = renewal.object
                written.add(key)
        self.memory = last_generated_status(list(made(**spec).values()))
        return written


def test_an_idle_pass_writes_nothing() -> None:
    cluster = Cluster()

    assert [cluster.reconcile() for _ in range(3)] == [set(), set(), set()]


def test_a_profile_switch_changes_unedited_contents() -> None:
    cluster = Cluster()

    assert cluster.reconcile(**RESTRICTED) == {SETTINGS, POLICY, KBS}
    assert "affirming" in cluster.text(POLICY)
    assert "insecure_http = false" in cluster.text(SETTINGS)
    assert "KbsEnvVars" not in cluster.live[KBS]["spec"]
    assert cluster.reconcile(**RESTRICTED) == set()
    assert cluster.resolutions == {}


def test_a_profile_switch_can_be_undone() -> None:
    cluster, fresh = Cluster(), Cluster()
    cluster.reconcile(**RESTRICTED)
    cluster.reconcile()

    assert cluster.text(SETTINGS) == fresh.text(SETTINGS)
    assert cluster.live[KBS]["spec"]["KbsEnvVars"] == {"RUST_LOG": "debug"}


def test_a_profile_switch_keeps_edits_and_reports_them() -> None:
    cluster = Cluster()
    cluster.edit(POLICY, "default allow := false", "default allow := true")

    written = cluster.reconcile(**RESTRICTED)

    assert POLICY not in written
    assert cluster.resolutions[f'{POLICY} data["resource-policy.rego"]'] is Resolution.CONFLICTING
    cluster.reconcile(**RESTRICTED)
    assert cluster.resolutions == {f'{POLICY} data["resource-policy.rego"]': Resolution.PRESERVED}


def test_tls_follows_its_config_in_an_edited_file() -> None:
    cluster = Cluster(**RESTRICTED)
    cluster.edit(SETTINGS, "worker_count = 4", "worker_count = 16 # more")

    assert cluster.reconcile(**RESTRICTED, tlsConfig={"profile": "modern"}) == {SETTINGS}
    assert "worker_count = 16 # more" in cluster.text(SETTINGS)
    assert 'tls_profile = "modern"' in cluster.text(SETTINGS)
    assert "# TLS configuration - Mozilla modern profile" in cluster.text(SETTINGS)
    assert cluster.resolutions == {f'{SETTINGS} data["kbs-config.toml"].text': Resolution.PRESERVED}
    assert cluster.reconcile(**RESTRICTED, tlsConfig={"profile": "modern"}) == set()


def test_an_edited_tls_setting_is_reverted() -> None:
    cluster = Cluster(**RESTRICTED)
    before = cluster.text(SETTINGS)
    cluster.edit(SETTINGS, '"intermediate"', '"old"')

    assert cluster.reconcile(**RESTRICTED) == {SETTINGS}
    assert cluster.text(SETTINGS) == before
    assert cluster.resolutions == {f'{SETTINGS} data["kbs-config.toml"].tls.tls_profile': Resolution.REVERTED}


def test_a_file_that_is_no_toml_is_not_changed() -> None:
    cluster = Cluster(**RESTRICTED)
    cluster.edit(SETTINGS, "worker_count = 4", "worker_count = ")

    cluster.reconcile(**RESTRICTED)

    assert "worker_count = \n" in cluster.text(SETTINGS)
    assert cluster.reconcile(**RESTRICTED) == set()


def test_an_emptied_file_is_generated_again() -> None:
    cluster = Cluster(**RESTRICTED)
    before = cluster.text(SETTINGS)
    cluster.live[SETTINGS] = {**cluster.live[SETTINGS], "data": {"kbs-config.toml": ""}}

    assert cluster.reconcile(**RESTRICTED) == {SETTINGS}
    assert cluster.text(SETTINGS) == before


def test_additional_keys_of_a_config_map_are_ignored() -> None:
    cluster = Cluster()
    cluster.live[SETTINGS]["data"]["trust.pem"] = "mine"

    cluster.reconcile(**RESTRICTED)

    assert cluster.live[SETTINGS]["data"]["trust.pem"] == "mine"
    assert "insecure_http = false" in cluster.live[SETTINGS]["data"]["kbs-config.toml"]


def test_blank_lines_are_no_edit() -> None:
    cluster = Cluster()
    cluster.edit(SETTINGS, "\n[admin]", "\n\n\n[admin]")

    assert cluster.reconcile() == set()
    assert cluster.resolutions == {}


def test_edits_of_a_child_are_kept_by_entry() -> None:
    cluster = Cluster()
    spec = cluster.live[KBS]["spec"]
    cluster.live[KBS] = {**cluster.live[KBS], "spec": {**spec, "kbsSecretResources": ["attestation-status", "mine"]}}

    assert cluster.reconcile(kbsServiceType="NodePort") == {KBS}
    assert cluster.live[KBS]["spec"]["kbsSecretResources"] == ["attestation-status", "mine"]
    assert cluster.live[KBS]["spec"]["kbsServiceType"] == "NodePort"
    assert cluster.resolutions == {f"{KBS} spec.kbsSecretResources.mine": Resolution.PRESERVED}


# --- For every history ------------------------------------------------------------------------------------------------

EDITS = (
    (SETTINGS, "worker_count = 4", "worker_count = 8"),
    (SETTINGS, "[admin]", "# mine\n[admin]"),
    (SETTINGS, "tls_profile", "tls_profile_gone"),
    (SETTINGS, "tls_profile = ", "tls_profile="),
    (SETTINGS, "[http_server]", "[other]"),
    (SETTINGS, "authorization_mode = ", "authorization_mode = = "),
    (POLICY, "default allow := false", "default allow := true"),
    (POLICY, "package policy", "# mine\npackage policy"),
)
WISHES: tuple[dict[str, Any], ...] = (
    {},
    RESTRICTED,
    {**RESTRICTED, "tlsConfig": {"profile": "modern"}},
    {**RESTRICTED, "tlsConfig": {"profile": "custom", "groups": ["x25519"]}},
    {"kbsServiceType": "NodePort"},
)


@pytest.mark.laws
@given(st.lists(st.sampled_from(EDITS) | st.sampled_from(WISHES), max_size=6))
def test_a_second_pass_writes_nothing_after_any_history(history: list[Any]) -> None:
    cluster, wishes = Cluster(), WISHES[0]
    for event in history:
        if isinstance(event, dict):
            wishes = event
        elif event[1] in cluster.text(event[0]):
            cluster.edit(*event)
        cluster.reconcile(**wishes)

        assert cluster.reconcile(**wishes) == set()
        assert Resolution.REVERTED not in cluster.resolutions.values()

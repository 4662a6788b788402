"""Owners and their children on the command line: plans, edits, adoption and transfer."""

import json

import pytest
import yaml

from tests.cli.trustees import KBS, POLICY, ROLLING, TrusteeCommands, trustee
from tests.cli.workspace import Workspace


@pytest.fixture
def commands(workspace: Workspace) -> TrusteeCommands:
    """A workspace in which a Trustee was just created."""
    commands = TrusteeCommands(workspace)
    commands.apply(trustee())
    return commands


def _words(lines: list[str]) -> list[str]:
    """The lines without the spaces that put them in columns."""
    return [" ".join(line.split()) for line in lines]


# --- Create -----------------------------------------------------------------------------------------------------------


def test_a_plan_has_one_line_for_each_new_child(workspace: Workspace) -> None:
    workspace.write(trustee())
    code, lines = TrusteeCommands(workspace).run("plan", "-f", "manifest.yaml")

    assert (code, _words(lines)) == (
        2,
        [
            "TrusteeConfig default/trustee",
            "create: not there yet",
            "+ ConfigMap/trustee-kbs-config created",
            "+ Secret/trustee-auth-secret created",
            "+ Secret/attestation-status created",
            "+ ConfigMap/trustee-resource-policy created",
            "+ ConfigMap/trustee-rvps-reference-values created",
            "+ ConfigMap/trustee-attestation-policy-cpu created",
            "+ ConfigMap/trustee-attestation-policy-gpu created",
            "+ KbsConfig/trustee-kbs-config created",
            "create 1",
        ],
    )


def test_an_apply_shows_its_writes_and_what_the_owner_waits_for(workspace: Workspace) -> None:
    assert TrusteeCommands(workspace).apply(trustee()) == (
        0,
        [
            f"KbsConfig default/trustee-kbs-config created, rolling out: {ROLLING}",
            "TrusteeConfig default/trustee created, not ready: KbsConfig default/trustee-kbs-config is not ready: "
            f"{ROLLING}",
            "created 2",
        ],
    )


def test_an_object_that_is_not_reconciled_has_no_state(commands: TrusteeCommands) -> None:
    rows = [line.split() for line in commands.run("get")[1][1:]]

    assert {row[0]: row[3:5] for row in rows} == {
        "ConfigMap": ["-", "-"],
        "Secret": ["-", "-"],
        "Service": ["-", "-"],
        "Deployment": ["-", "-"],
        "KbsConfig": ["False", "RollingOut"],
        "TrusteeConfig": ["False", "NotReady"],
    }


def test_a_graph_shows_a_child_below_its_owner(commands: TrusteeCommands) -> None:
    owner, child = (line.split(" waiting")[0] for line in commands.run("graph")[1])

    assert (owner, child) == ("TrusteeConfig default/trustee", "└── KbsConfig default/trustee-kbs-config")
    assert commands.run("graph")[1][1].endswith("← made by it")
    assert '"TrusteeConfig default/trustee" -> "KbsConfig default/trustee-kbs-config" [label="makes"];' in " ".join(
        commands.run("graph", "-o", "dot")[1]
    )


# --- Editing ----------------------------------------------------------------------------------------------------------


def test_an_edit_of_a_child_is_merged_in_the_same_command(commands: TrusteeCommands) -> None:
    code, lines = commands.edit(KBS, KbsDeploymentSpec={"replicas": 3}, kbsServiceType="NodePort", KbsEnvVars={})

    assert (code, lines[-2].partition(":")[0]) == (0, "TrusteeConfig default/trustee updated, not ready")
    assert lines[-1] == "updated 2"
    explained = _words(commands.run("explain", "TrusteeConfig/trustee")[1])
    assert explained[2:6] == [
        "~ KbsConfig/trustee-kbs-config",
        '~ spec.kbsServiceType "NodePort" → unset reverted: the owner manages it',
        "= spec.KbsDeploymentSpec.replicas 3 kept (a person's edit)",
        "= spec.KbsEnvVars.RUST_LOG unset kept away (a person removed it)",
    ]
    assert commands.tree("Service/kbs-service")["spec"]["type"] == "ClusterIP"


def test_the_plan_of_an_edited_child_shows_the_plan_of_its_owner(commands: TrusteeCommands) -> None:
    commands.workspace.write(POLICY)
    code, lines = commands.run("plan", "-f", "manifest.yaml")

    assert (code, _words(lines)) == (
        0,
        [
            "TrusteeConfig default/trustee",
            "drifted: the live object changed",
            "= ConfigMap/trustee-resource-policy",
            '= data["resource-policy.rego"] "mine" kept (a person\'s edit)',
            "Nothing to write.",
            "unchanged 1",
        ],
    )


def test_an_owner_that_joins_an_apply_has_written_what_it_writes_now(commands: TrusteeCommands) -> None:
    commands.workspace.write(POLICY)

    first, again = (json.loads("\n".join(commands.run("apply", "-f", "manifest.yaml", "-o", "json")[1])) for _ in "12")

    outcomes = [{one["kind"]: one["outcome"] for one in document["results"]} for document in (first, again)]
    assert outcomes[0]["ConfigMap"] == "updated"
    assert outcomes[1] == dict.fromkeys(("ConfigMap", "KbsConfig", "TrusteeConfig"), "unchanged")
    assert [one["changes"] for one in again["results"]] == [[], [], []]


def test_a_child_applied_without_its_owner_keeps_its_owner_reference(commands: TrusteeCommands) -> None:
    commands.apply(POLICY)

    (owner,) = commands.tree("ConfigMap/trustee-resource-policy")["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("TrusteeConfig", "trustee")


def test_a_merge_conflict_is_shown_in_the_plan(commands: TrusteeCommands) -> None:
    commands.apply(POLICY)
    commands.apply(trustee("Restricted"))

    described = " ".join(_words(commands.run("describe", "TrusteeConfig/trustee")[1]))
    assert 'Edited 1 conflicting: ConfigMap default/trustee-resource-policy data["resource-policy.rego"]' in described
    assert "Warned spec.httpsSpec.tlsSecretName is not set" in described
    assert "lastGenerated" not in described


def test_an_unedited_value_that_is_no_longer_generated_is_removed(commands: TrusteeCommands) -> None:
    commands.workspace.write(trustee("Restricted"))

    lines = _words(commands.run("plan", "-f", "manifest.yaml")[1])
    reason = "removed: no longer generated, and not edited"
    assert [line for line in lines if "KbsEnvVars" in line] == [
        f'~ spec.KbsEnvVars {{"RUST_LOG":"debug"}} → unset {reason}'
    ]


def test_a_deleted_child_is_made_again(commands: TrusteeCommands) -> None:
    commands.run("delete", "ConfigMap/trustee-resource-policy")

    assert _words(list(commands.changes())) == ["+ ConfigMap/trustee-resource-policy created"]
    assert commands.run("reconcile")[0] == 0
    assert commands.tree("ConfigMap/trustee-resource-policy")["kind"] == "ConfigMap"


def test_an_object_without_an_owner_is_shown_as_adopted(workspace: Workspace) -> None:
    commands = TrusteeCommands(workspace)
    commands.apply(POLICY)
    workspace.write(trustee())

    lines = _words(commands.run("plan", "-f", "manifest.yaml")[1])
    assert "~ metadata.ownerReferences adopted: it had no owner" in lines


# --- Unreconciled objects ---------------------------------------------------------------------------------------------


def test_only_objects_that_owners_generate_or_read_are_accepted(workspace: Workspace) -> None:
    commands = TrusteeCommands(workspace)
    volume = "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: certificates}\n"

    assert commands.apply(POLICY, volume) == (
        0,
        [
            "ConfigMap default/trustee-resource-policy created",
            "PersistentVolume default/certificates created",
            "created 2",
        ],
    )
    code, (line,) = commands.apply("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n")
    assert (code, line.partition(";")[0]) == (1, "error: manifest.yaml:1: Pod default/p: no kind 'Pod' is known here")


def test_the_daemon_accepts_the_same_objects(commands: TrusteeCommands) -> None:
    commands.workspace.daemon()

    assert commands.apply(POLICY) == (0, ["ConfigMap default/trustee-resource-policy updated", "updated 1"])
    assert commands.tree("ConfigMap/trustee-resource-policy")["data"] == {"resource-policy.rego": "mine"}


# --- Transfer ---------------------------------------------------------------------------------------------------------


def _transferred(commands: TrusteeCommands, *options: str) -> tuple[TrusteeCommands, list[str]]:
    """The commands on another store after the import, and the output of the export."""
    lines = commands.run("export", "--to", "export.yaml", *options)[1]
    imported = TrusteeCommands(commands.workspace, "--store", "sqlite:///new.db")
    assert imported.run("import", "-f", "export.yaml")[0] == 0
    return imported, lines


def test_an_edit_is_kept_after_a_transfer_to_another_store(commands: TrusteeCommands) -> None:
    commands.apply(POLICY)
    commands.edit(KBS, KbsDeploymentSpec={"replicas": 3})

    imported, lines = _transferred(commands, "--with-secrets")

    assert lines == ["2 resources, 5 objects beside them, and 2 Secrets in export.yaml, which only you can read"]
    assert [line for line in imported.changes() if line.startswith("+")] == []
    imported.run("reconcile")
    imported.apply(trustee("Restricted"))
    assert imported.tree("ConfigMap/trustee-resource-policy")["data"] == {"resource-policy.rego": "mine"}
    spec = imported.tree(KBS)["spec"]
    # Unedited values follow, as they would have in the old store.
    assert (spec["KbsDeploymentSpec"], spec.get("KbsEnvVars", {})) == ({"replicas": 3}, {})


def test_the_generated_keys_of_an_owner_are_exported_with_secrets_only(commands: TrusteeCommands) -> None:
    imported, lines = _transferred(commands)

    assert lines[0].startswith(
        "the Secrets of owners are not exported, and keys that were generated for one are generated anew"
    )
    assert "+ Secret/trustee-auth-secret created" in _words(list(imported.changes()))


def test_children_are_exported_with_their_owner_and_refer_to_the_imported_one(commands: TrusteeCommands) -> None:
    commands.run("export", "TrusteeConfig/trustee", "--with-secrets", "--to", "export.yaml")
    text = (commands.workspace.folder / "export.yaml").read_text(encoding="utf-8")
    imported = TrusteeCommands(commands.workspace, "--store", "sqlite:///new.db")
    imported.run("import", "-f", "export.yaml")
    imported.run("reconcile")

    kinds = [one["kind"] for one in yaml.safe_load_all(text)]
    assert (kinds.count("KbsConfig"), "ownerReferences" in text) == (1, False)
    (owner,) = imported.tree(KBS)["metadata"]["ownerReferences"]
    assert owner["uid"] == imported.tree("TrusteeConfig/trustee")["metadata"]["uid"]


def test_an_object_is_not_exported_by_itself(commands: TrusteeCommands) -> None:
    assert commands.run("export", "ConfigMap/trustee-resource-policy") == (
        1,
        ["error: ConfigMap: it is exported with the resource that makes or reads it: name that one"],
    )


def test_a_second_import_writes_nothing(commands: TrusteeCommands) -> None:
    imported, _ = _transferred(commands, "--with-secrets")

    code, lines = imported.run("import", "-f", "export.yaml")
    assert (code, [line.split()[-1] for line in lines[:2]]) == (0, ["unchanged", "unchanged"])

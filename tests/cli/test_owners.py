"""Owners and their children on the command line: what is told of whose value stands."""

import pytest
import yaml

from tests.cli.trustees import KBS, POLICY, ROLLING, Keeper, trustee
from tests.cli.workspace import Workspace


@pytest.fixture
def keeper(workspace: Workspace) -> Keeper:
    """A workspace in which a Trustee was just created."""
    keeper = Keeper(workspace)
    keeper.apply(trustee())
    return keeper


def _words(lines: list[str]) -> list[str]:
    """The lines without the spaces that put them in columns."""
    return [" ".join(line.split()) for line in lines]


# --- Making ----------------------------------------------------------------------------------------------------------


def test_a_plan_tells_of_new_children_in_a_line_each(workspace: Workspace) -> None:
    workspace.write(trustee())
    code, lines = Keeper(workspace).run("plan", "-f", "manifest.yaml")

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
        ],
    )


def test_an_apply_says_what_was_done_and_what_is_still_missing(workspace: Workspace) -> None:
    assert Keeper(workspace).apply(trustee()) == (
        0,
        [
            f"KbsConfig default/trustee-kbs-config created, rolling out: {ROLLING}",
            "TrusteeConfig default/trustee created, not ready: KbsConfig default/trustee-kbs-config is not ready: "
            f"{ROLLING}",
        ],
    )


def test_an_object_that_is_not_reconciled_has_no_state(keeper: Keeper) -> None:
    rows = [line.split() for line in keeper.run("get")[1][1:]]

    assert {row[0]: row[3:5] for row in rows} == {
        "ConfigMap": ["-", "-"],
        "Secret": ["-", "-"],
        "Service": ["-", "-"],
        "Deployment": ["-", "-"],
        "KbsConfig": ["False", "RollingOut"],
        "TrusteeConfig": ["False", "NotReady"],
    }


def test_a_graph_shows_a_child_below_its_owner(keeper: Keeper) -> None:
    owner, child = (line.split(" waiting")[0] for line in keeper.run("graph")[1])

    assert (owner, child) == ("TrusteeConfig default/trustee", "└── KbsConfig default/trustee-kbs-config")
    assert keeper.run("graph")[1][1].endswith("← made by it")
    assert '"TrusteeConfig default/trustee" -> "KbsConfig default/trustee-kbs-config" [label="makes"];' in " ".join(
        keeper.run("graph", "-o", "dot")[1]
    )


# --- Editing ----------------------------------------------------------------------------------------------------------


def test_an_edit_of_a_child_is_judged_in_the_same_command(keeper: Keeper) -> None:
    code, lines = keeper.edit(KBS, KbsDeploymentSpec={"replicas": 3}, kbsServiceType="NodePort", KbsEnvVars={})

    assert (code, lines[-1].partition(":")[0]) == (0, "TrusteeConfig default/trustee updated, not ready")
    explained = _words(keeper.run("explain", "TrusteeConfig/trustee")[1])
    assert explained[2:6] == [
        "~ KbsConfig/trustee-kbs-config",
        '~ spec.kbsServiceType "NodePort" → unset put back: the owner manages it',
        "= spec.KbsDeploymentSpec.replicas 3 kept (a person's edit)",
        "= spec.KbsEnvVars.RUST_LOG unset kept away (a person removed it)",
    ]
    assert keeper.tree("Service/kbs-service")["spec"]["type"] == "ClusterIP"


def test_a_plan_of_an_edit_says_what_its_owner_would_do(keeper: Keeper) -> None:
    keeper.workspace.write(POLICY)
    code, lines = keeper.run("plan", "-f", "manifest.yaml")

    assert (code, _words(lines)) == (
        0,
        [
            "TrusteeConfig default/trustee",
            "drifted: the live object changed",
            "= ConfigMap/trustee-resource-policy",
            '= data["resource-policy.rego"] "mine" kept (a person\'s edit)',
            "Nothing to write.",
        ],
    )


def test_a_child_that_is_applied_without_its_owner_is_still_its_owners(keeper: Keeper) -> None:
    keeper.apply(POLICY)

    (owner,) = keeper.tree("ConfigMap/trustee-resource-policy")["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("TrusteeConfig", "trustee")


def test_a_conflict_is_told_as_one(keeper: Keeper) -> None:
    keeper.apply(POLICY)
    keeper.apply(trustee("Restricted"))

    described = " ".join(_words(keeper.run("describe", "TrusteeConfig/trustee")[1]))
    assert 'Edited 1 conflicting: ConfigMap default/trustee-resource-policy data["resource-policy.rego"]' in described
    assert "Warned spec.httpsSpec.tlsSecretName is not set" in described
    assert "lastGenerated" not in described


def test_an_unedited_value_that_is_no_longer_generated_is_removed(keeper: Keeper) -> None:
    keeper.workspace.write(trustee("Restricted"))

    lines = _words(keeper.run("plan", "-f", "manifest.yaml")[1])
    told = "removed: no longer generated, and not edited"
    assert [line for line in lines if "KbsEnvVars" in line] == [
        f'~ spec.KbsEnvVars {{"RUST_LOG":"debug"}} → unset {told}'
    ]


def test_a_deleted_child_is_made_again(keeper: Keeper) -> None:
    keeper.run("delete", "ConfigMap/trustee-resource-policy")

    assert _words(list(keeper.changes())) == ["+ ConfigMap/trustee-resource-policy created"]
    assert keeper.run("reconcile")[0] == 0
    assert keeper.tree("ConfigMap/trustee-resource-policy")["kind"] == "ConfigMap"


def test_an_object_without_an_owner_is_shown_as_adopted(workspace: Workspace) -> None:
    keeper = Keeper(workspace)
    keeper.apply(POLICY)
    workspace.write(trustee())

    lines = _words(keeper.run("plan", "-f", "manifest.yaml")[1])
    assert "~ metadata.ownerReferences adopted: it had no owner" in lines


# --- Plain objects ----------------------------------------------------------------------------------------------------


def test_objects_that_owners_make_or_read_are_taken_and_no_others(workspace: Workspace) -> None:
    keeper = Keeper(workspace)
    volume = "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: certificates}\n"

    assert keeper.apply(POLICY, volume) == (0, [])
    code, (line,) = keeper.apply("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n")
    assert (code, line.partition(";")[0]) == (1, "error: manifest.yaml:1: Pod default/p: no kind 'Pod' is known here")


def test_a_running_process_takes_them_as_well(keeper: Keeper) -> None:
    keeper.workspace.daemon()

    assert keeper.apply(POLICY) == (0, [])
    assert keeper.tree("ConfigMap/trustee-resource-policy")["data"] == {"resource-policy.rego": "mine"}


# --- Moving -----------------------------------------------------------------------------------------------------------


def _moved(keeper: Keeper, *options: str) -> tuple[Keeper, list[str]]:
    """In another store, and what the export said."""
    told = keeper.run("export", "--to", "export.yaml", *options)[1]
    elsewhere = Keeper(keeper.workspace, "--store", "sqlite:///new.db")
    assert elsewhere.run("import", "-f", "export.yaml")[0] == 0
    return elsewhere, told


def test_an_edit_is_known_as_one_in_another_store(keeper: Keeper) -> None:
    keeper.apply(POLICY)
    keeper.edit(KBS, KbsDeploymentSpec={"replicas": 3})

    elsewhere, told = _moved(keeper, "--with-secrets")

    assert told == ["2 resources, 5 objects beside them, and 2 Secrets in export.yaml, which only you can read"]
    assert [line for line in elsewhere.changes() if line.startswith("+")] == []
    elsewhere.run("reconcile")
    elsewhere.apply(trustee("Restricted"))
    assert elsewhere.tree("ConfigMap/trustee-resource-policy")["data"] == {"resource-policy.rego": "mine"}
    spec = elsewhere.tree(KBS)["spec"]
    # Unedited values follow, as they would have in the old store.
    assert (spec["KbsDeploymentSpec"], spec.get("KbsEnvVars", {})) == ({"replicas": 3}, {})


def test_the_keys_of_an_owner_go_along_with_secrets_only(keeper: Keeper) -> None:
    elsewhere, told = _moved(keeper)

    assert told[0].startswith(
        "the Secrets of owners are not exported, and keys that were generated for one are generated anew"
    )
    assert "+ Secret/trustee-auth-secret created" in _words(list(elsewhere.changes()))


def test_children_go_along_with_their_owner_and_belong_to_the_one_that_is_there(keeper: Keeper) -> None:
    keeper.run("export", "TrusteeConfig/trustee", "--with-secrets", "--to", "export.yaml")
    text = (keeper.workspace.folder / "export.yaml").read_text(encoding="utf-8")
    elsewhere = Keeper(keeper.workspace, "--store", "sqlite:///new.db")
    elsewhere.run("import", "-f", "export.yaml")
    elsewhere.run("reconcile")

    kinds = [one["kind"] for one in yaml.safe_load_all(text)]
    assert (kinds.count("KbsConfig"), "ownerReferences" in text) == (1, False)
    (owner,) = elsewhere.tree(KBS)["metadata"]["ownerReferences"]
    assert owner["uid"] == elsewhere.tree("TrusteeConfig/trustee")["metadata"]["uid"]


def test_an_object_is_not_exported_by_itself(keeper: Keeper) -> None:
    assert keeper.run("export", "ConfigMap/trustee-resource-policy") == (
        1,
        ["error: ConfigMap: it is exported with the resource that makes or reads it: name that one"],
    )


def test_importing_twice_writes_nothing_twice(keeper: Keeper) -> None:
    elsewhere, _ = _moved(keeper, "--with-secrets")

    code, lines = elsewhere.run("import", "-f", "export.yaml")
    assert (code, [line.split()[-1] for line in lines[:2]]) == (0, ["unchanged", "unchanged"])

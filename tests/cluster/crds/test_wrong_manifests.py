"""What a definition can refuse is refused at admission, and by `setpoint plan` with file and line."""

import os
import re
from collections import Counter
from pathlib import Path

import pytest
import yaml

from tests.cli.programs import DEADLINE
from tests.cluster.crds.resources import CustomResources, manifest
from tests.cluster.crds.wrong_manifests import NOT_AT_ADMISSION, RIGHT, WRONG, WrongManifest
from tests.forking.processes import SETPOINT, Start, run


def test_the_table_has_rows_of_every_kind() -> None:
    assert len(WRONG) >= 60
    # What an API server can afford to check of policies is little: the kinds check them themselves.
    policies = {"IAMPartialPolicy", "IAMPolicy", "IAMPolicyMember"}
    assert set(Counter(row.kind for row in WRONG)) == set(RIGHT) - policies


@pytest.mark.parametrize("kind", RIGHT)
def test_a_manifest_without_the_mistake_is_accepted(resources: CustomResources, kind: str) -> None:
    accepted = resources.apply_dry_run(manifest(kind, RIGHT[kind]))

    assert accepted.status == 201, accepted.body


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_a_wrong_manifest_is_refused_at_admission_by_the_field(
    resources: CustomResources, wrong: WrongManifest
) -> None:
    refused = resources.apply_dry_run(wrong.document)

    assert refused.status == 422, refused.body
    causes = [(cause["field"], cause["message"]) for cause in refused.body["details"]["causes"]]
    (found,) = (cause for cause in causes if wrong.words in cause[1])
    # A rule about the whole object, or about one criterion of several, names its field in the message.
    assert found[0] == wrong.field or (found[0] == "<nil>" and wrong.field in found[1])


@pytest.mark.parametrize("wrong", NOT_AT_ADMISSION, ids=str)
def test_what_no_definition_can_see_is_admitted(resources: CustomResources, wrong: WrongManifest) -> None:
    assert resources.apply_dry_run(wrong.document).status == 201


_PLACE = re.compile(r"wrong\.yaml:(\d+): ")


@pytest.mark.parametrize("wrong", [*WRONG, *NOT_AT_ADMISSION], ids=str)
def test_plan_refuses_it_with_file_and_line(tmp_path: Path, wrong: WrongManifest) -> None:
    text = yaml.safe_dump(wrong.document, sort_keys=False)
    (tmp_path / "wrong.yaml").write_text(text, encoding="utf-8")
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONUTF8": "1"}
    done = run(Start((SETPOINT, "plan", "-f", "wrong.yaml"), tmp_path, environment), DEADLINE)

    assert done.returncode != 0
    place = _PLACE.search(done.stderr)
    assert place is not None, done.stderr
    if wrong.kind == "ReferenceGrant":
        # Grants are for the tenants of a cluster: elsewhere there is nothing that they would be for.
        return
    # The line of the field, or the first one of what is in it.
    number = int(place[1])
    around = "\n".join(text.splitlines()[max(number - 2, 0) : number])
    assert any(f"{step}:" in around for step in re.split(r"[.\[\]0-9]+", wrong.field)[1:] if step), around
    assert wrong.field.split("[")[0] in done.stderr

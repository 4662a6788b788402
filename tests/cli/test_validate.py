"""`setpoint validate`: the mistakes that a plan refuses, without a store, a service or a cluster; in every form."""

import asyncio
import io
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import setpoint
from setpoint.app import AppSettings
from setpoint.cli.commands.authoring.validate import FORMATS, validate
from setpoint.cli.request import CommandRequest
from setpoint.cli.views.terminal import SafeConsole
from setpoint.library.manifests.sources import YamlText
from setpoint.library.manifests.validation import ManifestProblem, ManifestValidation, ProblemLevel
from tests.cli.workspace import bucket
from tests.cli.wrong_manifests import TABLE, WrongManifest, rows_of

_CYCLE = """apiVersion: setpoint.dev/v1alpha1
kind: KubernetesObject
metadata: {name: a, annotations: {setpoint.dev/depends-on: KubernetesObject/b}}
spec: {manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}
---
apiVersion: setpoint.dev/v1alpha1
kind: KubernetesObject
metadata: {name: b, annotations: {setpoint.dev/depends-on: KubernetesObject/a}}
spec: {manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}}
"""


def _validate(folder: Path, text: str, output: str = "text") -> tuple[int, str]:
    """The exit code, and what is printed, of a store and services that cannot be reached."""
    (folder / "manifest.yaml").write_text(text, encoding="utf-8")
    printed = io.StringIO()
    settings = AppSettings("kubernetes://nowhere", environment={"KUBECONFIG": str(folder / "none")})
    request = CommandRequest(
        settings, SafeConsole(file=printed, width=200), files=(str(folder / "manifest.yaml"),), output=output
    )
    code = asyncio.run(validate(request))
    return code, printed.getvalue().replace(str(folder) + "/", "")


async def _errors(rows: Sequence[WrongManifest]) -> list[list[str]]:
    found = []
    async with setpoint.open("memory:", environment={}) as session:
        for row in rows:
            problems = (await session.validate(YamlText(row.text, "manifest.yaml"))).problems
            found.append([str(one) for one in problems if one.level is ProblemLevel.ERROR])
    return found


def test_every_wrong_manifest_that_a_plan_refuses_is_told_with_the_same_line() -> None:
    rows = [row for row in rows_of(TABLE) if row.refused]

    assert asyncio.run(_errors(rows)) == [sorted(row.refused, key=_line) for row in rows]


def _line(problem: str) -> int:
    found = problem.split(":")[1]
    return int(found) if found.isdecimal() else 0


def test_valid_manifests_end_with_their_number(tmp_path: Path) -> None:
    assert _validate(tmp_path, f"{bucket('one')}---\n{bucket('two')}") == (0, "2 manifests, 0 errors\n")


def test_a_cycle_is_an_error(tmp_path: Path) -> None:
    code, printed = _validate(tmp_path, _CYCLE)

    assert (code, printed.splitlines()[-1]) == (1, "2 manifests, 1 error")
    assert "KubernetesObject default/a" in printed


def test_an_annotation_without_effect_is_a_warning(tmp_path: Path) -> None:
    text = bucket("one").replace("some-project}", "some-project, cnrm.cloud.google.com/state-into-spec: merge}")
    code, printed = _validate(tmp_path, text)

    assert (code, printed.splitlines()[-1]) == (0, "1 manifest, 0 errors, 1 warning")
    assert printed.startswith("warning: manifest.yaml:5: ")


def test_the_document_for_programs(tmp_path: Path) -> None:
    code, printed = _validate(tmp_path, bucket("one", "7"), "json")

    message = "StorageBucket default/one: spec.location is a number: write text, in quotes"
    problem = {"level": "error", "file": "manifest.yaml", "line": 6, "message": message}
    assert (code, json.loads(printed)) == (1, {"valid": False, "manifests": 1, "problems": [problem]})


def test_sarif_names_file_and_line(tmp_path: Path) -> None:
    _, printed = _validate(tmp_path, bucket("one", "7"), "sarif")
    (run,) = json.loads(printed)["runs"]
    (result,) = run["results"]

    place = {"artifactLocation": {"uri": "manifest.yaml"}, "region": {"startLine": 6}}
    assert (result["level"], result["locations"]) == ("error", [{"physicalLocation": place}])
    assert result["ruleId"] in {rule["id"] for rule in run["tool"]["driver"]["rules"]}


def test_annotations_of_a_workflow(tmp_path: Path) -> None:
    _, printed = _validate(tmp_path, bucket("one", "7"), "github")

    assert printed.splitlines() == [
        "::error file=manifest.yaml,line=6,title=setpoint validate::"
        "StorageBucket default/one: spec.location is a number: write text, in quotes",
        "1 manifest, 1 error",
    ]


@given(st.text(), st.none() | st.text(), st.none() | st.integers(min_value=1))
def test_no_text_begins_another_command_of_a_workflow(message: str, file: str | None, line: int | None) -> None:
    problem = ManifestProblem(ProblemLevel.ERROR, message, file, line)
    printed = FORMATS["github"](ManifestValidation(1, (problem,)))

    first, second = printed.removesuffix("\n").split("\n")
    assert (first.startswith("::error "), second) == (True, "1 manifest, 1 error")
    assert first.removeprefix("::error ").partition("::")[0].count(",") == (file is not None) + (line is not None)


@pytest.mark.parametrize("text", ["", "# nothing\n", "a: ["])
def test_a_file_without_a_manifest_is_an_error(tmp_path: Path, text: str) -> None:
    code, printed = _validate(tmp_path, text)

    assert (code, printed.splitlines()[-1]) == (1, "0 manifests, 1 error")

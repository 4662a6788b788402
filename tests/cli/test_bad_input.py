"""Bad input is a feature: a clear error each, no traceback, and the store as it was."""

import asyncio
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from setpoint.app import AppSettings, StoreAccess, open_engine
from setpoint.cli.commands.apply import apply
from setpoint.cli.request import CommandRequest
from setpoint.cli.views.terminal import SafeConsole
from setpoint.errors import SetpointError
from setpoint.library.manifests.checks import check_manifests
from setpoint.library.manifests.reading import load_manifests
from setpoint.library.outcome import ExitCode

BUCKET = """apiVersion: storage.cnrm.cloud.google.com/v1beta1
kind: StorageBucket
metadata:
  name: logs
  annotations:
    cnrm.cloud.google.com/project-id: p
  labels: {team: a}
spec:
  location: EU
  versioning: {enabled: true}
  lifecycleRule:
  - action: {type: Delete}
    condition: {age: 30, matchesPrefix: [tmp/]}
  softDeletePolicy: {retentionDurationSeconds: 604800}
"""
DATABASE = """apiVersion: sql.cnrm.cloud.google.com/v1beta1
kind: SQLDatabase
metadata: {name: db}
spec:
  charset: UTF8
  instanceRef: {external: main}
"""
ODD = [
    "\u0000",
    "\ufeff",
    "\ud7ff",
    "\U0001f600",
    "\u202e",
    "é",
    "\t",
    "\r",
    "'",
    '"',
    "{",
    "}",
    "[",
    "]",
    "&a ",
    "*a ",
    "!x ",
    "<<: ",
]
WRONG = [
    "null",
    "[]",
    "{}",
    "-1",
    "1e999",
    "true",
    "0x",
    "''",
    "'\\ud800'",
    "2026-01-01",
    "[[[[]]]]",
    "9" * 400,
    "|\n  x",
]


def _truncated(text: str, rng: random.Random) -> str:
    return text[: rng.randrange(len(text))]


def _with_odd_text(text: str, rng: random.Random) -> str:
    at = rng.randrange(len(text))
    return text[:at] + rng.choice(ODD) + text[at:]


def _with_a_wrong_value(text: str, rng: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    at = rng.choice([number for number, line in enumerate(lines) if ":" in line])
    lines[at] = f"{lines[at].partition(':')[0]}: {rng.choice(WRONG)}\n"
    return "".join(lines)


def _with_a_typo(text: str, rng: random.Random) -> str:
    at = rng.randrange(len(text) - 1)
    return text[:at] + text[at + 1] + text[at] + text[at + 2 :]


def _shuffled(text: str, rng: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    rng.shuffle(lines)
    return "".join(lines)


def _huge(text: str, rng: random.Random) -> str:
    return text.replace("team: a", "team: " + "a" * rng.choice([64, 1000, 100_000]))


def _bomb(text: str, rng: random.Random) -> str:
    depth = rng.randrange(2, 12)
    layers = ["x0: &x0 [a, a, a, a, a, a, a, a, a]"]
    layers += [f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 9)}]" for n in range(1, depth)]
    return text + "".join(f"  {line}\n" for line in layers)


def _deep(text: str, rng: random.Random) -> str:
    return text + "  odd: " + "[" * rng.choice([10, 300, 5000]) + "\n"


# Ten thousand with `make laws`.
MUTATED = min(10_000, 20 * settings().max_examples)
MUTATIONS: list[Callable[[str, random.Random], str]] = [
    _truncated,
    _with_odd_text,
    _with_a_wrong_value,
    _with_a_typo,
    _shuffled,
    _huge,
    _bomb,
    _deep,
]


@pytest.mark.laws
def test_a_mutated_manifest_is_accepted_or_refused_with_file_and_line(tmp_path: Path) -> None:
    rng = random.Random(20260105)
    file = tmp_path / "m.yaml"

    async def judge() -> list[str]:
        refused: list[str] = []
        async with open_engine(AppSettings("memory:"), StoreAccess.WRITE) as engine:
            for _ in range(MUTATED):
                text = rng.choice([BUCKET, DATABASE, f"{BUCKET}---\n{DATABASE}"])
                for _ in range(rng.choice([1, 1, 2])):
                    text = rng.choice(MUTATIONS)(text, rng)
                file.write_bytes(text.encode("utf-8", "surrogatepass"))
                try:
                    check_manifests(load_manifests([str(file)]), engine)
                except SetpointError as error:
                    refused.append(str(error))
        return refused

    refused = asyncio.run(judge())

    assert len(refused) > MUTATED / 2
    assert all("m.yaml" in message for message in refused)
    assert max(map(len, refused)) < 2_000


@pytest.mark.parametrize("mutation", [_truncated, _with_a_wrong_value, _bomb, _deep])
def test_a_refused_manifest_leaves_the_store_as_it_was(tmp_path: Path, mutation: Callable[..., str]) -> None:
    rng = random.Random(7)
    settings = AppSettings(f"sqlite:///{tmp_path}/state.db", environment={"SETPOINT_GCP_AUTH": "anonymous"})
    file = tmp_path / "m.yaml"
    request = CommandRequest(settings, SafeConsole(quiet=True), files=(str(file),), wait=False)

    async def applied(text: str) -> ExitCode | SetpointError:
        file.write_text(text, encoding="utf-8")
        try:
            return await apply(request)
        except SetpointError as error:
            return error

    async def stored() -> list[object]:
        async with open_engine(settings, StoreAccess.READ) as engine:
            return [dict(one.document) for one in (await engine.store.list()).resources]

    async def count_refused() -> int:
        await applied(DATABASE)
        count = 0
        for _ in range(25):
            before = await stored()
            if isinstance(await applied(mutation(f"{DATABASE}---\n{BUCKET}", rng)), SetpointError):
                count += 1
                assert await stored() == before
        return count

    assert asyncio.run(count_refused()) > 0


def test_a_grant_in_a_store_of_one_person_is_refused_with_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    some = "group: sql.cnrm.cloud.google.com, kind: SQLInstance"
    spec = f"spec: {{from: [{{{some}, namespace: a}}], to: [{{{some}}}]}}"
    file.write_text(
        f"apiVersion: setpoint.dev/v1alpha1\nkind: ReferenceGrant\nmetadata: {{name: open, namespace: b}}\n{spec}\n",
        encoding="utf-8",
    )

    async def refusal() -> str:
        async with open_engine(AppSettings("memory:"), StoreAccess.WRITE) as engine:
            with pytest.raises(SetpointError) as refused:
                check_manifests(load_manifests([str(file)]), engine)
            return str(refused.value)

    assert asyncio.run(refusal()) == (
        f"{file}:1: ReferenceGrant b/open: a grant is of use only in a cluster, where namespaces have different "
        "owners: here every reference to another namespace is allowed; leave it out"
    )

"""The benchmarks run, and compare like with like. What they measure is no test's business."""

import asyncio
import json
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from benchmarks import buckets, kube_stub, sql_instance
from benchmarks.__main__ import GROUPS, main, run
from benchmarks.measuring import QUICK, Contestant, Disagreement
from benchmarks.opponents import NOBODY, Canonicalizer, Connector, Differ, Operator, Opponents
from benchmarks.report import Report, as_json, show
from benchmarks.settled import open_store, service_of, settle, world_of
from setpoint.core.values.canonical import digest
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.resource import Resource
from setpoint.engine.step.reconcile import step

ROWS = {
    "canonical bytes + SHA-256": (
        "ours, a tree",
        "ours, a struct of the modelled fields",
        "orjson, sorted: the floor, not canonical",
        "json, sort_keys: not canonical",
    ),
    "canonical bytes + SHA-256: a float, astral keys": (
        "ours, a tree",
        "ours, a struct of the modelled fields",
        "orjson, sorted: the floor, not canonical",
        "json, sort_keys: not canonical",
    ),
    "fast-path decision, from response bytes": (
        "ours: decoded, digest, decide",
        "ours: the body's digest is the last one",
        "orjson.loads + SHA-256 of the bytes",
    ),
    "effective desired state, one field to change": (
        "ours: overlay, ignore-unspecified",
        "ours: overlay, prune",
        "copy.deepcopy, before any change",
    ),
    "fields to change: none": (
        "ours: overlay + diff, ignore-unspecified",
        "ours: overlay + diff, prune",
        "ours: plan_fields, ignore-unspecified",
        "ours: plan_fields, prune",
    ),
    "fields to change: one, in a keyed list": (
        "ours: overlay + diff, ignore-unspecified",
        "ours: overlay + diff, prune",
        "ours: plan_fields, ignore-unspecified",
        "ours: plan_fields, prune",
    ),
    "three-way merge: three edits, two moves": (
        "ours: merge",
        "ours: remember",
        "copy.deepcopy, before any edit",
    ),
    "start-up, a process each": (
        "setpoint --help",
        "python -c pass: the interpreter alone",
        "setpoint version",
        "setpoint get, nothing declared",
    ),
    "plan of an unchanged bucket, live state at hand": ("ours: preview",),
    "work queue: add, get, done": ("ours", "asyncio.PriorityQueue + set"),
    "pass in which nothing moved: queue, engine, store, telemetry": (
        "ours: buckets at rest, looked at as bytes of 6 KB",
    ),
    "pass with a GET of 6 KB that did not change, loopback": (
        "ours: queue, engine, Google client, HTTP",
        "the bare GET: HttpClient.send",
    ),
    "a look at each of many buckets of 6 KB that did not change, loopback": (
        "ours: lists of 1,000",
        "ours: a GET for each",
    ),
    "Kubernetes: GET of 3 KB, loopback": (
        "ours: bytes",
        "the bare GET: HttpClient.send",
        "ours: decoded into a tree",
    ),
    "Kubernetes: list, each of 500 objects of 3 KB, loopback": ("ours: bytes", "ours: decoded into a tree"),
    "Kubernetes: watch, each event of 3 KB, loopback": ("ours: bytes", "ours: decoded into a tree"),
}
SIZES = {
    "start-up, a process each": (),
    "canonical bytes + SHA-256: a float, astral keys": ("6 KB",),
    "plan of an unchanged bucket, live state at hand": ("1 KB", "6 KB"),
    "work queue: add, get, done": ("1 k keys",),
    "pass in which nothing moved: queue, engine, store, telemetry": ("",),
    "pass with a GET of 6 KB that did not change, loopback": ("",),
    "a look at each of many buckets of 6 KB that did not change, loopback": ("",),
    "Kubernetes: GET of 3 KB, loopback": ("",),
    "Kubernetes: list, each of 500 objects of 3 KB, loopback": ("",),
    "Kubernetes: watch, each event of 3 KB, loopback": ("",),
}
READINGS = {
    "cold start: from opening the store with 10,000 buckets until ready": (
        "1 KB: CPU time",
        "1 KB: by the clock",
        "6 KB: CPU time",
        "6 KB: by the clock",
    ),
    "an edit, 10,000 buckets at rest": (
        "until its first write reaches the service: half of all",
        "99 of 100",
        "CPU time until it is settled: half of all",
    ),
    "memory of a process with 100,000 buckets at rest": (
        "each of them",
        "all of the process",
        "all of the process, at its peak",
    ),
}


def bench(*arguments: str) -> Result:
    """A run with ours alone, and without an API server: the dev environment has no opponents."""
    surroundings = {"FORCE_COLOR": None, "TTY_COMPATIBLE": None, "KUBEBUILDER_ASSETS": "nowhere"}
    return CliRunner(env=surroundings).invoke(main, ["--quick", "--alone", *arguments], catch_exceptions=False)


@pytest.fixture(scope="module")
def whole() -> Report:
    """All that can be measured without an API server and Terraform, once: it takes a minute."""
    return run(tuple(group for group in GROUPS if group not in ("cluster", "terraform")), NOBODY, QUICK)


def test_prints_every_row_and_counts_the_bars(
    whole: Report, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    show(whole)

    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    for subject, names in (ROWS | READINGS).items():
        block = lines[lines.index(subject) + 1 :]
        assert [line.startswith(name) for line, name in zip(block, names, strict=False)] == [True] * len(names)
    assert re.fullmatch("bars met: [0-9]+ of 10", lines[-1])


def test_the_cookie_meets_its_bar() -> None:
    assert "≤ 129 bytes: 129 bytes, met" in bench("fast-path").output


def test_json_names_every_row_in_every_size(whole: Report) -> None:
    report = json.loads(as_json(whole))

    rows = [(one["subject"], one["contestant"], one["size"]) for one in report["figures"]]
    for subject, names in ROWS.items():
        sizes = SIZES.get(subject, ("1 KB", "6 KB", "60 KB"))
        assert {(subject, name, size) for name in names for size in sizes} <= set(rows)
    assert len(rows) == len(set(rows)) == 91
    assert len(report["bars"]) == 10
    readings = [(one["subject"], one["name"]) for one in report["readings"]]
    assert readings == [(subject, name) for subject, names in READINGS.items() for name in names]


def test_prints_a_group_and_ends_well() -> None:
    result = bench("three-way")

    assert result.exit_code == 0
    assert "three-way merge: three edits, two moves" in [line.strip() for line in result.output.splitlines()]


def test_measures_only_the_groups_that_are_named() -> None:
    report = json.loads(bench("-o", "json", "three-way").output)

    assert {one["subject"] for one in report["figures"]} == {"three-way merge: three edits, two moves"}


def test_whoever_wants_the_cluster_measured_hears_why_there_is_none() -> None:
    result = bench("cluster")

    reason = "KUBEBUILDER_ASSETS is nowhere, which lacks kube-apiserver or etcd"
    assert f"not measured: 10,000 custom resources: {reason}\n" in result.output
    assert result.exit_code == 1


def test_all_else_is_measured_where_there_is_no_cluster() -> None:
    report = json.loads(bench("-o", "json", "fast-path", "cluster").output)

    assert [one["subject"] for one in report["unmeasured"]] == ["10,000 custom resources"]
    assert report["figures"]


def test_says_which_opponent_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rfc8785", None)

    result = CliRunner().invoke(main, ["--quick"])

    assert result.exit_code == 1
    assert "rfc8785 is not installed: run `make bench`, or measure ours alone with --alone" in result.output


def test_an_opponent_with_other_canonical_bytes_stops_the_run() -> None:
    indenting = Canonicalizer("orjson", lambda value: orjson.dumps(value, option=orjson.OPT_INDENT_2))

    with pytest.raises(Disagreement, match=r"canonical bytes \+ SHA-256, 1 KB: orjson answers"):
        run(("canonical",), Opponents((indenting,), ()), QUICK)


@pytest.mark.parametrize("group", ["fast-path", "plan", "three-way"])
def test_an_opponent_that_finds_nothing_stops_the_run(group: str) -> None:
    blind = Differ("orjson", lambda a, b: [], lambda a, b: [], lambda last, live, generated: generated)

    with pytest.raises(Disagreement, match=r", 1 KB: .*orjson"):
        run((group,), Opponents((), (blind,)), QUICK)


def test_an_opponent_that_finds_another_field_stops_the_run() -> None:
    astray = Differ("orjson", lambda a, b: [] if a == b else ["x"], lambda a, b: [("x",)], lambda *sides: sides[2])

    with pytest.raises(Disagreement, match=", 1 KB: orjson"):
        run(("plan",), Opponents((), (astray,)), QUICK)


def test_a_command_that_answers_something_else_stops_the_run() -> None:
    with pytest.raises(Disagreement, match=r"start-up, a process each: json\.tool --help answers"):
        run(("start-up",), Opponents((), (), ("json.tool",)), QUICK)


def test_an_operator_that_finds_something_to_do_stops_the_run() -> None:
    @contextmanager
    def busy(documents: Sequence[JsonObject]) -> Iterator[tuple[Contestant, ...]]:
        yield (Contestant("orjson: handled", lambda: len(documents), lambda handled: handled == 0),)

    with pytest.raises(Disagreement, match=r"pass in which nothing moved: .*: orjson: handled answers 10"):
        run(("runtime",), Opponents((), (), operators=(Operator("orjson", busy),)), QUICK)


def test_a_client_of_clusters_that_misses_an_event_stops_the_run() -> None:
    class Forgetful:
        async def get(self, name: str) -> object:
            return kube_stub.body_of(name)

        async def list(self) -> Sequence[object]:
            return [kube_stub.body_of(kube_stub.name_of(number)) for number in range(kube_stub.LISTED)]

        async def watch(self) -> Sequence[object]:
            return [kube_stub.body_of(kube_stub.name_of(number)) for number in range(kube_stub.WATCHED - 1)]

        async def close(self) -> None:
            pass

    with pytest.raises(Disagreement, match=r"Kubernetes: watch, .*: orjson answers"):
        run(("kubernetes",), Opponents((), (), clusters=(Connector("orjson", lambda _: Forgetful()),)), QUICK)


@pytest.mark.parametrize(("label", "low", "high"), [("1 KB", 900, 1100), ("6 KB", 5500, 6500), ("60 KB", 55e3, 65e3)])
def test_an_instance_is_about_as_large_as_its_label_says(label: str, low: float, high: float) -> None:
    size = next(size for size in sql_instance.SIZES if size.label == label)

    assert low < len(sql_instance.body_of(size)) < high


def test_what_the_type_leaves_out_does_not_move_the_live_digest() -> None:
    body = sql_instance.body_of(sql_instance.SIZES[1])
    tree = orjson.loads(body) | {"etag": "moved", "createTime": "1999-12-31T23:59:59Z", "serverCaCert": {}}

    assert digest(sql_instance.decode(orjson.dumps(tree))) == digest(sql_instance.decode(body))


@pytest.mark.parametrize(("size", "low", "high"), [(buckets.SMALL, 900, 1100), (buckets.USUAL, 5500, 6500)])
def test_a_bucket_is_about_as_large_as_its_label_says(size: buckets.Size, low: int, high: int) -> None:
    assert low < len(buckets.body_of("orders-0000007", size)) < high


def test_a_bucket_that_was_written_in_bulk_is_as_its_own_step_leaves_it(tmp_path: Path) -> None:
    settle(tmp_path / "bulk.db", 3, buckets.SMALL)

    async def both() -> tuple[Resource | None, Resource | None]:
        bulk, step_finished = await open_store(tmp_path / "bulk.db"), await open_store(tmp_path / "stepped.db")
        await step_finished.apply(buckets.manifest_of(2, buckets.SMALL))
        await step(buckets.ref_of(2), world_of(step_finished, service_of(3, buckets.SMALL)))
        found = await bulk.get(buckets.ref_of(2)), await step_finished.get(buckets.ref_of(2))
        await bulk.close()
        await step_finished.close()
        return found

    bulk, step_finished = asyncio.run(both())

    assert bulk is not None
    assert step_finished is not None
    assert _lasting(bulk.document["status"]) == _lasting(step_finished.document["status"])
    assert (bulk.spec, bulk.labels, bulk.finalizers) == (
        step_finished.spec,
        step_finished.labels,
        step_finished.finalizers,
    )


def _lasting(value: Any) -> Any:
    """What a step says, without the times at which it does."""
    if isinstance(value, list):
        return [_lasting(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {name: _lasting(one) for name, one in value.items() if name not in ("at", "lastTransitionTime")}

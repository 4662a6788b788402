"""The benchmarks run, and check the results of their candidates. The measured values are not tested."""

import asyncio
import json
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result

from benchmarks import api_server_stub, buckets, sql_instance
from benchmarks.__main__ import GROUPS, main, run
from benchmarks.comparison import QUICK, Candidate, WrongResult
from benchmarks.peer_packages import NO_PEERS, Canonicalizer, ClusterClientFactory, Differ, OperatorFramework, Peers
from benchmarks.report import Report, as_json, show
from benchmarks.settled_store import engine_context_for, in_sync_service, open_store, write_settled_store
from setpoint.core.values.canonical import digest
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.resource import Resource
from setpoint.engine.step.reconcile import step
from tests.benchmarks.documents import without_times

COMMANDS = (
    "setpoint --help",
    "setpoint version",
    "setpoint get --help",
    "setpoint completion bash",
    "a completed word",
    "setpoint get, one bucket",
    "setpoint plan -f, one bucket, nothing to do",
    "setpoint apply -f, one bucket, nothing to do",
    "setpoint apply -f, one bucket, which is created",
)
ROWS = {
    "HTTP: GET of 4 KB, one after another": (
        "ours: HttpClient.send",
        "ours: KubernetesClient.get, with credentials, rate limiter and errors",
        "ours: GoogleClient.get, likewise",
        "aiohttp",
        "asyncio and llhttp alone: no pool, headers, limits, timeout",
    ),
    "HTTP: GET of 4 KB, 20 at once": (
        "ours: HttpClient.send",
        "ours: KubernetesClient.get, with credentials, rate limiter and errors",
        "ours: GoogleClient.get, likewise",
        "aiohttp",
        "asyncio and llhttp alone: no pool, headers, limits, timeout",
    ),
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
    "start-up, as a multiple of the interpreter": (
        "python -c pass: the interpreter alone",
        *COMMANDS,
    ),
    "start-up, as a multiple of the interpreter with click, orjson and msgspec": (
        "python -c 'import click, orjson, msgspec'",
        *COMMANDS,
    ),
    "plan of an unchanged bucket, live state at hand": (
        "ours: preview",
        "orjson.loads of the bytes of each",
    ),
    "work queue: add, get, done": ("ours", "asyncio.PriorityQueue + set"),
    "pass in which nothing moved: queue, engine, store, telemetry": (
        "ours: buckets at rest, looked at as bytes of 6 KB",
    ),
    "pass with a GET of 6 KB that did not change, loopback": (
        "ours: queue, engine, Google client, HTTP",
        "the bare GET of our own transport, HttpClient.send: without a bar",
        "the bare GET of aiohttp",
        "the same GET by the Google client, without the engine",
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
    "HTTP: GET of 4 KB, one after another": ("",),
    "HTTP: GET of 4 KB, 20 at once": ("",),
    "start-up, a process each": (),
    "start-up, as a multiple of the interpreter": ("",),
    "start-up, as a multiple of the interpreter with click, orjson and msgspec": ("",),
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
MEASUREMENTS = {
    "cold start: from opening the store with 10,000 buckets until ready": (
        "1 KB: the same rows, read and decoded",
        "1 KB: CPU time",
        "1 KB: by the clock",
        "6 KB: the same rows, read and decoded",
        "6 KB: CPU time",
        "6 KB: by the clock",
    ),
    "an edit, 10,000 buckets at rest": (
        "until its first write reaches the service: half of all",
        "99 of 100",
        "orjson.loads of the bytes of one bucket: half of all",
        "its commits and bodies alone, without a bar: half of all",
        "CPU time until it is settled: half of all",
    ),
    "memory of a process with 100,000 buckets at rest": (
        "each of them",
        "all of the process",
        "all of the process, at its peak",
    ),
    "kinds of the catalogue, in a process of its own": (
        "their names, known at the start: CPU time for 300",
        "the row of one, read: CPU time",
        "the types of one, made: CPU time",
        "row and types of one: memory",
    ),
    "memory of a process with 10,000 resources of 40 kinds at rest": (
        "each of them",
        "the process without them, with the types of the kinds",
    ),
    "cold start: from opening the store with 10,000 resources of 40 kinds until ready": (
        "as many buckets: CPU time",
        "CPU time, with the types of the kinds",
    ),
}


def bench(*arguments: str) -> Result:
    """A run without peers and without an API server: the dev environment has no peer packages."""
    environment = {"FORCE_COLOR": None, "TTY_COMPATIBLE": None, "KUBEBUILDER_ASSETS": "nowhere"}
    return CliRunner(env=environment).invoke(main, ["--quick", "--alone", *arguments], catch_exceptions=False)


@pytest.fixture(scope="module")
def full_report() -> Report:
    """The report of all groups that need neither an API server nor Terraform, once: it takes a minute."""
    return run(
        tuple(group for group in GROUPS if group not in ("cluster", "fleet", "terraform", "peers", "growth")),
        NO_PEERS,
        QUICK,
    )


def test_prints_every_row_and_the_number_of_targets_met(
    full_report: Report, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    show(full_report)

    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    for subject, names in (ROWS | MEASUREMENTS).items():
        block = lines[lines.index(subject) + 1 :]
        assert [line.startswith(name) for line, name in zip(block, names, strict=False)] == [True] * len(names)
    assert re.fullmatch("bars met: [0-9]+ of 20", lines[-1])


def test_the_cookie_meets_its_target() -> None:
    assert "≤ 129 bytes: 129 bytes, met" in bench("fast-path").output


def test_json_names_every_row_in_every_size(full_report: Report) -> None:
    report = json.loads(as_json(full_report))

    rows = [(entry["subject"], entry["contestant"], entry["size"]) for entry in report["figures"]]
    for subject, names in ROWS.items():
        sizes = SIZES.get(subject, ("1 KB", "6 KB", "60 KB"))
        assert {(subject, name, size) for name in names for size in sizes} <= set(rows)
    assert len(rows) == len(set(rows)) == 125
    assert len(report["bars"]) == 20
    measurements = [(entry["subject"], entry["name"]) for entry in report["readings"]]
    assert measurements == [(subject, name) for subject, names in MEASUREMENTS.items() for name in names]


def test_prints_a_group_and_exits_with_0() -> None:
    result = bench("three-way")

    assert result.exit_code == 0
    assert "three-way merge: three edits, two moves" in [line.strip() for line in result.output.splitlines()]


def test_measures_only_the_groups_that_are_named() -> None:
    report = json.loads(bench("-o", "json", "three-way").output)

    assert {entry["subject"] for entry in report["figures"]} == {"three-way merge: three edits, two moves"}


def test_a_named_cluster_group_without_an_api_server_fails_with_the_reason() -> None:
    result = bench("cluster")

    reason = "KUBEBUILDER_ASSETS is nowhere, which lacks kube-apiserver or etcd"
    assert f"not measured: 10,000 custom resources: {reason}\n" in result.output
    assert result.exit_code == 1


def test_other_groups_are_measured_without_a_cluster() -> None:
    report = json.loads(bench("-o", "json", "fast-path", "cluster").output)

    assert [entry["subject"] for entry in report["unmeasured"]] == ["10,000 custom resources"]
    assert report["figures"]


def test_names_the_peer_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rfc8785", None)

    result = CliRunner().invoke(main, ["--quick"])

    assert result.exit_code == 1
    assert "rfc8785 is not installed: run `make bench`, or measure ours alone with --alone" in result.output


def test_a_peer_with_other_canonical_bytes_stops_the_run() -> None:
    indenting_canonicalizer = Canonicalizer("orjson", lambda value: orjson.dumps(value, option=orjson.OPT_INDENT_2))

    with pytest.raises(WrongResult, match=r"canonical bytes \+ SHA-256, 1 KB: orjson answers"):
        run(("canonical",), Peers((indenting_canonicalizer,), ()), QUICK)


@pytest.mark.parametrize("group", ["fast-path", "plan", "three-way"])
def test_a_peer_that_finds_nothing_stops_the_run(group: str) -> None:
    no_change_differ = Differ("orjson", lambda a, b: [], lambda a, b: [], lambda last, live, generated: generated)

    with pytest.raises(WrongResult, match=r", 1 KB: .*orjson"):
        run((group,), Peers((), (no_change_differ,)), QUICK)


def test_a_peer_that_finds_another_field_stops_the_run() -> None:
    wrong_field_differ = Differ(
        "orjson", lambda a, b: [] if a == b else ["x"], lambda a, b: [("x",)], lambda *sides: sides[2]
    )

    with pytest.raises(WrongResult, match=", 1 KB: orjson"):
        run(("plan",), Peers((), (wrong_field_differ,)), QUICK)


def test_a_command_with_unexpected_output_stops_the_run() -> None:
    with pytest.raises(WrongResult, match=r"start-up, a process each: json\.tool --help answers"):
        run(("start-up",), Peers((), (), ("json.tool",)), QUICK)


def test_an_operator_framework_that_finds_something_to_do_stops_the_run() -> None:
    @contextmanager
    def handling_candidates(documents: Sequence[JsonObject]) -> Iterator[tuple[Candidate, ...]]:
        yield (Candidate("orjson: handled", lambda: len(documents), lambda handled: handled == 0),)

    with pytest.raises(WrongResult, match=r"pass in which nothing moved: .*: orjson: handled answers 10"):
        run(("runtime",), Peers((), (), operator_frameworks=(OperatorFramework("orjson", handling_candidates),)), QUICK)


def test_a_client_of_clusters_that_misses_an_event_stops_the_run() -> None:
    class EventMissingClient:
        async def get(self, name: str) -> object:
            return api_server_stub.body_of(name)

        async def list(self) -> Sequence[object]:
            return [
                api_server_stub.body_of(api_server_stub.name_of(number)) for number in range(api_server_stub.LISTED)
            ]

        async def watch(self) -> Sequence[object]:
            return [
                api_server_stub.body_of(api_server_stub.name_of(number))
                for number in range(api_server_stub.WATCHED - 1)
            ]

        async def close(self) -> None:
            pass

    with pytest.raises(WrongResult, match=r"Kubernetes: watch, .*: orjson answers"):
        run(
            ("kubernetes",),
            Peers((), (), cluster_clients=(ClusterClientFactory("orjson", lambda _: EventMissingClient()),)),
            QUICK,
        )


@pytest.mark.parametrize(("label", "low", "high"), [("1 KB", 900, 1100), ("6 KB", 5500, 6500), ("60 KB", 55e3, 65e3)])
def test_an_instance_is_about_as_large_as_its_label_says(label: str, low: float, high: float) -> None:
    size = next(size for size in sql_instance.SIZES if size.label == label)

    assert low < len(sql_instance.body_of(size)) < high


def test_fields_that_the_type_does_not_model_do_not_change_the_live_digest() -> None:
    body = sql_instance.body_of(sql_instance.SIZES[1])
    tree = orjson.loads(body) | {"etag": "moved", "createTime": "1999-12-31T23:59:59Z", "serverCaCert": {}}

    assert digest(sql_instance.decode(orjson.dumps(tree))) == digest(sql_instance.decode(body))


@pytest.mark.parametrize(("size", "low", "high"), [(buckets.SMALL, 900, 1100), (buckets.USUAL, 5500, 6500)])
def test_a_bucket_is_about_as_large_as_its_label_says(size: buckets.Size, low: int, high: int) -> None:
    assert low < len(buckets.body_of("orders-0000007", size)) < high


def test_a_bucket_that_was_written_in_bulk_equals_one_settled_by_a_step(tmp_path: Path) -> None:
    write_settled_store(tmp_path / "bulk.db", 3, buckets.SMALL)

    async def read_both() -> tuple[Resource | None, Resource | None]:
        bulk, stepped = await open_store(tmp_path / "bulk.db"), await open_store(tmp_path / "stepped.db")
        await stepped.apply(buckets.manifest_of(2, buckets.SMALL))
        await step(buckets.ref_of(2), engine_context_for(stepped, in_sync_service(3, buckets.SMALL)))
        result = await bulk.get(buckets.ref_of(2)), await stepped.get(buckets.ref_of(2))
        await bulk.close()
        await stepped.close()
        return result

    bulk, stepped = asyncio.run(read_both())

    assert bulk is not None
    assert stepped is not None
    assert without_times(bulk.document["status"]) == without_times(stepped.document["status"])
    assert (bulk.spec, bulk.labels, bulk.finalizers) == (
        stepped.spec,
        stepped.labels,
        stepped.finalizers,
    )

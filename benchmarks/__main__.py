"""`python -m benchmarks`: measures the core, the process and the command against the alternatives, in one run."""

import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeAlias

import click

from benchmarks import (
    canonical,
    catalogue,
    cluster,
    fast_path,
    http_requests,
    kubernetes,
    mixed_fleet,
    plans,
    runtime,
    start_up,
    terraform,
    three_way,
)
from benchmarks.comparison import QUICK, THOROUGH, BenchmarkSettings, Comparison, Timing, measure
from benchmarks.growth import benchmark as growth
from benchmarks.peer_packages import NO_PEERS, PeerMissing, Peers, all_peers
from benchmarks.peers import benchmark as peer_controllers
from benchmarks.report import Report, as_json, show
from benchmarks.scenarios import Benchmark, Measurement, Scenario, Unmeasured
from benchmarks.targets import check_targets

Group: TypeAlias = Callable[[Peers, BenchmarkSettings], Generator[Benchmark, None, None]]


def _comparisons_only(comparisons: Callable[[Peers], Iterator[Comparison]]) -> Group:
    def benchmarks(peers: Peers, _settings: BenchmarkSettings) -> Generator[Benchmark, None, None]:
        yield from comparisons(peers)

    return benchmarks


GROUPS: Final[dict[str, Group]] = {
    "canonical": _comparisons_only(canonical.comparisons),
    "fast-path": _comparisons_only(fast_path.comparisons),
    "plan": _comparisons_only(plans.comparisons),
    "three-way": _comparisons_only(three_way.comparisons),
    "start-up": _comparisons_only(start_up.comparisons),
    "http": http_requests.benchmarks,
    "runtime": runtime.benchmarks,
    "kubernetes": kubernetes.benchmarks,
    "cluster": cluster.benchmarks,
    "catalogue": catalogue.benchmarks,
    "fleet": mixed_fleet.benchmarks,
    "terraform": terraform.benchmarks,
    "peers": peer_controllers.benchmarks,
    "growth": growth.benchmarks,
}


@click.command()
@click.argument("groups", nargs=-1, type=click.Choice(list(GROUPS)))
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How to print the figures.")
@click.option("--quick", is_flag=True, help="One call each: shows that everything runs, the figures mean nothing.")
@click.option(
    "--alone", is_flag=True, help="Ours and the standard library alone, without the packages to compare with."
)
@click.option(
    "--sizes",
    multiple=True,
    type=click.IntRange(10, growth.SIZES[-1]),
    help=f"Of growth: this number of resources in place of {', '.join(map(str, growth.SIZES))}; again for another.",
)
@click.option(
    "--replicas",
    type=click.IntRange(1, growth.REPLICAS),
    default=growth.REPLICAS,
    show_default=True,
    help="Of growth: how many of the replicas of a large fleet are measured; the others are taken to be like them.",
)
@click.option(
    "--plots",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="Of growth: a folder to write the plots to.",
)
def main(
    *,
    groups: tuple[str, ...],
    output: str,
    quick: bool,
    alone: bool,
    sizes: tuple[int, ...],
    replicas: int,
    plots: Path | None,
) -> None:
    """Measure the core, the process and the command against the alternatives. GROUPS: all unless named."""
    try:
        peers = NO_PEERS if alone else all_peers()
    except PeerMissing as error:
        raise click.ClickException(str(error)) from error
    settings = replace(QUICK if quick else THOROUGH, sizes=sizes, replicas=replicas, plots=plots)
    report = run(groups or tuple(GROUPS), peers, settings)
    if output == "json":
        click.echo(as_json(report))
    else:
        show(report)
    # A run of all groups reports a group that cannot be measured here; a run that names it fails.
    if groups and report.unmeasured:
        sys.exit(1)


def run(groups: tuple[str, ...], peers: Peers, settings: BenchmarkSettings) -> Report:
    """The report on `groups`. WrongResult if a candidate returns a wrong result, before it is measured."""
    timings: list[Timing] = []
    measurements: list[Measurement] = []
    unmeasured: list[Unmeasured] = []
    for group in groups:
        with closing(GROUPS[group](peers, settings)) as benchmarks:
            for benchmark in benchmarks:
                match benchmark:
                    case Comparison():
                        timings += measure(benchmark, settings)
                    case Scenario():
                        measurements += benchmark.measure()
                    case Unmeasured():
                        unmeasured.append(benchmark)
    target_results = check_targets(timings, measurements, fast_path.cookie_bytes())
    return Report(tuple(timings), tuple(measurements), target_results, peers.versions, settings, tuple(unmeasured))


if __name__ == "__main__":
    main()

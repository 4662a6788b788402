"""`python -m benchmarks`: measures the core, the process and the command against the alternatives, in one run."""

import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import Final, TypeAlias

import click

from benchmarks import canonical, cluster, fast_path, kubernetes, plans, runtime, start_up, terraform, three_way
from benchmarks.bars import verdicts
from benchmarks.measuring import QUICK, THOROUGH, Contest, Figure, Pace, measure
from benchmarks.opponents import NOBODY, OpponentMissing, Opponents, all_opponents
from benchmarks.report import Report, as_json, show
from benchmarks.surveys import Reading, Survey, Trial, Unmeasured

Group: TypeAlias = Callable[[Opponents, Pace], Generator[Trial, None, None]]


def _at_any_pace(contests: Callable[[Opponents], Iterator[Contest]]) -> Group:
    def trials(opponents: Opponents, _pace: Pace) -> Generator[Trial, None, None]:
        yield from contests(opponents)

    return trials


GROUPS: Final[dict[str, Group]] = {
    "canonical": _at_any_pace(canonical.contests),
    "fast-path": _at_any_pace(fast_path.contests),
    "plan": _at_any_pace(plans.contests),
    "three-way": _at_any_pace(three_way.contests),
    "start-up": _at_any_pace(start_up.contests),
    "runtime": runtime.trials,
    "kubernetes": kubernetes.trials,
    "cluster": cluster.trials,
    "terraform": terraform.trials,
}


@click.command()
@click.argument("groups", nargs=-1, type=click.Choice(list(GROUPS)))
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How to print the figures.")
@click.option("--quick", is_flag=True, help="One call each: shows that everything runs, the figures mean nothing.")
@click.option(
    "--alone", is_flag=True, help="Ours and the standard library alone, without the packages to compare with."
)
def main(*, groups: tuple[str, ...], output: str, quick: bool, alone: bool) -> None:
    """Measure the core, the process and the command against the alternatives. GROUPS: all unless named."""
    try:
        opponents = NOBODY if alone else all_opponents()
    except OpponentMissing as error:
        raise click.ClickException(str(error)) from error
    report = run(groups or tuple(GROUPS), opponents, QUICK if quick else THOROUGH)
    if output == "json":
        click.echo(as_json(report))
    else:
        show(report)
    # Among all groups one that cannot be measured here is told of; whoever names it wants no other.
    if groups and report.unmeasured:
        sys.exit(1)


def run(groups: tuple[str, ...], opponents: Opponents, pace: Pace) -> Report:
    """The report on `groups`; Disagreement as soon as a contestant gives a wrong answer, which is before its turn."""
    figures: list[Figure] = []
    readings: list[Reading] = []
    unmeasured: list[Unmeasured] = []
    for group in groups:
        with closing(GROUPS[group](opponents, pace)) as trials:
            for trial in trials:
                match trial:
                    case Contest():
                        figures += measure(trial, pace)
                    case Survey():
                        readings += trial.take()
                    case Unmeasured():
                        unmeasured.append(trial)
    bars = verdicts(figures, readings, fast_path.cookie_bytes())
    return Report(tuple(figures), tuple(readings), bars, opponents.versions, pace, tuple(unmeasured))


if __name__ == "__main__":
    main()

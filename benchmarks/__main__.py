"""`python -m benchmarks`: measures the core and the command against the alternatives, in one run."""

from collections.abc import Callable, Iterator
from typing import Final

import click

from benchmarks import canonical, fast_path, plans, start_up, three_way
from benchmarks.bars import verdicts
from benchmarks.measuring import QUICK, THOROUGH, Contest, Pace, check_agreement, measure
from benchmarks.opponents import NOBODY, OpponentMissing, Opponents, all_opponents
from benchmarks.report import Report, as_json, show

GROUPS: Final[dict[str, Callable[[Opponents], Iterator[Contest]]]] = {
    "canonical": canonical.contests,
    "fast-path": fast_path.contests,
    "plan": plans.contests,
    "three-way": three_way.contests,
    "start-up": start_up.contests,
}


@click.command()
@click.argument("groups", nargs=-1, type=click.Choice(list(GROUPS)))
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How to print the figures.")
@click.option("--quick", is_flag=True, help="One call each: shows that everything runs, the figures mean nothing.")
@click.option(
    "--alone", is_flag=True, help="Ours and the standard library alone, without the packages to compare with."
)
def main(*, groups: tuple[str, ...], output: str, quick: bool, alone: bool) -> None:
    """Measure the core and the command against the alternatives. GROUPS: all unless named."""
    try:
        opponents = NOBODY if alone else all_opponents()
    except OpponentMissing as error:
        raise click.ClickException(str(error)) from error
    report = run(groups or tuple(GROUPS), opponents, QUICK if quick else THOROUGH)
    if output == "json":
        click.echo(as_json(report))
    else:
        show(report)


def run(groups: tuple[str, ...], opponents: Opponents, pace: Pace) -> Report:
    """The report on `groups`; Disagreement before anything is measured when a contestant gives a wrong answer."""
    contests = [contest for group in groups for contest in GROUPS[group](opponents)]
    for contest in contests:
        check_agreement(contest)
    figures = tuple(figure for contest in contests for figure in measure(contest, pace))
    return Report(figures, verdicts(figures, fast_path.cookie_bytes()), opponents.versions, pace)


if __name__ == "__main__":
    main()

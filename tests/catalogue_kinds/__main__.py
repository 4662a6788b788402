"""`make contracts`: the whole lifecycle contract on every kind of the catalogue; ARGS names some of them."""

import argparse
import asyncio
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import click

from setpoint.core.unstructured import GroupKind
from tests.catalogue_kinds.compact import live_once
from tests.catalogue_kinds.contract_run import CHAPTER_NAMES, failures_of, play_chapter, tried_kinds
from tests.catalogue_kinds.fixtures import fixture_of


@dataclass(frozen=True, slots=True)
class KindReport:
    """What became of the contract of one kind."""

    kind: str
    held: int
    left_out: int
    failed: dict[str, str]
    seconds: float

    def __str__(self) -> str:
        problems = "".join(f"\n  WRONG: {name}: {why}" for name, why in self.failed.items())
        return f"{self.kind}: {self.held} claims hold, {self.left_out} left out, {self.seconds:.1f} s{problems}"


def report_of(name: GroupKind) -> KindReport:
    """Tries every claim on a kind, and lets it live once."""
    begun = time.process_time()
    fixture = fixture_of(name)
    held, left_out, failed = 0, 0, dict[str, str]()
    for chapter in CHAPTER_NAMES:
        played = play_chapter(fixture, chapter)
        held, left_out = held + len(played.held), left_out + len(played.left_out)
        failed |= failures_of(played)
    try:
        asyncio.run(live_once(fixture))
    except Exception as error:  # noqa: BLE001 - every kind is tried, and all failures are shown
        failed["it lives once"] = f"{type(error).__name__}: {error}"
    return KindReport(name[1], held, left_out, failed, time.process_time() - begun)


def main() -> int:
    """Prints a line for each kind and the sums; 1 when a claim does not hold."""
    parser = argparse.ArgumentParser(prog="make contracts")
    parser.add_argument("kinds", nargs="*", help="some kinds alone")
    chosen = parser.parse_args().kinds
    names = [name for name in tried_kinds() if not chosen or name[1] in chosen]
    reports = []
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for report in pool.map(report_of, names):
            click.echo(report)
            reports.append(report)
    wrong = [one.kind for one in reports if one.failed]
    click.echo(
        f"{len(reports)} kinds, {sum(one.held for one in reports)} claims hold, {sum(one.left_out for one in reports)} "
        f"are left out, {sum(len(one.failed) for one in reports)} fail on {len(wrong)} kinds; "
        f"{sum(one.seconds for one in reports):.0f} s of CPU"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

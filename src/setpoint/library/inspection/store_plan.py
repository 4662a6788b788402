"""The plan of every resource of a store, or of a recorded world: with its cookie, and without it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.preview import PreviewFinding, PreviewResult
from setpoint.library.command_record import CommandObserver
from setpoint.library.declared import SessionValue
from setpoint.library.manifests.checks import warn_about_resources
from setpoint.library.outcome import ExitCode, worst_exit_code
from setpoint.preview import PreviewSession, with_kind_variants
from setpoint.replay.preview_report import PreviewReport, managed_refs


@dataclass(frozen=True, slots=True, eq=False)
class StorePlan(SessionValue):
    """The plans of all resources: what the next step of each would write, and whether a cookie hides a difference.

    `to_json()` is what `setpoint plan --all` prints with `-o json`.
    """

    report: PreviewReport
    warnings: tuple[str, ...] = ()

    @property
    def results(self) -> tuple[PreviewResult, ...]:
        """The plan of each resource, sorted: its finding, both plans, or the error in their place."""
        return self.report.found

    @property
    def exit_code(self) -> ExitCode:
        """FAILED for a failure, a difference hidden by a cookie or a blocked write; CHANGES when a step would write."""
        is_failed = bool(self.report.blocked or self.report.missed)
        return worst_exit_code([ExitCode.FAILED if is_failed else ExitCode.DONE, *map(_exit_code_of, self.results)])

    @property
    def is_done(self) -> bool:
        """Whether no step would write anything."""
        return self.exit_code is ExitCode.DONE

    def __iter__(self) -> Iterator[PreviewResult]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, which: int | str | ResourceRef) -> PreviewResult:
        """The plan of a resource: by its position, its ref, or KIND/NAME. KeyError when there is none."""
        if isinstance(which, int):
            return self.results[which]
        for one in self.results:
            if which in (one.ref, f"{one.ref.kind}/{one.ref.name}"):
                return one
        raise KeyError(which)

    def to_data(self) -> Json:
        """The report of the command: the same world gives the same bytes."""
        return self.report.to_data()

    @property
    def summary(self) -> Mapping[str, int]:
        """How many resources have each finding."""
        counts = {finding: len(self.report.with_findings(finding)) for finding in PreviewFinding}
        return {finding.value: count for finding, count in counts.items() if count}

    def __repr__(self) -> str:
        found = ", ".join(f"{name} {count}" for name, count in self.summary.items())
        return f"<plan of all: {found or 'nothing is declared'}>"

    def _repr_html_(self) -> str:
        from setpoint.library.inspection.notebook_html import store_plan_html

        return store_plan_html(self)


def _exit_code_of(one: PreviewResult) -> ExitCode:
    if one.finding in (PreviewFinding.FAILED, PreviewFinding.MASKED, PreviewFinding.UNSETTLED):
        return ExitCode.FAILED
    return ExitCode.DONE if one.writes_nothing else ExitCode.CHANGES


async def plan_store(opened: PreviewSession, variants: Mapping[str, str], observer: CommandObserver) -> StorePlan:
    """The plans of all resources; with `variants`, of kinds as they are handled otherwise."""
    preview = replace(opened, engine=with_kind_variants(opened.engine, variants))
    observer.expected(await managed_refs(preview.engine))
    with observer.running():
        found = await preview.preview_all(observer.previewed)
    warnings: list[str] = []
    warn_about_resources((await preview.engine.store.list()).resources, preview.engine, warnings.append)
    for text in warnings:
        observer.warned(text)
    return StorePlan(found, tuple(warnings))

"""Whatever a manifest is, it is used or refused: in little memory, without a crash, and without telling a secret."""

import asyncio
import os
from collections.abc import Iterator
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.security.manifest_mutations import SECRET, manifest_text
from tests.security.measured_process import MeasuredProcess, examples_in

pytestmark = [
    pytest.mark.laws,
    pytest.mark.slow,
    pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="the memory is measured as Linux shows it"),
]
# Manifests of one example.
BATCH: Final = 20
EXAMPLES: Final = examples_in("SETPOINT_MANIFESTS", 100_000) // BATCH


class ManifestReader:
    """The process, and how many manifests it was given."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self.process = MeasuredProcess("tests.security.manifest_reader")
        self.runner.run(self.process.start())
        # All modules are loaded, and caches are filled.
        assert self.tell(f"0 {BATCH}") == "ok"
        self.process.begin()

    def tell(self, line: str) -> str:
        return self.runner.run(self.process.tell(line))

    def read(self, seed: int) -> str:
        self.process.output.clear()
        self.process.begin_example()
        found = self.tell(f"{seed} {BATCH}")
        self.process.end_example()
        return found

    def figures(self) -> str:
        return f"{self.process.figures()}, with {BATCH} manifests each: {self.tell('counts')}"

    def close(self) -> None:
        self.runner.run(self.process.stop())
        self.runner.close()


@pytest.fixture(scope="module")
def reader(request: pytest.FixtureRequest) -> Iterator[ManifestReader]:
    made = ManifestReader()
    yield made
    reporter = request.config.pluginmanager.getplugin("terminalreporter")
    if reporter is not None:
        reporter.write_line(f"\n{made.figures()}")
    made.close()


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**40))
def test_any_manifest_is_used_or_refused(seed: int, reader: ManifestReader) -> None:
    found = reader.read(seed)

    assert found == "ok", found.replace("\\n", "\n")
    assert not any(SECRET in line for line in reader.process.output)


def test_the_manifests_differ_and_many_hold_the_secret() -> None:
    texts = [manifest_text(seed) for seed in range(200)]

    assert len(set(texts)) > 150
    assert sum(SECRET.encode() in text for text in texts) > 50

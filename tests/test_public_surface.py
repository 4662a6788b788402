"""The public names of `import setpoint`."""

import subprocess
import sys

import pytest

import setpoint


def test_the_surface_is_the_listed_names_and_nothing_else() -> None:
    assert dir(setpoint) == sorted(setpoint.__all__)


def test_every_listed_name_is_there() -> None:
    for name in setpoint.__all__:
        assert getattr(setpoint, name) is not None


def test_a_name_that_is_not_there_points_to_those_that_are() -> None:
    with pytest.raises(AttributeError, match=r"setpoint has no 'reconcile': see dir\(setpoint\)"):
        _ = setpoint.reconcile


def test_importing_setpoint_loads_nothing_until_it_is_used() -> None:
    script = (
        "import sys, setpoint; assert 'msgspec' not in sys.modules; setpoint.digest({}); assert 'orjson' in sys.modules"
    )

    subprocess.run([sys.executable, "-c", script], check=True)

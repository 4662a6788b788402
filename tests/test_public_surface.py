"""The public names of `import setpoint`."""

import subprocess
import sys
from types import FunctionType

import pytest

import setpoint
from tests.docs.public_names import PAGE, page_text


def test_the_surface_is_the_listed_names_and_nothing_else() -> None:
    assert dir(setpoint) == sorted(setpoint.__all__)


def test_every_listed_name_is_there() -> None:
    for name in setpoint.__all__:
        assert getattr(setpoint, name) is not None


def test_the_page_lists_every_public_name_with_its_docs() -> None:
    assert PAGE.read_text(encoding="utf-8") == page_text(), "stale: run python -m tests.docs.public_names"


def test_every_public_method_of_a_public_class_has_a_docstring() -> None:
    classes = [one for one in (getattr(setpoint, name) for name in dir(setpoint)) if isinstance(one, type)]
    methods = [
        (one.__name__, name, member)
        for one in classes
        for name, member in vars(one).items()
        if not name.startswith("_") and isinstance(member, FunctionType | property)
    ]

    assert len(methods) > 50
    assert [f"{owner}.{name}" for owner, name, member in methods if not member.__doc__] == []


def test_a_name_that_is_not_there_points_to_those_that_are() -> None:
    with pytest.raises(AttributeError, match=r"setpoint has no 'reconcile': see dir\(setpoint\)"):
        _ = setpoint.reconcile


def test_importing_setpoint_loads_nothing_until_it_is_used() -> None:
    script = (
        "import sys, setpoint; assert 'msgspec' not in sys.modules; setpoint.digest({}); assert 'orjson' in sys.modules"
    )

    subprocess.run([sys.executable, "-c", script], check=True)

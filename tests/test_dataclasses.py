"""Every data class of the package can be generated: a mistake in one would show at its first use, not at its import."""

import dataclasses
import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module

import setpoint


def _classes() -> Iterator[type]:
    for found in pkgutil.walk_packages(setpoint.__path__, "setpoint."):
        module = import_module(found.name)
        for one in vars(module).values():
            if inspect.isclass(one) and one.__module__ == found.name and "__dataclass_fields__" in vars(one):
                yield one


def test_the_fields_of_every_data_class_are_valid() -> None:
    generated = {one.__qualname__: [field.name for field in dataclasses.fields(one)] for one in _classes()}

    assert len(generated) > 400
    assert generated["Present"] == ["live", "body", "version", "outputs", "whole", "location"]

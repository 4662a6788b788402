"""The docstring below each field of a struct, read from its source.

For example:

    class Settings(Struct):
        tier: str
        '''The machine, such as `db-custom-2-8192`.'''
"""

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import TypeAlias

import msgspec

_Holder: TypeAlias = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@cache
def field_docs(type_: type[msgspec.Struct]) -> Mapping[str, str]:
    """The docstring of each field that has one, inherited fields included; empty where the source is not available."""
    found: dict[str, str] = {}
    for cls in reversed(type_.__mro__):
        found.update(_in_module(cls.__module__).get(cls.__qualname__, {}))
    return found


@cache
def _in_module(name: str) -> Mapping[str, Mapping[str, str]]:
    """The field docstrings of every class in a module, by the qualified name of the class."""
    try:
        source = inspect.getsource(sys.modules[name])
    except (KeyError, OSError, TypeError):
        return {}
    return {path: dict(_field_texts(node)) for path, node in _classes(ast.parse(source), "")}


def _classes(holder: _Holder, prefix: str) -> Iterator[tuple[str, ast.ClassDef]]:
    for node in holder.body:
        match node:
            case ast.ClassDef(name=name):
                yield f"{prefix}{name}", node
                yield from _classes(node, f"{prefix}{name}.")
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield from _classes(node, f"{prefix}{name}.<locals>.")
            case _:
                continue


def _field_texts(cls: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, below in pairwise(cls.body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, " ".join(text.split())
            case _:
                continue

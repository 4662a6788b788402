"""Every message that code can produce, as a text with `…` for each part that varies.

A message is the argument of an error, wherever one is made. What stands in it is followed within its module, as far as
it is text: names, arguments, functions that return text, tables of phrases.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final, TypeAlias

from setpoint import errors

PLACEHOLDER: Final = "…"
# Where the message stands among the arguments. Besides our errors: what becomes a part of one, or stands in a status.
MESSAGE_POSITIONS: Final = {
    **{name: 0 for name, one in vars(errors).items() if isinstance(one, type) and issubclass(one, Exception)},
    **{
        "ValueError": 0,
        "_Problem": 0,
        "Unknown": 0,
        "_Why": 1,
        "Unsatisfied": 0,
        "Unsatisfiable": 1,
        "ReadyCondition": 2,
        "BlockingLink": 1,
    },
}
# Calls that put a message together, and the positions of the arguments that become parts of it; None: all of them.
COMPOSED: Final[dict[str, Sequence[int | str] | None]] = {
    "Message": None,
    "FieldTerm": (0,),
    "MemberTerm": (1,),
    "SettingTerm": (0, ": ", 1),
    "AnnotationTerm": (0,),
    "SubjectTerm": (0, ": "),
    "ManifestAdvice": (0,),
    "field_message": (0, 1),
}
# Errors about a field of a resource, whose name stands in front.
_FIELD_INVALID: Final = "field_invalid"
# What these return is a part that varies: the type of a value in words.
VARYING: Final = frozenset({"json_type"})
_FAR_ENOUGH: Final = 6
_LETTERS: Final = re.compile(r"[^\W\d_]{2}")

_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


def messages_in(source: str) -> dict[str, int]:
    """The messages of a module, each with the line on which it is made; none consists of placeholders alone."""
    module = _read(source)
    found: dict[str, int] = {}
    for call, inside in module.calls:
        for text in _messages_of(call, _Scope(module, inside)):
            if _LETTERS.search(text):
                found.setdefault(text, call.lineno)
    return found


def _messages_of(call: ast.Call, scope: "_Scope") -> set[str]:
    if _name_of(call) == _FIELD_INVALID:
        return _joined([ast.Constant(f"{PLACEHOLDER}: "), *call.args[1:]], scope)
    position = MESSAGE_POSITIONS.get(_name_of(call), len(call.args))
    return _texts(call.args[position], scope) if position < len(call.args) else set()


@dataclass(frozen=True, slots=True)
class _Module:
    constants: dict[str, ast.expr]
    # By class, "" for none, and name.
    functions: dict[tuple[str, str], _Function]
    # Each call, and the function or method around it.
    calls: tuple[tuple[ast.Call, _Function | None], ...]

    def called(self, call: ast.Call, caller: _Function | None) -> _Function | None:
        """The function of this module that is called: `self.name` is a method of the caller's own class."""
        is_method = isinstance(call.func, ast.Attribute)
        inside = next((one for (one, _), function in self.functions.items() if function is caller), "")
        return self.functions.get((inside if is_method else "", _name_of(call)))


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where an expression stands, and how many names may still be followed from there."""

    module: _Module
    function: _Function | None
    left: int = _FAR_ENOUGH


def _read(source: str) -> _Module:
    tree = ast.parse(source)
    bodies = [("", tree.body), *((node.name, node.body) for node in tree.body if isinstance(node, ast.ClassDef))]
    functions = {(name, node.name): node for name, body in bodies for node in body if isinstance(node, _Function)}
    around = {id(node): function for function in functions.values() for node in ast.walk(function)}
    calls = tuple((node, around.get(id(node))) for node in ast.walk(tree) if isinstance(node, ast.Call))
    constants = {name: value for node in tree.body for name, value in _assigned(node)}
    return _Module(constants, functions, calls)


def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value)
            | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            | ast.NamedExpr(target=ast.Name(id=name), value=value)
        ):
            yield name, value
        case _:
            pass


def _name_of(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="self" | "errors"), attr=name):
            return name
        case _:
            return ""


def _texts(node: ast.expr, scope: _Scope) -> set[str]:
    """The texts that `node` may evaluate to."""
    match node:
        case ast.Constant(value=str(text)):
            return {text}
        case ast.JoinedStr(values=parts):
            return _joined(parts, scope)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _joined([left, right], scope)
        case ast.FormattedValue(value=value, conversion=-1):
            return _texts(value, scope)
        case ast.IfExp(body=one, orelse=other):
            return _texts(one, scope) | _texts(other, scope)
        case ast.Call() if _name_of(node) in COMPOSED:
            return _joined(_parts_of(node), scope)
        case ast.Name() | ast.Call() if scope.left:
            return _followed(node, replace(scope, left=scope.left - 1)) or {PLACEHOLDER}
        case _:
            return {PLACEHOLDER}


def _parts_of(call: ast.Call) -> list[ast.expr]:
    positions = COMPOSED[_name_of(call)]
    if positions is None:
        return call.args
    return [ast.Constant(one) if isinstance(one, str) else call.args[one] for one in positions]


def _joined(parts: Sequence[ast.expr], scope: _Scope) -> set[str]:
    ways = product(*(sorted(_texts(part, scope)) for part in parts))
    return {re.sub(f"{PLACEHOLDER}+", PLACEHOLDER, "".join(way)) for way in ways}


def _followed(node: ast.Name | ast.Call, scope: _Scope) -> set[str]:
    match node:
        case ast.Name(id=name):
            return _named(name, scope)
        case ast.Call(func=ast.Attribute(attr="join"), args=[ast.GeneratorExp(elt=one) | ast.ListComp(elt=one)]):
            return _texts(one, scope)
        case _ if _name_of(node) in VARYING:
            return {PLACEHOLDER}
        case _ if function := scope.module.called(node, scope.function):
            returns = [one.value for one in ast.walk(function) if isinstance(one, ast.Return) and one.value]
            return _any_of(returns, replace(scope, function=function))
        case _:
            return _values_looked_up(node, scope)


def _named(name: str, scope: _Scope) -> set[str]:
    """The texts that a name may hold: those assigned to it, or passed as its argument."""
    here = [] if scope.function is None else list(ast.walk(scope.function))
    local = [value for node in here for one, value in _assigned(node) if one == name]
    if local:
        return _any_of(local, scope)
    if scope.function and name in (parameters := _parameters(scope.function)):
        return _handed_over(name, parameters.index(name), scope.function, scope)
    return _texts(scope.module.constants[name], scope) if name in scope.module.constants else set()


def _any_of(nodes: Sequence[ast.expr], scope: _Scope) -> set[str]:
    """The texts that any of them may evaluate to; a word or two is no message of its own, but a part that varies."""
    return {text if _is_phrase(text) or not text else PLACEHOLDER for node in nodes for text in _texts(node, scope)}


def _is_phrase(text: str) -> bool:
    return len(text.split()) > 2


def _parameters(function: _Function) -> list[str]:
    names = [one.arg for one in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
    return [name for name in names if name != "self"]


def _handed_over(name: str, position: int, function: _Function, scope: _Scope) -> set[str]:
    found: set[str] = set()
    for call, caller in scope.module.calls:
        if scope.module.called(call, caller) is function:
            given = [one.value for one in call.keywords if one.arg == name] or call.args[position : position + 1]
            found |= _any_of(given, replace(scope, function=caller))
    return found


def _values_looked_up(node: ast.Call, scope: _Scope) -> set[str]:
    """The phrases of the tables that a call reads."""
    names = [one.id for one in ast.walk(node) if isinstance(one, ast.Name)]
    tables = [scope.module.constants[name] for name in names if name in scope.module.constants]
    words = [one.value for table in tables for one in ast.walk(table) if isinstance(one, ast.Constant)]
    return {PLACEHOLDER, *(word for word in words if isinstance(word, str) and _is_phrase(word))}

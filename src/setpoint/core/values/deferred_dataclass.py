"""The `dataclass` of the standard library, for classes with slots: their methods are generated at their first use.

The standard library compiles the source of up to six methods for each class, one by one, which takes longer than all
else that an import does. A command imports hundreds of classes, makes instances of some, and compares or prints few.

`replace` is that of the standard library, in a quarter of its time for these classes: a step makes forty copies.
"""

import dataclasses
import sys
from collections.abc import Callable, Iterator, Sequence
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias, TypeVar, get_origin

_T = TypeVar("_T")
_Namespace = dict[str, object]
_Options = dict[str, bool]

_INIT: Final = "__init__"
# Made without a compilation. copy.replace() uses the last one.
_OF_FIELDS: Final = (
    "__dataclass_fields__",
    "__match_args__",
    *(("__replace__",) if sys.version_info >= (3, 13) else ()),
)
_OF_ALL: Final = ("__dataclass_params__", "__repr__")
_OF_FROZEN: Final = ("__setattr__", "__delattr__", "__getstate__", "__setstate__")


def _dataclass(
    *, init: bool = True, eq: bool = True, frozen: bool = False, slots: bool = False, kw_only: bool = False
) -> Callable[[type[_T]], type[_T]]:
    options = {"init": init, "eq": eq, "frozen": frozen, "slots": slots, "kw_only": kw_only}

    def decorated(cls: type[_T]) -> type[_T]:
        fields = _field_names(cls)
        if fields is None or not slots:
            return dataclasses.dataclass(**options)(cls)
        return _with_slots(cls, fields, options)

    return decorated


def _field_names(cls: type[object]) -> tuple[str, ...] | None:
    """The fields that a class adds to those of its bases; None if only the standard library can tell."""
    annotations: dict[str, object] = cls.__annotations__
    if any(_is_unusual(hint) for hint in annotations.values()):
        return None
    return tuple(
        name for name, hint in annotations.items() if hint is not ClassVar and get_origin(hint) is not ClassVar
    )


def _is_unusual(hint: object) -> bool:
    if isinstance(hint, str):
        return any(word in hint for word in ("ClassVar", "InitVar", "KW_ONLY"))
    return hint is dataclasses.InitVar or hint is dataclasses.KW_ONLY or isinstance(hint, dataclasses.InitVar)


def _with_slots(cls: type[_T], fields: tuple[str, ...], options: _Options) -> type[_T]:
    """A class with slots in the place of `cls`, as the standard library makes one; its methods are deferred."""
    declared = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
    methods = _GeneratedMethods(declared, options)
    namespace = {name: value for name, value in declared.items() if name not in fields}
    inherited = {slot for base in cls.__mro__[1:-1] for slot in _slots(base)}
    namespace["__slots__"] = tuple(name for name in fields if name not in inherited)
    for name in _deferred_names(declared, options):
        namespace[name] = _Deferred(methods)
    if options["eq"] and not options["frozen"] and not _has_own_hash(declared):
        namespace["__hash__"] = None
    make: Any = type(cls)
    made: type[_T] = make(cls.__name__, cls.__bases__, namespace)
    made.__qualname__ = cls.__qualname__
    return made


def _slots(base: type) -> tuple[str, ...]:
    slots = vars(base).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _deferred_names(declared: _Namespace, options: _Options) -> Iterator[str]:
    """What the standard library would generate: nothing that the class has itself."""
    own = {name for name in declared if name != "__hash__" or _has_own_hash(declared)}
    wanted = [*_OF_FIELDS, *_OF_ALL]
    if options["init"]:
        wanted.append(_INIT)
    if options["eq"]:
        wanted.append("__eq__")
    if options["frozen"]:
        wanted += (*_OF_FROZEN, "__hash__") if options["eq"] else _OF_FROZEN
    return (name for name in wanted if name not in own)


def _has_own_hash(declared: _Namespace) -> bool:
    """Whether the class has a hash of its own. Python adds an empty one to a class that has only `__eq__`."""
    return "__hash__" in declared and not (declared["__hash__"] is None and "__eq__" in declared)


class _Deferred:
    """Stands for one generated attribute of a class, until it is looked up."""

    __slots__ = ("_cls", "_methods", "_name")

    _cls: type
    _name: str

    def __init__(self, methods: "_GeneratedMethods") -> None:
        self._methods = methods

    def __set_name__(self, cls: type, name: str) -> None:
        self._cls, self._name = cls, name

    def __get__(self, instance: object, owner: type) -> object:
        if instance is None and self._name == "__hash__":
            # The standard library asks a class only whether its instances can be the default of a field.
            return hash
        if vars(self._cls)[self._name] is self:
            self._methods.generate(self._cls, self._name)
        found = vars(self._cls)[self._name]
        return found.__get__(instance, owner) if hasattr(found, "__get__") else found


class _GeneratedMethods:
    """Generates the attributes of one class. Threads that do so at once put equal ones into it."""

    __slots__ = ("_declared", "_options")

    def __init__(self, declared: _Namespace, options: _Options) -> None:
        self._declared = declared
        self._options = options

    def generate(self, cls: type, name: str) -> None:
        """Puts an attribute into the class, and those that are generated with it."""
        if name == _INIT:
            fields = _init_fields(cls, self._declared, kw_only=self._options["kw_only"])
            setattr(cls, name, _make_init(cls, fields, is_frozen=self._options["frozen"]))
        elif name in _OF_FIELDS:
            # A class that inherits from a frozen one has to be frozen, which compiles two methods.
            frozen = self._options["frozen"] and any(map(dataclasses.is_dataclass, cls.__mro__[1:]))
            options = {"init": False, "repr": False, "eq": False, "frozen": frozen, "kw_only": self._options["kw_only"]}
            self._generate_all(cls, _OF_FIELDS, options)
        else:
            self._generate_all(cls, (*_OF_ALL, *_OF_FROZEN, "__eq__", "__hash__"), self._options)

    def _generate_all(self, cls: type, names: Sequence[str], options: _Options) -> None:
        template: Any = type(cls)(cls.__name__, cls.__bases__, dict(self._declared))
        template.__qualname__ = cls.__qualname__
        made = vars(dataclasses.dataclass(**options)(template))
        for name in names:
            if isinstance(vars(cls).get(name), _Deferred):
                setattr(cls, name, made[name])


# --- The constructor --------------------------------------------------------------------------------------------------

# The default of a parameter whose field has a factory.
_NOT_GIVEN: Final = object()


def _init_fields(cls: type, declared: _Namespace, *, kw_only: bool) -> list["dataclasses.Field[Any]"]:
    """The fields of a class and its bases, as far as the constructor needs them."""
    fields = {
        one.name: one
        for base in cls.__mro__[:0:-1]
        if dataclasses.is_dataclass(base)
        for one in dataclasses.fields(base)
    }
    for name in _field_names(cls) or ():
        value: Any = declared.get(name, dataclasses.MISSING)
        one = value if isinstance(value, dataclasses.Field) else dataclasses.field(default=value)
        one.name, one.type = name, cls.__annotations__[name]
        if one.kw_only is dataclasses.MISSING:
            one.kw_only = kw_only
        fields[name] = one
    return list(fields.values())


def _make_init(cls: type, fields: Sequence["dataclasses.Field[Any]"], *, is_frozen: bool) -> object:
    """The `__init__` that the standard library generates, in one compilation."""
    ordered = [one for one in fields if one.init and not one.kw_only]
    by_name = [one for one in fields if one.init and one.kw_only]
    parameters = ["self", *map(_parameter, ordered), *(["*"] if by_name else []), *map(_parameter, by_name)]
    body = [_assignment(one, is_frozen=is_frozen) for one in fields if _is_set(one)]
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    source = f"def __init__({', '.join(parameters)}):\n " + "\n ".join(body or ["pass"])
    values = {_default(one): _default_value(one) for one in fields}
    values |= {_factory(one): one.default_factory for one in fields}
    # The slot's own setter: a frozen class refuses every other way, and this one takes half the time of object's.
    setters = {_setter(one.name): _slot_setter(cls, one.name) for one in fields} if is_frozen else {}
    scope: dict[str, Any] = {**values, **setters, "_not_given": _NOT_GIVEN}
    exec(source, scope)  # as the standard library does; the names of fields are identifiers
    made = scope[_INIT]
    made.__qualname__, made.__module__ = f"{cls.__qualname__}.{_INIT}", cls.__module__
    made.__annotations__ = {**{one.name: one.type for one in (*ordered, *by_name)}, "return": None}
    return made


def _parameter(field: "dataclasses.Field[Any]") -> str:
    has_default = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
    return f"{field.name}={_default(field)}" if has_default else field.name


def _is_set(field: "dataclasses.Field[Any]") -> bool:
    """Whether the constructor sets the field: one without a value is left to `__post_init__`."""
    has_default = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
    return field.init or has_default


def _assignment(field: "dataclasses.Field[Any]", *, is_frozen: bool) -> str:
    name, value = field.name, field.name if field.init else _default(field)
    if field.default_factory is not dataclasses.MISSING:
        made = f"{_factory(field)}()"
        value = f"{made} if {name} is _not_given else {name}" if field.init else made
    return f"{_setter(name)}(self, {value})" if is_frozen else f"self.{name} = {value}"


def _setter(name: str) -> str:
    return f"_set_{name}"


def _is_slot(cls: type, name: str) -> bool:
    return isinstance(getattr(cls, name, None), MemberDescriptorType)


def _slot_setter(cls: type, name: str) -> Callable[[Any, Any], None]:
    if _is_slot(cls, name):
        setter: Callable[[Any, Any], None] = getattr(cls, name).__set__
        return setter
    # Inherited from a class without slots.
    return lambda instance, value: object.__setattr__(instance, name, value)


def _default(field: "dataclasses.Field[Any]") -> str:
    return f"_default_{field.name}"


def _factory(field: "dataclasses.Field[Any]") -> str:
    return f"_factory_{field.name}"


def _default_value(field: "dataclasses.Field[Any]") -> object:
    return _NOT_GIVEN if field.default_factory is not dataclasses.MISSING else field.default


# --- Copies -----------------------------------------------------------------------------------------------------------

_Replacer: TypeAlias = Callable[[Any, dict[str, Any]], Any]
_replacers: Final[dict[type, _Replacer]] = {}


def _replace(original: _T, /, **changes: Any) -> _T:  # noqa: ANN401 - as the standard library has it
    cls = type(original)
    replacer = _replacers.get(cls)
    if replacer is None:
        replacer = _replacers[cls] = _make_replacer(cls)
    copy: _T = replacer(original, changes)
    return copy


def _make_replacer(cls: type) -> _Replacer:
    """Copies an instance slot by slot; by the standard library where a class has no slots, or checks its values."""
    fields = dataclasses.fields(cls)
    if hasattr(cls, "__post_init__") or not all(one.init and _is_slot(cls, one.name) for one in fields):
        return lambda original, changes: dataclasses.replace(original, **changes)
    setters = {one.name: _slot_setter(cls, one.name) for one in fields}
    lines = ["def replacer(original, changes):", " copy = _new(_class)"]
    lines += [f" {_setter(name)}(copy, original.{name})" for name in setters]
    lines += [" try:", "  for name in changes: _setters[name](copy, changes[name])"]
    # The error that the standard library raises for a field that the class has not.
    lines += [" except KeyError: return _by_library(original, **changes)", " return copy"]
    scope: dict[str, Any] = {_setter(name): setter for name, setter in setters.items()}
    scope |= {"_new": object.__new__, "_class": cls, "_setters": setters, "_by_library": dataclasses.replace}
    exec("\n".join(lines), scope)  # the names of fields are identifiers
    replacer: _Replacer = scope["replacer"]
    return replacer


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import replace as replace
else:
    dataclass = _dataclass
    replace = _replace

"""Messages that name fields and settings as data, so that each front end words them in its own vocabulary.

The text of a message has the words of a manifest. `worded` gives the same message in the words of another front end;
`printable` makes any text safe for a terminal.
"""

import re
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeAlias

from setpoint.errors import ManifestInvalid


class FieldTerm(NamedTuple):
    """A field of the author's manifest: `spec.waitFor.field`."""

    path: str

    def __str__(self) -> str:
        return self.path


class MemberTerm(NamedTuple):
    """A member of a field, by its name alone: `fieldValue` of `spec.waitFor`."""

    holder: str
    name: str

    def __str__(self) -> str:
        return self.name


class SettingTerm(NamedTuple):
    """A field with the value to write: `spec.forceConflicts: true`."""

    path: str
    value: str

    def __str__(self) -> str:
        return f"{self.path}: {self.value}"


class AnnotationTerm(NamedTuple):
    """An annotation of the author's manifest, by its key."""

    key: str

    def __str__(self) -> str:
        return self.key


class SubjectTerm(NamedTuple):
    """The resource that a message is about, in front of it: `KubernetesObject shop/web: `."""

    ref: str

    def __str__(self) -> str:
        return f"{self.ref}: "


class ManifestAdvice(NamedTuple):
    """A part of a sentence that only an author of a manifest can follow."""

    text: str

    def __str__(self) -> str:
        return self.text


MessageTerm: TypeAlias = FieldTerm | MemberTerm | SettingTerm | AnnotationTerm | SubjectTerm | ManifestAdvice
# The words of a front end for a term.
Vocabulary: TypeAlias = Callable[[MessageTerm], str]


class Message(str):
    """A message and the parts that it is made of: texts and terms."""

    __slots__ = ("parts",)
    parts: tuple[str | MessageTerm, ...]

    def __new__(cls, *parts: str | MessageTerm) -> "Message":
        flat = tuple(piece for part in parts for piece in _pieces(part))
        message = super().__new__(cls, "".join(map(str, flat)))
        message.parts = flat
        return message


def _pieces(part: str | MessageTerm) -> tuple[str | MessageTerm, ...]:
    return part.parts if isinstance(part, Message) else (part,)


def field_message(path: object, problem: str) -> Message:
    """A message about the field at `path`; `problem` goes on after it."""
    return Message(FieldTerm(str(path)), problem)


def below(holder: str, message: Message) -> Message:
    """The message with all its fields below `holder`: `waitFor.field` becomes `spec.waitFor.field`."""
    return Message(*(_below(holder, part) for part in message.parts))


def _below(holder: str, part: str | MessageTerm) -> str | MessageTerm:
    match part:
        case FieldTerm(path):
            return FieldTerm(f"{holder}.{path}")
        case MemberTerm(inner, name):
            return MemberTerm(f"{holder}.{inner}", name)
        case _:
            return part


def joined(separator: str, terms: Iterable[MessageTerm]) -> Message:
    """The terms with a separator between them."""
    parts = [part for term in terms for part in (separator, term)]
    return Message(*parts[1:])


def message_of(error: BaseException) -> Message:
    """The message of an error; one without terms is a single text."""
    first = error.args[0] if error.args else ""
    return first if isinstance(first, Message) else Message(str(error))


def worded(error: BaseException, vocabulary: Vocabulary) -> str:
    """The message of an error in the words of a front end."""
    return "".join(part if isinstance(part, str) else vocabulary(part) for part in message_of(error).parts)


def field_named_by(error: BaseException) -> FieldTerm | AnnotationTerm | None:
    """The field or annotation at fault: the one that the error has, or the first term of its message."""
    if isinstance(error, ManifestInvalid) and error.field:
        return FieldTerm(error.field)
    return next((part for part in message_of(error).parts if isinstance(part, FieldTerm | AnnotationTerm)), None)


# Control characters of C0 and C1 but the line feed; lone surrogates; and format characters: those that change the
# direction of writing (bidirectional controls), that are invisible, or that break lines.
_NOT_PRINTABLE: Final = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"
)


def printable(text: str) -> str:
    """`text` without a character that a terminal interprets or hides: each is written as JSON escapes it, as `\\u001b`.

    JSON text is the same value afterwards: such characters are inside its strings only.
    """
    return _NOT_PRINTABLE.sub(_json_escape, text)


def _json_escape(found: re.Match[str]) -> str:
    encoded = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{high:02x}{low:02x}" for high, low in zip(encoded[::2], encoded[1::2], strict=True))

"""Manifests as no author means to write them: those of every kind, with mutations of their values and of their text.

The same seed gives the same text. A secret value is moved nowhere: where it stays, it is to be recognised as one.
"""

import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from random import Random
from typing import Any, Final, TypeAlias

from setpoint.core.values.yaml_documents import write_document
from tests.security.secret_places import PLACES, kubernetes_object

SECRET: Final = "swordfish-Zq81xTf0aLw"
# The place of a value in a document: its container, and the key or index there.
Place: TypeAlias = tuple[Any, Any]

_CONFIG_MAP: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "m"},
    "data": {"a": "b"},
}
_PLAIN: Final[tuple[Mapping[str, Any], ...]] = (
    {
        "apiVersion": "storage.cnrm.cloud.google.com/v1beta1",
        "kind": "StorageBucket",
        "metadata": {"name": "logs", "labels": {"team": "a"}, "annotations": {"cnrm.cloud.google.com/project-id": "p"}},
        "spec": {
            "location": "EU",
            "lifecycleRule": [{"action": {"type": "Delete"}, "condition": {"age": 30}}],
            "cors": [{"origin": ["*"], "method": ["GET"], "maxAgeSeconds": 5}],
        },
    },
    {
        "apiVersion": "sql.cnrm.cloud.google.com/v1beta1",
        "kind": "SQLInstance",
        "metadata": {"name": "main", "annotations": {"setpoint.dev/depends-on": "StorageBucket/logs"}},
        "spec": {
            "databaseVersion": "POSTGRES_16",
            "region": "europe-west1",
            "settings": {"tier": "db-f1-micro", "databaseFlags": [{"name": "a", "value": "on"}]},
        },
    },
    {
        "apiVersion": "sql.cnrm.cloud.google.com/v1beta1",
        "kind": "SQLDatabase",
        "metadata": {"name": "app"},
        "spec": {"instanceRef": {"external": "main"}, "charset": "UTF8"},
    },
    kubernetes_object(_CONFIG_MAP, waitFor={"field": "data.a", "timeout": "5s"}),
    kubernetes_object({**_CONFIG_MAP, "data": {"a": {"$ref": {"kind": "SQLDatabase", "name": "app", "path": "spec"}}}}),
    kubernetes_object({**_CONFIG_MAP, "data": {"a": "${ref:SQLDatabase/app:status.selfLink}"}}),
    {
        "apiVersion": "confidentialcontainers.org/v1alpha1",
        "kind": "TrusteeConfig",
        "metadata": {"name": "trust"},
        "spec": {"profileType": "Permissive"},
    },
    {
        "apiVersion": "setpoint.dev/v1alpha1",
        "kind": "ReferenceGrant",
        "metadata": {"name": "g"},
        "spec": {"from": [{"group": "", "kind": "K", "namespace": "n"}], "to": [{"group": "", "kind": "Secret"}]},
    },
)


def _deep(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value} if depth % 2 else [value]
    return value


# Stands for a value that is nested too deeply to be written by recursion.
_DEEPEST: Final = "nested-20000-times"
_DEEPEST_TEXT: Final = b"[" * 20_000 + b"]" * 20_000
_ODD: Final[tuple[Any, ...]] = (
    *(None, True, 0, -1, 7, 10**40, 1.5, 1e308, "", " ", "..", "/", "a/../b", "%2e%2e", "text"),
    *("\x1b[31mred\x1b[0m", "\u202e", "\ud800", "\x00", "a\nb", "{{ .Values.a }}", "~"),
    *([], [None], {}, {"": ""}, {"a": None}, [{"a": [1]}], [[[]]]),
    *("(redacted)", "<<", "2026-02-30", "0x1F", "1_000", "-0", "1e999", ".nan"),
    *({"$ref": None}, {"$ref": {"kind": "X"}}, "${ref:", "${ref:A/b:c}", "$${ref:x}"),
    *("x" * 100_000, "ü" * 300, _deep(60), _deep(301), _DEEPEST),
    *([*range(2_000)], {f"k{one}": one for one in range(2_000)}, [{"name": "same"}] * 3),
)
_KEYS: Final = (
    "",
    " ",
    "a",
    "sepc",
    "Spec",
    "..",
    "__class__",
    "<<",
    "$ref",
    "x" * 300,
    "\x1b]0;t\x07",
    "é",
    "0",
    "null",
)


def _odd(random: Random) -> Any:
    # A copy: it may be mutated in turn.
    return deepcopy(random.choice(_ODD))


def manifest_text(seed: int) -> bytes:
    """The text of a file with one or more manifests."""
    random = Random(seed)
    documents = [_document(random) for _ in range(random.choice((1, 1, 1, 1, 2, 3)))]
    if random.random() < 0.1:
        documents = [{"apiVersion": "v1", "kind": random.choice(("List", "list", "SecretList")), "items": documents}]
    text = random.choice(("---\n", "---\n", "\n...\n---\n", "\n")).join(_written(one, random) for one in documents)
    data = text.encode("utf-8", "surrogatepass").replace(f'"{_DEEPEST}"'.encode(), _DEEPEST_TEXT)
    data = data.replace(_DEEPEST.encode(), _DEEPEST_TEXT)
    return _mutated_text(data, random) if random.random() < 0.3 else data


def _document(random: Random) -> Any:
    if random.random() < 0.5:
        document = json.loads(json.dumps(PLACES[random.choice(sorted(PLACES))](SECRET)))
    else:
        document = json.loads(json.dumps(random.choice(_PLAIN)))
    for _ in range(random.choice((0, 1, 1, 2, 4))):
        _mutate(document, random)
    return document


def _mutate(document: Any, random: Random) -> None:
    places = list(_places(document))
    if not places:
        return
    container, key = random.choice(places)
    what = random.random()
    if what < 0.6:
        container[key] = _odd(random)
    elif what < 0.75:
        del container[key]
    elif what < 0.9 and isinstance(container, dict):
        container[random.choice(_KEYS)] = _odd(random)
    elif not _holds_secret(container[key]):
        container[key] = [container[key]] if random.random() < 0.5 else {"a": container[key]}


def _places(value: Any, *, in_manifest: bool = False) -> Iterator[Place]:
    """The places of values that may be mutated. What an object inside a manifest is called decides what is secret."""
    if isinstance(value, dict):
        for key, one in value.items():
            if not (in_manifest and key in ("kind", "apiVersion", "data", "stringData")):
                yield value, key
            yield from _places(one, in_manifest=in_manifest or key == "manifest")
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield value, index
            yield from _places(one, in_manifest=in_manifest)


def _holds_secret(value: Any) -> bool:
    return SECRET in json.dumps(value)


def _written(document: Any, random: Random) -> str:
    if random.random() < 0.5:
        return json.dumps(document, ensure_ascii=random.random() < 0.5)
    try:
        return write_document(document)
    except (RecursionError, UnicodeError, ValueError):
        return json.dumps(document)


_ALIASES: Final = b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"%c: &%c [%b]\n" % (98 + one, 98 + one, b",".join([b"*%c" % (97 + one)] * 9)) for one in range(9)
)
_INSERTED: Final = (
    b"\t",
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\r",
    b"{{ a }}",
    b"&a ",
    b"*a",
    b"!!python/object:os.system ",
)
_MORE: Final = (b"%YAML 9.9\n---\n", b"? ", b"'", b'"', b"|\n", b": ", b"- ", b"#", b"}", b"]", b"\x1b[2J", b"<<: *a\n")


def _mutated_text(data: bytes, random: Random) -> bytes:
    at = random.randrange(len(data) + 1)
    match random.randrange(6):
        case 0:
            return data[:at]
        case 1:
            return data[at:]
        case 2:
            return data.replace(b"\n", b"\r\n")
        case 3:
            return _ALIASES + b"---\n" + data
        case _:
            return data[:at] + random.choice(_INSERTED + _MORE) + data[at:]

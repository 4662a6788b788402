"""Manifests from files, folders and standard input."""

from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from setpoint.core.values.messages import AnnotationTerm, FieldTerm, Message, MessageTerm, SubjectTerm
from setpoint.engine.intent import check_manifest
from setpoint.errors import ManifestInvalid, SetpointError
from setpoint.kinds.gcp.storage_bucket.kind import StorageBucketKind
from setpoint.library.manifests.reading import load_manifests

if TYPE_CHECKING:
    from setpoint.clients.google.client import GoogleClient

GADGET = "apiVersion: test.setpoint.dev/v1\nkind: Gadget\nmetadata:\n  name: {}\n"


def _write(folder: Path, name: str, text: str | bytes) -> str:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(file)


def test_a_file_may_hold_several_manifests(tmp_path: Path) -> None:
    file = _write(tmp_path, "a.yaml", GADGET.format("a") + "---\n" + GADGET.format("b"))

    assert [str(manifest.ref) for manifest in load_manifests([file])] == ["Gadget default/a", "Gadget default/b"]


def test_hidden_folders_are_left_out(tmp_path: Path) -> None:
    _write(tmp_path, ".git/a.yaml", GADGET.format("a"))
    _write(tmp_path, "sub/.cache/b.yaml", GADGET.format("b"))
    _write(tmp_path, "sub/c.yaml", GADGET.format("c"))

    assert [str(one.ref) for one in load_manifests([str(tmp_path)])] == ["Gadget default/c"]


def test_a_folder_is_searched_for_yaml_and_json_in_order(tmp_path: Path) -> None:
    _write(tmp_path, "z.yml", GADGET.format("z"))
    _write(tmp_path, "sub/a.yaml", GADGET.format("a"))
    _write(tmp_path, "b.json", '{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b", "namespace": "n"}}')
    _write(tmp_path, "notes.txt", "not a manifest")

    assert [str(one.ref) for one in load_manifests([str(tmp_path)])] == [
        "Secret n/b",
        "Gadget default/a",
        "Gadget default/z",
    ]


def test_a_list_is_split_into_its_items(tmp_path: Path) -> None:
    items = "".join(f"- apiVersion: v1\n  kind: Secret\n  metadata: {{name: {name}}}\n" for name in "ab")
    file = _write(tmp_path, "a.yaml", f"apiVersion: v1\nkind: List\nitems:\n{items}")

    assert [one.ref.name for one in load_manifests([file])] == ["a", "b"]


def test_a_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    file = _write(tmp_path, "a.yaml", b"\xef\xbb\xbf" + GADGET.format("a").encode())

    assert load_manifests([file])[0].ref.name == "a"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no manifest in .*: a manifest has apiVersion, kind and metadata.name"),
        ("- 1\n", "a.yaml:1: a manifest is a map with apiVersion, kind and metadata, not a list"),
        ("just text", "a.yaml:1: a manifest is a map .*, not text"),
        ("\nkind: Gadget\n", "a.yaml:2: apiVersion is missing or not text"),
        ("apiVersion: v1\nkind: 7\n", "a.yaml:2: kind is missing or not text"),
        ("apiVersion: v1\nkind: Gadget\nmetadata: []\n", "a.yaml:3: metadata.name is missing or not text"),
        (GADGET.format("a") + "spec: {x: .inf}\n", None),
        (GADGET.format("a") + "spec: {x: 1e999}\n", "a.yaml:5: spec.x: inf is not a JSON number"),
        (b"\xff\xfe", "a.yaml:1: this is not UTF-8 text"),
        (b"a: 1\nb: \xc3\x28\n", "a.yaml:2: this is not UTF-8 text"),
        (
            GADGET.format("a") + "---\n" + GADGET.format("a"),
            "Gadget default/a is declared twice, in .* and .*: keep one",
        ),
    ],
)
def test_an_invalid_manifest_is_reported_with_file_and_line(
    tmp_path: Path, text: str | bytes, message: str | None
) -> None:
    file = _write(tmp_path, "a.yaml", text)
    if message is None:
        assert load_manifests([file])[0].tree["spec"] == {"x": ".inf"}
        return

    with pytest.raises(ManifestInvalid, match=message):
        load_manifests([file])


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ManifestInvalid, match=r"nosuch\.yaml: No such file or directory: name a file, a folder or -"):
        load_manifests([str(tmp_path / "nosuch.yaml")])


PLACES = """\
apiVersion: test.setpoint.dev/v1
kind: Gadget
metadata:
  name: a
  annotations:
    example.com/a: b
spec:
  size: 1
  list:
  - name: x
  - name: y
    at: 2
"""


@pytest.mark.parametrize(
    ("term", "line"),
    [
        (FieldTerm("spec.size"), 8),
        (FieldTerm("spec.list[1].at"), 12),
        (FieldTerm("spec.list[1].none.below"), 11),
        (FieldTerm("spec.list[a b]"), 9),
        (FieldTerm("none"), 1),
        (AnnotationTerm("example.com/a"), 6),
        (SubjectTerm("Gadget default/a"), 1),
    ],
)
def test_an_error_is_placed_at_the_field_that_it_names(tmp_path: Path, term: MessageTerm, line: int) -> None:
    file = _write(tmp_path, "a.yaml", PLACES)
    (manifest,) = load_manifests([file])

    assert manifest.place_of(ManifestInvalid(Message("spec.size: ", term, " is wrong"))) == f"{file}:{line}"


# No request is sent to check a manifest.
KIND = StorageBucketKind(cast("GoogleClient", None))
BUCKET = """\
apiVersion: storage.cnrm.cloud.google.com/v1beta1
kind: StorageBucket
metadata:
  name: logs
  annotations: {ANNOTATIONS}
spec:
  lifecycleRule:
  - action: {type: Delete}
    condition: {}
  FIELD
"""


@pytest.mark.parametrize(
    ("annotations", "field", "line"),
    [
        ("{}", "loction: EU", 10),
        ("{}", "location: 7", 10),
        ("{}", "cors: [{origin: [7]}]", 10),
        ("{}", "location: EU", 9),
        ("{setpoint.dev/management: some}", "location: EU", 5),
        ("{cnrm.cloud.google.com/unmanaged: spec.loction}", "location: EU", 5),
    ],
)
def test_a_mistake_in_a_spec_or_an_annotation_has_its_line(
    tmp_path: Path, annotations: str, field: str, line: int
) -> None:
    file = _write(tmp_path, "a.yaml", BUCKET.replace("{ANNOTATIONS}", annotations).replace("FIELD", field))
    (manifest,) = load_manifests([file])
    with pytest.raises(SetpointError) as raised:
        check_manifest(manifest.resource, KIND)

    assert manifest.place_of(raised.value) == f"{file}:{line}"

"""YAML as manifests use it."""

import json

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path
from setpoint.core.values.yaml_documents import MAX_VALUES, read_documents, write_document
from setpoint.errors import ManifestInvalid
from tests.laws.json_values import json_values


def _one(text: str) -> Json:
    (document,) = read_documents(text, "a.yaml")
    return document.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12:00", "12:00"),
        ("2026-01-01", "2026-01-01"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("0", 0),
        ("-17", -17),
        ("+5", 5),
        ("0777", 511),
        ("0o17", 15),
        ("0x1F", 31),
        ("1e3", 1000.0),
        ("-.5", -0.5),
        ("1.", 1.0),
        ("1.2.3", "1.2.3"),
        ("1_000", "1_000"),
        ("09", "09"),
        ("true", True),
        ("Off", False),
        ("~", None),
        ("'1'", "1"),
        ('"true"', "true"),
        ("|\n  two\n  lines\n", "two\nlines\n"),
        ("9" * 500, "9" * 500),
        ("[1, {a: b}]", [1, {"a": "b"}]),
        ("{}", {}),
    ],
)
def test_plain_scalars_are_read_as_kubernetes_reads_them(text: str, value: Json) -> None:
    assert _one(f"x: {text}") == {"x": value}


def test_a_file_holds_many_documents_and_empty_ones_are_left_out() -> None:
    documents = read_documents("a: 1\n---\n---\n# nothing\n---\n~\n---\nb: 2\n", "a.yaml")

    assert [document.value for document in documents] == [{"a": 1}, {"b": 2}]


def test_json_is_yaml() -> None:
    assert _one('{"a": [1, 2.5, null, true, "x"]}') == {"a": [1, 2.5, None, True, "x"]}


def test_every_value_knows_its_line() -> None:
    (document,) = read_documents("# a comment\nspec:\n  tier: small\n  flags:\n  - name: x\n", "a.yaml")

    assert document.where(Path.parse("spec.tier")) == "a.yaml:3"
    assert document.where(Path.parse("spec.flags[0].name")) == "a.yaml:5"
    assert document.where(Path.parse("spec.flags[0].nosuch")) == "a.yaml:5"
    assert document.where(Path.parse("nosuch.deeper")) == "a.yaml:2"
    # The line of its key.
    assert document.where(Path.parse("spec.flags")) == "a.yaml:4"
    assert document.where(Path.parse("spec")) == "a.yaml:2"


def test_an_alias_is_expanded() -> None:
    assert _one("a: &x [1]\nb: *x\n") == {"a": [1], "b": [1]}


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1,\nb", "a.yaml:3: this is not YAML: did not find expected"),
        ("a: 'x\n", "a.yaml:2: this is not YAML: "),
        ("\tx: 1", "a.yaml:1: a tab is used as indentation, which YAML forbids: write spaces"),
        ("a:\n\tb: 1\n", "a.yaml:2: a tab is used as indentation, which YAML forbids: write spaces"),
        ("a:\n  b: 1\n  \tc: 2\n", "a.yaml:3: a tab is used as indentation, which YAML forbids: write spaces"),
        (
            "a: 1\n<<<<<<< HEAD\nb: 2\n=======\nb: 3\n>>>>>>> theirs\n",
            "a.yaml:2: a merge conflict begins here: resolve it, and take out its marks",
        ),
        ("a: {{ b }}\n", r"a.yaml:1: this is a template \({{ … }}\), and no YAML yet: render the template first"),
        ("a:\n- {{ b }}-c\n", "a.yaml:2: this is a template"),
        ("{{- if .a }}\nb: 1\n{{- end }}\n", "a.yaml:1: this is a template"),
        ("a: {{ b }}-\nc: 1\n", "a.yaml:1: this is a template"),
        ("a: \x00", "a.yaml:1: this is not YAML: "),
        ("a: &x\n  b: *x\n", "a.yaml:2: an alias leads back into itself"),
        ("a: *nosuch", "a.yaml:1: there is no anchor &nosuch before this alias"),
        ("a: 1\nb:\n  c: 1\n  c: 2\n", "a.yaml:4: the key 'c' stands twice: keep one of them"),
        ("a: !secret x", "a.yaml:1: the tag '!secret' is not supported: write the value without it"),
        ("a:\n  <<: 1", r"a.yaml:2: a merge key \(<<\) takes a map, or a list of maps: write one"),
        ("a:\n  <<: [{b: 1}, 2]", r"a.yaml:2: a merge key \(<<\) takes a map, or a list of maps: write one"),
        ("a:\n  b: 1\n  <<: {b: 1}", r"a.yaml:3: the field 'b' stands before the merge key \(<<\) that has it, too"),
        ("a:\n  <<: {b: 1}\n  <<: {c: 1}", "a.yaml:3: the key '<<' stands twice: keep one of them"),
        ("? [a]\n: 1\n", "a.yaml:1: a key has to be text"),
        (BOMB, f"the aliases expand to more than {MAX_VALUES} values"),
        ("[" * 300 + "]" * 300, "nested deeper than 200 levels"),
        ("[" * 200_000, "nested deeper than 200 levels"),
    ],
)
def test_an_error_names_the_line_and_what_to_do(text: str, message: str) -> None:
    with pytest.raises(ManifestInvalid, match=message):
        read_documents(text, "a.yaml")


@pytest.mark.parametrize("text", ["[a, b, c]", "---\na\n---\nb\n---\n---\nc\n", "a: {b: c, d: e}"])
def test_a_caller_may_allow_fewer_values_in_all_documents(text: str) -> None:
    assert read_documents(text, "a.yaml", 4)
    with pytest.raises(ManifestInvalid, match=r"expand to more than \d values"):
        read_documents(text, "a.yaml", 3)


def test_a_merge_key_adds_the_fields_of_maps_that_the_map_does_not_have() -> None:
    text = "x: &x {a: 1, b: 1}\ny: &y {<<: *x, b: 2}\nz:\n  <<: [*y, {b: 3, c: 3}]\n  a: 4\n  '<<': 5\n"
    (document,) = read_documents(text, "a.yaml")

    assert document.value == {
        "x": {"a": 1, "b": 1},
        "y": {"a": 1, "b": 2},
        "z": {"a": 4, "b": 2, "c": 3, "<<": 5},
    }
    assert [document.line_of(Path.parse(path)) for path in ("z.c", "z.a")] == [4, 5]


FIELDS = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 9), max_size=4)


@given(st.lists(FIELDS, max_size=4), FIELDS)
def test_merged_maps_are_those_of_a_reference(maps: list[dict[str, int]], own: dict[str, int]) -> None:
    anchors = "".join(f"x{position}: &x{position} {json.dumps(one)}\n" for position, one in enumerate(maps))
    aliases = ", ".join(f"*x{position}" for position in range(len(maps)))
    text = f"{anchors}all:\n  <<: [{aliases}]\n" + "".join(f"  {name}: {value}\n" for name, value in own.items())

    assert _one(text) == yaml.safe_load(text)


@given(st.text(max_size=60))
def test_any_text_is_documents_or_a_clear_error(text: str) -> None:
    try:
        read_documents(text, "a.yaml")
    except ManifestInvalid as error:
        message = str(error)
    else:
        return

    assert message.startswith("a.yaml:")


# --- Writing ----------------------------------------------------------------------------------------------------------


@given(json_values)
@example("1e5")
@example("0o17")
@example("12e45678")
@example("\x85")
@example({"<<": "<<", "1e5": "~", "": ""})
def test_a_written_document_is_read_back_as_the_same_value(value: Json) -> None:
    written = write_document({"value": value, "again": [value]})

    assert same(_one(written), {"value": value, "again": [value]})


def test_text_is_quoted_only_where_needed() -> None:
    written = write_document({"b": "plain", "a": ["1e5", "yes", "a: b", "\t"]})

    assert written == "b: plain\na:\n- '1e5'\n- 'yes'\n- 'a: b'\n- \"\\t\"\n"


def test_a_shared_value_is_written_without_aliases() -> None:
    one = {"x": 1}

    assert write_document([one, one]) == "- x: 1\n- x: 1\n"


def test_characters_that_a_terminal_hides_are_written_as_escapes() -> None:
    written = write_document({"a": "x\u202ey", "\u2066k": "z\x1b"})

    assert written == 'a: "x\\U0000202ey"\n"\\U00002066k": "z\\e"\n'
    assert read_documents(written, "")[0].value == {"a": "x\u202ey", "\u2066k": "z\x1b"}

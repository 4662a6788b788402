"""The pages of the kinds of the catalogue are held against its rows."""

from setpoint.catalogue.index import indexed_kinds
from tests.docs.google_reference import FOLDER, pages, stale_pages


def test_the_pages_of_the_catalogue_match_its_rows() -> None:
    written = pages()
    stale = [path for path, text in written.items() if not path.exists() or path.read_text("utf-8") != text]

    assert stale + stale_pages(written) == [], "stale: run .venv/bin/python -m tests.docs.reference"


def test_the_matrix_has_every_kind_with_its_page_and_whether_it_is_a_preview() -> None:
    matrix = pages()[FOLDER / "README.md"]
    rows = {line.partition("[")[2].partition("]")[0]: line for line in matrix.splitlines() if line.startswith("| [")}

    assert rows.keys() == {kind for _, kind in indexed_kinds()}
    assert rows["PubSubTopic"] == (
        "| [PubSubTopic](pubsub.md#pubsubtopic) | v1beta1 | 9 | 9 of 9 | PATCH with a mask in the body | none "
        "| deleted | recordings |"
    )
    assert "| IAMDenyPolicy | its name has an encoded one of what it is attached to |" in matrix
    # Those that are written by hand are no gap.
    assert "| IAMServiceAccountKey |" not in matrix


def test_the_matrix_counts_the_fields_of_config_connector_that_can_be_set_here() -> None:
    cells = [line.split(" | ") for line in pages()[FOLDER / "README.md"].splitlines() if line.startswith("| [")]
    counted = {one[0]: [int(number) for number in one[3].split(" of ")] for one in cells}

    assert [kind for kind, (ours, theirs) in counted.items() if not 0 < ours <= theirs] == []
    assert sum(ours for ours, _ in counted.values()) >= 0.98 * sum(theirs for _, theirs in counted.values())


def test_a_field_has_its_type_its_target_and_its_member() -> None:
    page = pages()[FOLDER / "pubsub.md"]

    assert "| `kmsKeyRef` | reference to KMSCryptoKey | member `kmsKeyName` |" in page
    assert "| `resourceID` | text | immutable, part of the address |" in page

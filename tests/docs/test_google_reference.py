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
        "| [PubSubTopic](pubsub.md#pubsubtopic) | 9 | PATCH with a mask in the body | none | deleted | recordings |"
    )
    assert "| IAMServiceAccountKey | the private key is in the answer" in matrix


def test_a_field_has_its_type_its_target_and_its_member() -> None:
    page = pages()[FOLDER / "pubsub.md"]

    assert "| `kmsKeyRef` | reference to KMSCryptoKey | member `kmsKeyName` |" in page
    assert "| `resourceID` | text | immutable, part of the address |" in page

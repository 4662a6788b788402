"""A page of a list, by its digest: the same text has the same items, and they need not be looked for in it again."""

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import Final, overload

# Of so many pages the next page token is kept: those of a million objects.
_MAX_PAGES: Final = 1_000


class ListedPage(Sequence[bytes]):
    """The items of a page, each as the bytes that came. They are found when one of them is needed.

    `find` finds them; it raises one of our errors when they cannot be decoded.
    """

    __slots__ = ("_find", "_items", "digest")

    def __init__(self, digest: bytes, find: Callable[[], Sequence[bytes]]) -> None:
        # Of the whole page.
        self.digest = digest
        self._find = find
        self._items: Sequence[bytes] | None = None

    @property
    def items(self) -> Sequence[bytes]:
        """All of them."""
        if self._items is None:
            self._items = self._find()
        return self._items

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | Sequence[bytes]:
        return self.items[index]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


class PageTokens:
    """The next page token of each page that was decoded, by the digest of the page; of the newest pages."""

    def __init__(self, tokens: dict[bytes, str]) -> None:
        self._tokens = tokens

    def page(self, body: bytes, decode: Callable[[], tuple[Sequence[bytes], str]]) -> tuple[ListedPage, str]:
        """The page in `body`, and the token of the next one. `decode` finds the items and the token in it."""
        digest = sha256(body).digest()
        token = self._tokens.pop(digest, None)
        if token is not None:
            self._tokens[digest] = token
            return ListedPage(digest, lambda: decode()[0]), token
        items, token = decode()
        if len(self._tokens) >= _MAX_PAGES:
            del self._tokens[next(iter(self._tokens))]
        self._tokens[digest] = token
        return ListedPage(digest, lambda: items), token

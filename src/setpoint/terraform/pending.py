"""Which objects are there though their last apply failed: a plan says that they are kept, and its apply keeps them.

Terraform plans a second time when it applies, in another process, and tells it nothing of the state that is replaced.
So what the first plan knew is noted on disk, for the folder that Terraform runs in; and what is about to be made, in
case nobody lives to tell of it. Where such a note is lost, nothing is taken over and nothing is deleted.
"""

from contextlib import suppress
from pathlib import Path

from setpoint.core.canonical import digest
from setpoint.terraform.sites import Place


class Pending:
    """The id of each such object, in this process and in `folder`; `home` is where Terraform runs."""

    def __init__(self, folder: Path | None, home: str) -> None:
        self._seen: dict[Place, str] = {}
        self._kept: dict[Place, str] = {}
        self._folder = folder
        self._home = home

    def see(self, place: Place, id_: str) -> None:
        """The object there is pending under `id_`: so its state says."""
        self._seen[place] = id_

    def keep(self, place: Place, id_: str) -> None:
        """The same: so the plan says that is carried out."""
        self._kept[place] = id_

    def note(self, place: Place, id_: str) -> None:
        """The same, for the apply that may follow."""
        if (file := self._file(place)) is not None:
            # Without a home, or with a read-only one, only what this process saw is kept.
            with suppress(OSError):
                file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                file.write_text(id_, encoding="ascii")

    def id_at(self, place: Place) -> str:
        """Under which id the object there is pending; empty when it is not."""
        if found := self._seen.get(place) or self._kept.get(place):
            return found
        if (file := self._file(place)) is not None:
            with suppress(OSError, UnicodeDecodeError):
                return file.read_text(encoding="ascii")
        return ""

    def is_news(self, place: Place) -> bool:
        """Whether this process found out: then nobody was told yet."""
        return place in self._seen

    def forget(self, place: Place) -> None:
        """The object there is not pending, or no longer under that id."""
        for known in (self._seen, self._kept):
            known.pop(place, None)
        if (file := self._file(place)) is not None:
            with suppress(OSError):
                file.unlink(missing_ok=True)

    def _file(self, place: Place) -> Path | None:
        name = digest([self._home, place.cluster, place.location])
        return None if self._folder is None else self._folder / "pending" / name

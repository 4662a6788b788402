"""Commands on widgets, in this process: the real ones, with an engine that they open and close."""

import asyncio
import io
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from setpoint.app import AppSettings
from setpoint.cli.commands.apply import apply, plan, reconcile
from setpoint.cli.commands.authoring.crds import print_definitions
from setpoint.cli.commands.authoring.kinds import kinds
from setpoint.cli.commands.delete import delete
from setpoint.cli.commands.inspect import explain, get
from setpoint.cli.request import CommandRequest
from setpoint.cli.views.terminal import SafeConsole
from setpoint.core.values.yaml_documents import write_document
from tests.plugins.shop_server import Shop

Command = Callable[[CommandRequest], Awaitable[int]]


def widget(name: str = "one", annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """The manifest of a widget."""
    metadata = {"name": name, "annotations": annotations or {}}
    return {"apiVersion": "shop.example.com/v1", "kind": "Widget", "metadata": metadata, "spec": spec}


@dataclass(frozen=True)
class ShopWorkspace:
    """A folder with manifests and a store."""

    shop: Shop
    folder: Path
    environment: dict[str, str]

    @property
    def file(self) -> Path:
        """Where the manifests are."""
        return self.folder / "manifest.yaml"

    @property
    def store(self) -> str:
        """The address of the store."""
        return f"sqlite:///{self.folder}/state.db"

    def write(self, *manifests: dict[str, Any]) -> None:
        """Writes the manifests."""
        self.file.write_text("---\n".join(map(write_document, manifests)), encoding="utf-8")

    def run(self, command: Command, *targets: str, **options: Any) -> tuple[int, str]:
        """The exit code of a command, and what it prints; without targets it is about the manifests."""
        settings = AppSettings(self.store, environment=self.environment)
        files = () if targets else (str(self.file),)
        printed = io.StringIO()
        request = CommandRequest(settings, SafeConsole(file=printed, width=250), files, targets, **options)

        async def main() -> int:
            return await command(request)

        return asyncio.run(main()), printed.getvalue()

    def apply(self, *manifests: dict[str, Any]) -> tuple[int, str]:
        """Applies manifests."""
        self.write(*manifests)
        return self.run(apply)

    def plan(self, *manifests: dict[str, Any]) -> tuple[int, Any]:
        """The plan of the first manifest, as data; nothing is written to the shop."""
        self.write(*manifests)
        before = len(self.shop.writes)
        code, text = self.run(plan, output="json")
        assert len(self.shop.writes) == before
        return code, msgspec.json.decode(text)

    def reconcile(self, target: str = "Widget/one") -> tuple[int, str]:
        """Reconciles a resource."""
        return self.run(reconcile, target)

    def delete(self, target: str = "Widget/one") -> tuple[int, str]:
        """Deletes a resource."""
        return self.run(delete, target, yes=True)

    def get(self, target: str = "Widget/one") -> Any:
        """A resource on record."""
        return msgspec.json.decode(self.run(get, target, output="json")[1])

    def explain(self, target: str = "Widget/one") -> str:
        """What the last step did."""
        return self.run(explain, target)[1]

    def kinds(self, *words: str, output: str = "table") -> tuple[int, str]:
        """Lists or describes kinds."""
        return self.run(kinds, *words, output=output)

    def crds(self, *words: str) -> str:
        """Prints definitions."""
        return self.run(print_definitions, *words, output="yaml")[1]

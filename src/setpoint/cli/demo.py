"""The story: one database, and everything that can happen to it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Final

from msgspec import UNSET, Struct, UnsetType
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from setpoint.cli.picture import PICTURE
from setpoint.cli.show import plan_view
from setpoint.core.canonical import digest
from setpoint.core.cookie import Cookie
from setpoint.core.decide import Decision, decide
from setpoint.core.overlay import Declared, Tree, overlay
from setpoint.core.paths import Path, remove_at, set_at
from setpoint.core.plan import Plan, plan_fields
from setpoint.core.policy import IGNORE_UNSPECIFIED, FieldPolicy
from setpoint.core.shape import Default, Keyed, Mark, shape_of
from setpoint.core.values import MISSING, Json, Missing
from setpoint.errors import UserError


class Flag(Struct):
    """A database flag, known by its name."""

    name: str
    value: str


class Backup(Struct):
    """Backups; once on, silence does not turn them off."""

    enabled: Annotated[bool | UnsetType, Mark.PROTECTED] = UNSET


class Settings(Struct):
    """What the author may say about the database."""

    tier: str | UnsetType = UNSET
    autoresize: Annotated[bool | UnsetType, Default(True)] = UNSET
    flags: Annotated[list[Flag] | UnsetType, Keyed("name")] = UNSET
    backup: Backup | UnsetType = UNSET
    maintenance: str | UnsetType = UNSET


class Spec(Struct):
    """The spec of the story's database."""

    region: Annotated[str, Mark.IMMUTABLE]
    settings: Settings


class Database(Struct):
    """A resource with nothing but a spec."""

    spec: Spec


_SHAPE: Final = shape_of(Database)
_DECLARED: Final[Tree] = {
    "spec": {
        "region": "europe-west1",
        "settings": {"tier": "small", "flags": [{"name": "log", "value": "on"}], "backup": {"enabled": True}},
    }
}


@dataclass(frozen=True, slots=True)
class World:
    """The author's side, the live side, and the cookie between them."""

    tree: Tree
    annotations: Mapping[str, str] = field(default_factory=dict)
    live: Tree | Missing = MISSING
    cookie: Cookie | None = None

    def plan(self) -> Plan:
        """What a step would do now."""
        decision = self._decision()
        return Plan(decision) if decision is Decision.IN_SYNC else plan_fields(decision, self._declared(), self.live)

    def step(self) -> "World":
        """The world after a step: carried out, and settled with a new cookie."""
        live = self.live if self._decision() is Decision.IN_SYNC else overlay(self._declared(), self.live)
        assert not isinstance(live, Missing)
        return replace(self, live=live, cookie=Cookie(self._intent(), digest(live)))

    def written(self, path: str, value: Json) -> "World":
        """The world after the author wrote `value`."""
        return replace(self, tree=_object(set_at(self.tree, Path.parse(path), value)))

    def without(self, path: str) -> "World":
        """The world after the author took a field out of the spec."""
        return replace(self, tree=_object(remove_at(self.tree, Path.parse(path))))

    def edited(self, path: str, value: Json) -> "World":
        """The world after somebody else changed the live object."""
        return replace(self, live=_object(set_at(self.live, Path.parse(path), value)))

    def annotated(self, annotations: Mapping[str, str]) -> "World":
        """The world after the author gave the resource these annotations, and no others."""
        return replace(self, annotations=annotations)

    def _declared(self) -> Declared:
        return Declared(self.tree, _SHAPE, FieldPolicy.parse(self.annotations, _SHAPE))

    def _intent(self) -> str:
        return digest({"tree": self.tree, "annotations": self.annotations})

    def _decision(self) -> Decision:
        return decide(self.cookie, self._intent(), MISSING if isinstance(self.live, Missing) else digest(self.live))


@dataclass(frozen=True, slots=True)
class Chapter:
    """A thing that happens, and the world right after it."""

    title: str
    world: World


def story() -> Iterator[Chapter]:
    """What happens to the database, in order; a step is taken between chapters."""
    world = World(_DECLARED)
    yield Chapter("You declare a database", world)
    world = world.step()
    yield Chapter("A second look", world)
    world = world.edited("spec.settings.tier", "huge").edited("spec.settings.maintenance", "sunday")
    yield Chapter("Somebody changes it in the console", world)
    ignoring = world.annotated({IGNORE_UNSPECIFIED: "true"})
    yield Chapter("The same, with ignore-unspecified-fields", ignoring)
    world = ignoring.step().without("spec.settings.tier").without("spec.settings.backup").annotated({})
    yield Chapter("You remove tier, backups and annotation", world)
    yield Chapter("You move it to another region", world.step().written("spec.region", "us-east1"))


def tell(svg: str | None = None) -> None:
    """Print the story, and draw it to the file `svg` when one is named."""
    console = Console(record=svg is not None, width=100 if svg else None)
    for number, chapter in enumerate(story(), start=1):
        console.print(Text(f"{number}. {chapter.title}", style="bold cyan"))
        console.print(Padding(_view(chapter.world), (0, 0, 1, 3)))
    if svg is not None:
        console.save_svg(svg, title="setpoint demo", code_format=PICTURE, unique_id="setpoint")


def _object(value: Json) -> Tree:
    assert isinstance(value, dict)
    return value


def _view(world: World) -> RenderableType:
    try:
        plan = plan_view(world.plan())
    except UserError as error:
        plan = Text(f"refused: {error}", style="red")
    cookie = f"cookie {world.cookie.intent[:8]}…/{world.cookie.live[:8]}…" if world.cookie else "no cookie yet"
    return Group(plan, Text(cookie, style="dim"))

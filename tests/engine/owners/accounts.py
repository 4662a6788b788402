"""A kind with a password that is generated, and a service that remembers every password that it was sent."""

from dataclasses import dataclass, field
from typing import Annotated, Any

from msgspec import UNSET, Struct, UnsetType

from setpoint.kind import (
    Absent,
    BaseKind,
    Dependency,
    GeneratedSecret,
    Intent,
    JsonObject,
    KindContext,
    Location,
    Mark,
    PlannedWrite,
    Present,
    ResolvedReferences,
    Resource,
    ResourceRef,
    SecretKeyReference,
)

GROUP = "accounts.example.com"


class AccountSpec(Struct, frozen=True):
    loginSecretRef: str | UnsetType = UNSET
    password: Annotated[str | UnsetType, Mark.WRITE_ONLY] = UNSET


class Account(Struct, frozen=True):
    name: str


@dataclass(slots=True)
class Bank:
    """A service with accounts, and every password that one ever had."""

    passwords: dict[str, list[str]] = field(default_factory=dict)
    made: int = 0

    def generate(self) -> str:
        self.made += 1
        return f"generated-{self.made}"

    async def set(self, name: str, password: str) -> None:
        self.passwords.setdefault(name, []).append(password)

    async def delete(self, name: str) -> None:
        self.passwords.pop(name, None)


class AccountKind(BaseKind[AccountSpec, Account]):
    """An account with a password that is generated."""

    group = GROUP
    uncompared = ("loginSecretRef",)

    def __init__(self, context: KindContext, bank: Any) -> None:
        super().__init__(context)
        self.bank = bank

    def dependencies(self, resource: Resource) -> list[Dependency]:
        name = self.spec_of(resource).loginSecretRef
        ref = ResourceRef("", "Secret", resource.ref.namespace, str(name))
        return [SecretKeyReference("spec.password", ref, "password")] if name else []

    def generated_secret(self, resource: Resource) -> GeneratedSecret | None:
        name, user = self.spec_of(resource).loginSecretRef, resource.ref.name
        if not name:
            return None
        return GeneratedSecret(name, "password", self.bank.generate, lambda value: {"login": f"{user}:{value}"})

    def declare(self, resource: Resource, resolved: ResolvedReferences) -> JsonObject:
        return {"spec": {"password": resolved.secrets["spec.password"]}}

    def view(self, live: Account) -> JsonObject:
        return {"spec": {}}

    def locate(self, resource: Resource, resolved: ResolvedReferences) -> Location:
        return Location(resource.ref.name)

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[Account]:
        return Present(Account(location)) if self.bank.passwords.get(location) else Absent()

    async def create(self, intent: Intent, wanted: JsonObject) -> None:
        await self.bank.set(intent.location, self.body(wanted)["password"])

    async def update(self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[Account]) -> None:
        await self.bank.set(intent.location, self.body(wanted)["password"])

    async def delete(self, location: Location, before: Present[Account], resource: Resource) -> None:
        await self.bank.delete(location)

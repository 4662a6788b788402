"""SQLDatabase and SQLUser under fuzz: what is in an instance."""

from typing import Any, ClassVar, Final

from hypothesis import strategies as st

from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path
from setpoint.engine.kind import Location
from setpoint.kinds.gcp.sql_database import SqlDatabase, SqlDatabaseSpec, SqlDatabaseTree
from setpoint.kinds.gcp.sql_user.live import SqlUser
from setpoint.kinds.gcp.sql_user.spec import SqlUserSpec, SqlUserTree
from setpoint.localcloud.sql.schema import DATABASE, USER
from tests.laws.google.cloud_harness import PASSWORD, PROJECT, CloudHarness
from tests.laws.google.from_schema import Vocabulary, values
from tests.laws.google.from_types import Words
from tests.laws.google.fuzzed_instance import INSTANCES, VERSIONS, new_instance
from tests.laws.google.fuzzed_kind import FuzzedKind, Spec

_MAIN: Final[tuple[Json, ...]] = (
    *({"external": "main"}, {"external": f"projects/{PROJECT}/instances/main"}),
    *({"name": "main"}, {"name": "main", "namespace": "team"}),
)
_MYSQL: Final = (("utf8mb4", "utf8mb4_bin"), ("utf8mb4", "utf8mb4_0900_ai_ci"), ("latin1", "latin1_swedish_ci"))
_OTHERS: Final = (("UTF8", "en_US.UTF8"), ("UTF8", "C"))


class FuzzedInInstance(FuzzedKind):
    """Something in an instance that is there."""

    group = "sql.cnrm.cloud.google.com"

    def surroundings(self, draw: st.DrawFn, harness: CloudHarness) -> str:
        version = draw(st.sampled_from(VERSIONS))
        new_instance(harness, "main", version, {"tier": "db-custom-1-3840", "edition": "ENTERPRISE"})
        return version

    def declared(self, manifest: Any) -> Any:
        return {"spec": manifest["spec"]}


class FuzzedDatabase(FuzzedInInstance):
    """A database."""

    kind = "SQLDatabase"
    name = "some-database"
    spec_type = SqlDatabaseSpec
    tree_type = SqlDatabaseTree
    live_type = SqlDatabase
    schema = DATABASE
    location = Location(f"projects/{PROJECT}/instances/main/databases/some-database")
    path = f"{INSTANCES}/main/databases/some-database"
    words: ClassVar[Words] = {
        "instanceRef": _MAIN,
        "resourceID": ("some-database",),
        "charset": ("utf8mb4", "utf8", "latin1", "UTF8"),
        "collation": ("utf8mb4_bin", "utf8mb4_0900_ai_ci", "latin1_swedish_ci", "en_US.UTF8", "C"),
    }
    live_words = Vocabulary({"sqlserverDatabaseDetails.compatibilityLevel": (130, 150)})

    def make(self, draw: st.DrawFn, harness: CloudHarness, database_version: str) -> None:
        charset, collation = draw(st.sampled_from(_MYSQL if database_version.startswith("MYSQL") else _OTHERS))
        details: Spec = {}
        if database_version.startswith("SQLSERVER"):
            details = draw(st.sampled_from(({}, {"sqlserverDatabaseDetails": {"recoveryModel": "FULL"}})))
        body = {"name": self.name, "charset": charset, "collation": collation, **details}
        assert harness.ask("POST", f"{INSTANCES}/main/databases", body)

    def possible(self, spec: Spec, database_version: str) -> Spec:
        """The local cloud knows the character sets of MySQL alone; the other engines have none of those."""
        if database_version.startswith("MYSQL"):
            return spec
        own = {"charset": "UTF8", "collation": "en_US.UTF8"}
        return {**spec, **{name: own[name] for name in own if spec.get(name)}}

    def follows(self, spec: Spec, path: Path) -> bool:
        """No database of MySQL has the character set of another collation."""
        return bool(spec.get("charset") or spec.get("collation"))


class FuzzedUser(FuzzedInInstance):
    """A user."""

    kind = "SQLUser"
    name = "some-user"
    spec_type = SqlUserSpec
    tree_type = SqlUserTree
    live_type = SqlUser
    schema = USER
    location = Location(f"projects/{PROJECT}/instances/main/users/some-user")
    path = f"{INSTANCES}/main/users/some-user"
    words: ClassVar[Words] = {
        "instanceRef": _MAIN,
        "resourceID": ("some-user",),
        "host": ("%", "", "10.0.0.1"),
        "password": (
            {"value": PASSWORD},
            {"valueFrom": {"secretKeyRef": {"name": "secret", "key": "password"}}},
        ),
        "passwordPolicy.passwordExpirationDuration": ("0s", "60s", "060.0s", "86400.5s"),
        "passwordPolicy.status": ([{"locked": True}], [{"passwordExpirationTime": "2099-01-01T00:00:00Z"}]),
    }
    live_words = Vocabulary({"passwordPolicy.passwordExpirationDuration": ("0s", "60s", "3600.5s")})

    def make(self, draw: st.DrawFn, harness: CloudHarness, database_version: str) -> None:
        fields = USER.fields
        policy = values(fields["passwordPolicy"], self.live_words, "passwordPolicy")
        kind = st.sampled_from(("BUILT_IN", "BUILT_IN", "BUILT_IN", "CLOUD_IAM_USER", "CLOUD_IAM_GROUP"))
        more = {"databaseRoles": st.just(["reader"]), "sqlserverUserDetails": st.just({"serverRoles": ["a"]})}
        body: Any = draw(st.fixed_dictionaries({"type": kind}, optional={"passwordPolicy": policy, **more}))
        word = {"password": "another"} if body["type"] == "BUILT_IN" else {}
        assert harness.ask("POST", f"{INSTANCES}/main/users", {"name": self.name, **word, **body})

    def edit_live(self, draw: st.DrawFn, harness: CloudHarness) -> None:
        """Another writer gives the user another policy."""
        policy = draw(values(USER.fields["passwordPolicy"], self.live_words, "passwordPolicy"))
        harness.ask("PUT", f"{INSTANCES}/main/users?name={self.name}", {"name": self.name, "passwordPolicy": policy})

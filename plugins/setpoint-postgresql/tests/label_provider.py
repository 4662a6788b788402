"""A label provider for the tests, compiled here: PostgreSQL comes with none that works without SELinux.

What it takes of PostgreSQL's headers is declared by itself, so that no development package is needed: a C compiler is.
"""

import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

from checks.apt_packages import found_or_installed
from postgres_server import PostgresServer

PROVIDER: Final = "tests"
_SOURCE: Final = """
typedef struct { int version, funcmaxargs, indexmaxkeys, namedatalen, float8byval; char abi_extra[32]; } Values;
#if MAJOR >= 18
typedef struct { int len; Values values; const char *name, *release; } Magic;
#define MAGIC {sizeof(Magic), VALUES, 0, 0}
#elif MAJOR >= 15
typedef struct { int len; Values values; } Magic;
#define MAGIC {sizeof(Magic), VALUES}
#else
typedef struct { int len, version, funcmaxargs, indexmaxkeys, namedatalen, float8byval; } Magic;
#define MAGIC {sizeof(Magic), MAJOR * 100, 100, 32, 64, 1}
#endif
#define VALUES {MAJOR * 100, 100, 32, 64, 1, "PostgreSQL"}
extern void register_label_provider(const char *name, void (*check)(const void *object, const char *label));
const Magic *Pg_magic_func(void) { static const Magic magic = MAGIC; return &magic; }
static void accept_any(const void *object, const char *label) {}
void _PG_init(void) { register_label_provider("tests", accept_any); }
"""


class NoCompiler(Exception):
    """There is no C compiler on this machine, and none could be installed."""


def label_provider(server: PostgresServer) -> Path:
    """The library with the provider, for this version of the server."""
    major = server.session().info.server_version // 10000
    source, library = server.folder / "labels.c", server.folder / "labels.so"
    if not library.exists():
        source.write_text(_SOURCE, encoding="utf-8")
        command = [_compiler(), "-shared", "-fPIC", f"-DMAJOR={major}", "-o", str(library), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        library.chmod(0o755)
    return library


@cache
def _compiler() -> str:
    """A C compiler; installed from Debian's packages where root runs the tests."""
    found, _ = found_or_installed(lambda: shutil.which("cc") or shutil.which("gcc"), "gcc", "libc6-dev")
    if found is None:
        raise NoCompiler("there is no C compiler, which the label provider of the tests takes: install gcc")
    return found


def labelled_database(server: PostgresServer, name: str) -> None:
    """A new database whose sessions have the provider."""
    library = label_provider(server)
    server.execute(f"CREATE DATABASE {name}")
    server.execute(f"ALTER DATABASE {name} SET session_preload_libraries = '{library}'")

"""The composition root: settings, every kind and owner, stores and clients, and the engine that is made of them.

Imports kinds, stores and clients; imported by the front ends, by previews and by migrations, from here.
"""

from setpoint.app.engine import (
    OpenedEngine,
    dry_run_apply,
    open_app,
    open_engine,
    open_engine_read_only,
    overlay_drafts,
    read_only,
    require_valid,
)
from setpoint.app.kinds import (
    all_plugins,
    all_types,
    annotation_policies,
    definitions,
    definitions_of,
    described_types,
    owners,
    select_kinds,
)
from setpoint.app.settings import (
    COOKIE_LOCATION_VARIABLE,
    DEFAULT_STORE,
    OTHER_CLIENTS,
    STORE,
    STORE_VARIABLE,
    TENANCY_VARIABLE,
    AppSettings,
    ClientWiring,
    StoreAccess,
    default_namespace,
    is_shared_store,
    store_file,
    tenancy_from,
)

__all__ = (
    "COOKIE_LOCATION_VARIABLE",
    "DEFAULT_STORE",
    "OTHER_CLIENTS",
    "STORE",
    "STORE_VARIABLE",
    "TENANCY_VARIABLE",
    "AppSettings",
    "ClientWiring",
    "OpenedEngine",
    "StoreAccess",
    "all_plugins",
    "all_types",
    "annotation_policies",
    "default_namespace",
    "definitions",
    "definitions_of",
    "described_types",
    "dry_run_apply",
    "is_shared_store",
    "open_app",
    "open_engine",
    "open_engine_read_only",
    "overlay_drafts",
    "owners",
    "read_only",
    "require_valid",
    "select_kinds",
    "store_file",
    "tenancy_from",
)

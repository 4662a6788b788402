"""The file of the store that the settings name: its backups, their restore, and its health."""

from pathlib import Path

from setpoint.app.kinds import all_plugins, all_types
from setpoint.app.settings import AppSettings, is_shared_store, store_file
from setpoint.engine.kind import secret_fields_of
from setpoint.errors import UserError
from setpoint.stores.sqlite.backup import BackupRecord, Progress, write_backup
from setpoint.stores.sqlite.health import StoreHealth, store_health, store_holder
from setpoint.stores.sqlite.restore import RestoredStore, restore_backup

__all__ = (
    "BackupRecord",
    "Progress",
    "RestoredStore",
    "StoreHealth",
    "back_up",
    "restore",
    "store_health",
    "store_holder",
)


def back_up(settings: AppSettings, to: Path, progress: Progress, *, replaces: bool) -> BackupRecord:
    """See `write_backup`; UserError for a store without a file."""
    return write_backup(_file(settings), to.absolute(), settings.clock.now(), progress, replaces=replaces)


def restore(settings: AppSettings, backup: Path) -> RestoredStore:
    """See `restore_backup`; UserError for a store without a file."""
    secrets = secret_fields_of(all_types(all_plugins()))
    return restore_backup(backup.absolute(), _file(settings), settings.clock.now(), secrets)


def _file(settings: AppSettings) -> Path:
    path = store_file(settings)
    if path is not None:
        return path
    if is_shared_store(settings):
        raise UserError(
            "the store is in a cluster, whose own backup holds it (etcd, or Velero); "
            "setpoint export copies resources and their state into a file"
        )
    raise UserError("the store is in memory and ends with its process: name one with a file, by --store")

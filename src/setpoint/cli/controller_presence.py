"""Whether a controller is running for a store: a local process on its file, or replicas in a cluster."""

from setpoint.app import StoreAccess, is_shared_store, open_engine, store_file
from setpoint.cli.request import CommandRequest
from setpoint.clients.admin_api import connect_admin
from setpoint.engine.context import EngineContext
from setpoint.errors import RemoteRefused, StoreError
from setpoint.runtime.sharding.assignment import has_members


async def has_local_daemon(request: CommandRequest) -> bool:
    """Whether a `setpoint run` process owns the store in a file."""
    file = store_file(request.settings)
    daemon = None if file is None or not file.exists() else await connect_admin(file)
    if daemon is None:
        return False
    await daemon.close()
    return True


async def has_controller(request: CommandRequest, engine: EngineContext) -> bool:
    """Whether a controller is running for a store of any type; StoreError when a cluster cannot be read."""
    if is_shared_store(request.settings):
        return await has_members(engine.store, engine.clock.now())
    return await has_local_daemon(request)


async def cluster_has_controller(engine: EngineContext) -> bool:
    """Whether a controller is running for a cluster. A user without the right to see leases assumes that one is."""
    try:
        return await has_members(engine.store, engine.clock.now())
    except StoreError as error:
        if not isinstance(error.__cause__, RemoteRefused):
            raise
        return True


async def is_resynced(request: CommandRequest) -> bool:
    """Whether the resources of the store are resynced by a controller, as far as this user can see."""
    if not is_shared_store(request.settings):
        return await has_local_daemon(request)
    async with open_engine(request.settings, StoreAccess.READ) as engine:
        return await cluster_has_controller(engine)

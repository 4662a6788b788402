"""Whether somebody else takes steps for what is in a store."""

from setpoint.app import Access, file_of, is_shared, open_world
from setpoint.cli.requests import Request
from setpoint.clients.daemon import reach
from setpoint.engine.scene import World
from setpoint.errors import RemoteRefused, StoreError
from setpoint.runtime.members import has_members


async def is_run(request: Request) -> bool:
    """Whether a process goes on with the store in a file for ever."""
    file = file_of(request.settings)
    daemon = None if file is None or not file.exists() else await reach(file)
    if daemon is None:
        return False
    await daemon.close()
    return True


async def is_looked_after(request: Request, world: World) -> bool:
    """The same for any store; StoreError when a cluster does not tell us."""
    if is_shared(request.settings):
        return await has_members(world.store, world.clock.now())
    return await is_run(request)


async def seems_looked_after(world: World) -> bool:
    """The same for a cluster: whoever may not see who is there trusts that somebody is."""
    try:
        return await has_members(world.store, world.clock.now())
    except StoreError as error:
        if not isinstance(error.__cause__, RemoteRefused):
            raise
        return True


async def is_looked_at_again(request: Request) -> bool:
    """Whether somebody looks at what is in the store again, as far as one can see."""
    if not is_shared(request.settings):
        return await is_run(request)
    async with open_world(request.settings, Access.READ) as world:
        return await seems_looked_after(world)

"""What lives inside an instance can be reached only while the instance runs."""

from setpoint.localcloud import refusals
from setpoint.localcloud.operations import CloudSql
from setpoint.localcloud.routes import Call
from setpoint.localcloud.sql_state import Instance
from setpoint.localcloud.trees import Tree, member


def opened(sql: CloudSql, call: Call) -> Instance:
    """The instance that the path names, if one can look into it."""
    instance = sql.state.instances.get(f"{call.part('project')}/{call.part('instance')}")
    if instance is None:
        raise refusals.no_instance()
    is_stopped = member(instance.resource, "settings.activationPolicy") == "NEVER"
    if is_stopped or instance.resource.get("state") != "RUNNABLE":
        raise refusals.not_running()
    return instance


def inside(call: Call, body: Tree) -> Tree:
    """`body`, if it does not speak of another instance than the path does."""
    for name in ("instance", "project"):
        if body.get(name, call.part(name)) != call.part(name):
            raise refusals.invalid(f"The {name} in the body ({body[name]}) is not the one in the path")
    return body

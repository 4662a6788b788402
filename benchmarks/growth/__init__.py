"""How the cost of `setpoint run` grows with the number of resources: `make bench ARGS=growth`.

`benchmark` starts processes of `replica_process`, each with a share of the fleet, in virtual time; `phases` is what
happens there, over `simulated_store` and `simulated_service`. Engine, queue, informer, limiter and shards are real.
"""

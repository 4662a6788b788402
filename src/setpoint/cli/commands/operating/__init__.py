"""Commands for who operates setpoint: `backup`, `restore` and `doctor`. Imported by the definitions, on use."""

"""Configurations for the probe provider."""

from typing import Final

PROBE: Final = """
terraform {
  required_providers {
    probe = { source = "acme/probe" }
  }
}
provider "probe" {
  folder = "OBJECTS"
}
"""
FULL: Final = (
    PROBE
    + """
resource "probe_thing" "a" {
  name     = "a"
  size     = 0.2
  tags     = { x = "y" }
  labels   = ["b", "a"]
  ports    = [1, 2, 12345678901234567890123]
  anything = { deep = [1, "two", { three = null }], list = tolist(["a"]) }
  settings = { mode = "m" }
  rules    = [{ port = 80 }, { port = 443 }]
  members  = { joe = { role = "boss" }, ann = {} }
  peers    = [{ host = "h1" }, { host = "h2" }]
  password = "pw"
}
resource "probe_thing" "b" {
  name     = "b"
  anything = probe_thing.a.echo
  tags     = { from = probe_thing.a.id, level = probe_thing.a.settings.level }
}
data "probe_lookup" "a" {
  name = probe_thing.a.name
}
output "found" {
  value = data.probe_lookup.a
}
output "description" {
  value = provider::probe::describe({ a = [1, 0.2] }, "and", "more")
}
"""
)


def thing(**attributes: str) -> str:
    """A configuration with one thing, its attributes in Terraform's language."""
    lines = "\n".join(f"  {name} = {text}" for name, text in {"name": '"a"', **attributes}.items())
    return f'{PROBE}\nresource "probe_thing" "a" {{\n{lines}\n}}\n'

"""A real DNS server for tests, as a cluster has one, and programs that use it: `dnsmasq`, and a mount namespace."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from checks.apt_packages import found_or_installed

NAMESPACE: Final = "setpoint-system"
_DOMAIN: Final = "cluster.local"
# As the kubelet writes it into a pod.
_RESOLV: Final = "search {namespace}.svc.{domain} svc.{domain} {domain}\nnameserver {address}\noptions ndots:5\n"


class NameServerMissing(Exception):
    """There is no DNS server on this machine, or its programs cannot be told to use one."""


def dnsmasq() -> str:
    """The path of the program."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        raise NameServerMissing("a DNS server of the test's own takes root and unshare")
    found, printed = found_or_installed(lambda: shutil.which("dnsmasq"), "dnsmasq-base")
    if found is None:
        raise NameServerMissing(f"dnsmasq could not be installed by apt-get:\n{printed}")
    return found


@dataclass(slots=True)
class NameServer:
    """Answers with the addresses of headless Services, on an address of loopback."""

    folder: Path
    address: str
    _process: "subprocess.Popen[bytes] | None" = None

    @property
    def _hosts(self) -> Path:
        return self.folder / "hosts"

    def start(self) -> None:
        """Starts it; it knows no name yet."""
        self.set_addresses("setpoint-metrics", ())
        self._process = subprocess.Popen(
            [
                dnsmasq(),
                "--keep-in-foreground",
                "--conf-file=/dev/null",
                "--pid-file=",
                "--user=root",
                "--bind-interfaces",
                f"--listen-address={self.address}",
                "--no-resolv",
                "--no-hosts",
                f"--addn-hosts={self._hosts}",
                f"--local=/{_DOMAIN}/",
            ],
            stderr=subprocess.DEVNULL,
        )

    def set_addresses(self, service: str, addresses: Sequence[str]) -> None:
        """The pods of a Service, as its EndpointSlices say them."""
        name = f"{service}.{NAMESPACE}.svc.{_DOMAIN}"
        self._hosts.write_text("".join(f"{one} {name}\n" for one in addresses), encoding="utf-8")
        if self._process is not None:
            self._process.send_signal(signal.SIGHUP)

    def freeze(self) -> None:
        """It takes questions, and answers none."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def stop(self) -> None:
        """Ends it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def python(self, *arguments: str) -> "subprocess.Popen[str]":
        """Python whose resolver asks this server, as that of a pod does, with pipes for what it reads and prints."""
        resolv = self.folder / "resolv.conf"
        text = _RESOLV.format(namespace=NAMESPACE, domain=_DOMAIN, address=self.address)
        resolv.write_text(text, encoding="utf-8")
        script = 'mount --bind "$0" /etc/resolv.conf && exec "$@"'
        return subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", script, str(resolv), sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

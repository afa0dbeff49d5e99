"""Names of hosts: in one form, and whether they are this machine."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether a host name stays on this machine, decided without a lookup."""
    if host.lower().rstrip(".") == "localhost":
        return True
    address = _parse(host.strip("[]"))
    return address is not None and address.is_loopback


def normalize_host(host: str) -> str:
    """A host name in the one form that names are compared in; a port is left out."""
    name = host.strip().lower()
    if name.startswith("["):
        name = name[1:].partition("]")[0]
    # more than one colon is an IPv6 address without a port
    elif name.count(":") == 1:
        name = name.partition(":")[0]
    address = _parse(name)
    if address is not None:
        return str(address)
    name = name.rstrip(".")
    try:
        return name.encode("idna").decode()
    except UnicodeError:
        return name


def _parse(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """A numeric address; ``None`` for names."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    # ::ffff:127.0.0.1 is 127.0.0.1, and would otherwise pass for another machine
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address

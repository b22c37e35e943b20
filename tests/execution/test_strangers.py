"""Other users of this machine, played by uid 65534, are refused by what a local run starts."""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from distributed import Client

import dhsk

STRANGER = """
import asyncio, json, os, sys
from distributed.comm import connect
from distributed.security import Security
foreign = Security.temporary().get_connection_args("client")
async def heard(address):
    arguments = foreign if address.startswith("tls") else {}
    try:
        comm = await connect(address, timeout=3, **arguments)
    except OSError:
        return False
    try:
        await comm.write({"op": "identity", "reply": True})
        return bool(await asyncio.wait_for(comm.read(), 3))
    except (OSError, asyncio.TimeoutError):
        return False
    finally:
        comm.abort()
async def main(addresses):
    return dict(zip(addresses, await asyncio.gather(*map(heard, addresses))))
# Loads what is loaded late: the environment may be out of the other user's reach.
asyncio.run(main(["tcp://127.0.0.1:1", "tls://127.0.0.1:1"]))
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
print(json.dumps(asyncio.run(main(sys.argv[1:]))))
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        getattr(os, "geteuid", lambda: 1)() != 0, reason="only root may become another user"
    ),
]


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """What ``dhsk gram --workers 1`` starts."""
    with dhsk.connect("local", n_workers=1, set_as_default=False) as started:
        yield started


def addresses_of(client: Client) -> list[str]:
    """Scheduler, worker and nanny."""
    info = client.scheduler_info()
    workers = info["workers"].values()
    return [info["address"], *info["workers"], *(worker["nanny"] for worker in workers)]


def answers(addresses: list[str]) -> dict[str, bool]:
    """Which of them answer a user who owns nothing here."""
    command = [sys.executable, "-c", STRANGER, *addresses]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, bool] = json.loads(done.stdout)
    return found


def test_without_the_certificate_nothing_answers(client: Client) -> None:
    """Plain TCP and TLS with a foreign certificate are refused; the owner is served meanwhile."""
    held = addresses_of(client)
    assert len(held) == 3
    assert all(address.startswith("tls://127.0.0.1:") for address in held)
    plain = [address.replace("tls://", "tcp://") for address in held]
    assert answers(held + plain) == dict.fromkeys(held + plain, False)
    assert client.submit(pow, 2, 5).result(timeout=30) == 32


def test_a_plain_cluster_answers() -> None:
    """What the test above would see if there was no certificate; so asked for by name."""
    with dhsk.connect("local", n_workers=1, protocol="tcp", set_as_default=False) as plain:
        held = addresses_of(plain)
        assert answers(held) == dict.fromkeys(held, True)


@pytest.mark.parametrize(
    "page", ["info/main/workers.html", "json/counts.json", "metrics", "health"]
)
def test_no_page_without_a_dashboard(client: Client, page: str) -> None:
    """Dask's pages ask for no credential, and show logs, calls and names of files."""
    link: Any = client.dashboard_link
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(link.replace("status", page), timeout=10)

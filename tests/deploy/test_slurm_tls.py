"""The connections of a job: encrypted, for this job alone, and gone with it."""

import asyncio
import json
import ssl
import subprocess
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from distributed import Client
from distributed.comm import connect
from distributed.security import Security
from slurm_nodes import Job, Slurm

pytestmark = [pytest.mark.real, pytest.mark.slow]


def security_of(folder: Path, trusted: Path) -> Security:
    """What a client presents, and whom it trusts."""
    return Security(
        tls_ca_file=str(trusted / "certificate.pem"),
        tls_client_cert=str(folder / "certificate.pem"),
        tls_client_key=str(folder / "key.pem"),
        require_encryption=True,
    )


def context_of(folder: Path, trusted: Path) -> ssl.SSLContext:
    """The same for a single connection."""
    context: ssl.SSLContext = security_of(folder, trusted).get_connection_args("client")[
        "ssl_context"
    ]
    return context


def another_certificate(folder: Path) -> Path:
    """Folder with a certificate that another job might have."""
    folder.mkdir()
    files = "-keyout", folder / "key.pem", "-out", folder / "certificate.pem"
    kind = "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", "/CN=dhsk job"
    command = ["openssl", "req", "-x509", "-nodes", *kind, *files]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def answers(address: str, context: ssl.SSLContext | None) -> bool:
    """Whether a scheduler or worker answers a call."""

    async def call() -> bool:
        comm = await connect(address, timeout=3, ssl_context=context)
        try:
            await comm.write({"op": "identity", "reply": True})
            return "id" in await comm.read()
        finally:
            comm.abort()

    with suppress(OSError):
        return asyncio.run(asyncio.wait_for(call(), 10))
    return False


def addresses_of(job: Job) -> list[str]:
    """Addresses of the scheduler and of all workers of a job."""
    folder = job.credentials()
    scheduler = json.loads((folder / "scheduler.json").read_text())["address"]
    with Client(scheduler, security=security_of(folder, folder), set_as_default=False) as client:
        return [scheduler, *client.scheduler_info(n_workers=-1)["workers"]]


def heard(job: Job) -> set[str]:
    """Addresses on which the processes of a job listen."""
    return {
        connection.laddr.ip
        for process in [*job.processes("worker"), *job.processes("scheduler")]
        for connection in process.net_connections(kind="inet")
        if connection.status in (psutil.CONN_LISTEN, psutil.CONN_NONE)
    }


def test_strangers_are_refused(slurm: Slurm, tmp_path: Path) -> None:
    """Scheduler and workers answer who has the job's certificate, and nobody else.

    Its folder is for its owner only, nothing listens on all interfaces, and what gave access is
    gone after a requeue, and after the end by force.
    """
    job = slurm.long_job(tmp_path)
    (command,) = job.processes("--cluster")
    command.suspend()  # its workers, which answer, would take both cores
    folder = job.credentials()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "scheduler.json").stat().st_mode & 0o777 == 0o600
    assert {file.stat().st_mode & 0o077 for file in folder.glob("*.pem")} == {0}
    assert heard(job) == {"127.0.0.1"}  # the address of both nodes here

    mine = context_of(folder, trusted=folder)
    other = another_certificate(tmp_path / "other")
    nameless = ssl.create_default_context(cafile=str(folder / "certificate.pem"))
    nameless.check_hostname = False
    addresses = addresses_of(job)
    assert len(addresses) == 3
    for address in addresses:
        assert address.startswith("tls://")
        assert answers(address, mine)
        assert not answers(address, nameless)
        assert not answers(address, context_of(other, trusted=folder))
        assert not answers(address, context_of(other, trusted=other))
        assert not answers(address.replace("tls://", "tcp://"), None)

    command.resume()
    job.requeue()
    assert not folder.exists()
    slurm.await_that(lambda: job.processes("worker"), "workers of the requeued job")
    assert job.credentials(1).exists()
    job.cancel()
    assert job.finish()[0] == "CANCELLED"
    slurm.await_that(lambda: not job.credentials(1).exists(), "end of the credentials")
    assert not list(tmp_path.glob(".dhsk-*"))

"""Temporary credentials: files for their owner only, and who is refused without them."""

import gc
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, LocalCluster
from distributed.security import Security

from dhsk.execution.batch import temporary_security


def test_files_are_for_their_owner(tmp_path: Path) -> None:
    """Nobody else can read key and certificates."""
    temporary_security(tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {"ca.crt", "tls.crt", "tls.key"}
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}


@pytest.mark.slow
def test_who_is_refused(tmp_path: Path) -> None:
    """In: who has the files. Out: without a certificate, with another job's, in plain TCP."""
    other = tmp_path / "other"
    other.mkdir()
    security, another = temporary_security(tmp_path), temporary_security(other)
    authority, certificate, key = (str(tmp_path / n) for n in ("ca.crt", "tls.crt", "tls.key"))
    held = Security(tls_ca_file=authority, tls_client_cert=certificate, tls_client_key=key)
    bare = Security(require_encryption=True, tls_ca_file=authority)
    with LocalCluster(
        n_workers=0,
        protocol="tls://",
        host="127.0.0.1",
        security=security,
        dashboard_address="127.0.0.1:0",
    ) as cluster:
        address = cluster.scheduler_address
        with Client(address, security=held, set_as_default=False) as client:
            assert client.scheduler_info()["address"] == address
        assert not enters(address, another)
        assert not enters(address, bare)
        assert not enters(address.replace("tls", "tcp"), None)


def enters(address: str, security: Any) -> bool:
    """Whether a client gets in."""
    try:
        Client(address, security=security, set_as_default=False, timeout=2).close()
    except (OSError, TypeError, RuntimeError):
        refused = True
    else:
        refused = False
    gc.collect()  # the client that failed, whose end must not fall into the start of the next one
    return not refused

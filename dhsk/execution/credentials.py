"""Temporary TLS credentials of one cluster, in files for its workers that others cannot read."""

import os
from pathlib import Path
from typing import Final

from distributed.security import Security

AUTHORITY, KEY, CERTIFICATE = "ca.crt", "tls.key", "tls.crt"
"""Names of the files, those of a Kubernetes secret for TLS."""

OWNER_ONLY: Final = 0o600


def temporary_security(folder: Path) -> Security:
    """Make a key and a certificate, and write the workers' copies into a folder.

    The certificate is its own authority: whoever does not have the key is refused, in both
    directions. Scheduler and client hold it in memory; the workers' files have mode 0600.
    """
    security = Security.temporary()
    for name, attribute in (
        (AUTHORITY, "tls_ca_file"),
        (CERTIFICATE, "tls_worker_cert"),
        (KEY, "tls_worker_key"),
    ):
        file = folder / name
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
        with os.fdopen(descriptor, "w") as opened:
            opened.write(getattr(security, attribute))
        setattr(security, attribute, str(file))
    return security

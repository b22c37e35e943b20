"""Connections to S3-like servers, from the environment.

Measured on Ceph radosgw 16, eight chunks at a time, MB/s and ms of processor time a MB, in brackets
with s3fs: put 8 MB 192, 0.96 (121, 2.13); get 32 MB 692, 1.02 (500, 1.67); ranges of 32 MB 767,
0.85 (501, 1.58). One put is one request: parts of a multipart upload of a killed process would
stay, invisible and charged. Rejected: zarr's stores (copies, and no record of a chunk's size);
If-Match, which Ceph refuses.
"""

import os
import time
from collections.abc import Callable
from datetime import timedelta
from functools import lru_cache
from typing import Any, Final, TypeVar

from dhsk.errors import StoreError
from dhsk.objects.faults import UnansweredError, library

Result = TypeVar("Result")

PATIENCE_SECONDS: Final = 240.0
"""Time for which a request is repeated while a server does not answer: a restart takes a minute."""

FIRST_SECONDS: Final = 15.0
"""The same for the first request of a command: a wrong address should be found soon."""

_LARGEST_PAUSE: Final = 3.0
"""Seconds between two tries at most."""

RETRY_SECONDS: Final = 5
"""Time for which obstore repeats a request, in which an interrupt of Python waits."""

_REQUEST_SECONDS: Final = 300
"""Longest request: a chunk of half a gigabyte at 2 MB/s."""

_NAMES: Final = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
)

_OTHER_CREDENTIALS: Final = (
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
"""Variables by which obstore itself finds the credentials of a pod or a task."""


def bucket_of(name: str) -> Any:
    """Connection to a bucket, one per process.

    Raises InputError if obstore is not installed, and StoreError without credentials.
    """
    environment = tuple((key, os.environ[key]) for key in _NAMES if os.environ.get(key))
    return _connected(name, environment, os.getpid())


@lru_cache(maxsize=16)
def _connected(
    name: str,
    environment: tuple[tuple[str, str], ...],
    process: int,  # noqa: ARG001  # connections do not survive a fork
) -> Any:
    known = dict(environment)
    endpoint = known.get("AWS_ENDPOINT_URL")
    options: dict[str, Any] = {"virtual_hosted_style_request": endpoint is None}
    if endpoint is not None:
        options["endpoint"] = endpoint
    if "AWS_ACCESS_KEY_ID" in known and "AWS_SECRET_ACCESS_KEY" in known:
        options["access_key_id"] = known["AWS_ACCESS_KEY_ID"]
        options["secret_access_key"] = known["AWS_SECRET_ACCESS_KEY"]
        if "AWS_SESSION_TOKEN" in known:
            options["session_token"] = known["AWS_SESSION_TOKEN"]
    elif not any(os.environ.get(key) for key in _OTHER_CREDENTIALS):
        raise StoreError(
            f"s3://{name} needs credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in "
            "the environment of this process and of the workers"
        )
    return library("obstore.store").S3Store(
        name,
        region=known.get("AWS_REGION") or known.get("AWS_DEFAULT_REGION") or "us-east-1",
        client_options={
            "allow_http": (endpoint or "").startswith("http://"),
            "connect_timeout": timedelta(seconds=5),
            "timeout": timedelta(seconds=_REQUEST_SECONDS),
        },
        retry_config={
            "max_retries": 10_000,  # the time is the limit
            "retry_timeout": timedelta(seconds=RETRY_SECONDS),
            "backoff": {
                "init_backoff": timedelta(seconds=0.1),
                "max_backoff": timedelta(seconds=_LARGEST_PAUSE),
                "base": 2,
            },
        },
        **options,
    )


def patiently(work: Callable[[], Result], seconds: float = PATIENCE_SECONDS) -> Result:
    """Do `work`, again while the server does not answer, for `seconds`.

    obstore itself repeats most requests for a moment, but not one whose answer breaks off, nor one
    that creates an object.
    """
    end, pause = time.monotonic() + seconds, 0.1
    while True:
        try:
            return work()
        except UnansweredError:
            if time.monotonic() + pause > end:
                raise
        time.sleep(pause)
        pause = min(2 * pause, _LARGEST_PAUSE)

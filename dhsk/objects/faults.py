"""Errors of object stores in plain words, without credentials."""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from dhsk.errors import StoreError, optional_module

_CODE: Final = re.compile(r"<Code>(\w{1,64})</Code>")
_STATUS: Final = re.compile(r"status code: (\d{3})")

_CREDENTIALS: Final = (
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "ExpiredToken",
    "InvalidToken",
    "RequestTimeTooSkewed",
)


class UnansweredError(StoreError):
    """The server did not answer, or answered that it cannot now; the same may work later."""


def library(name: str = "obstore") -> Any:
    """A module of obstore, which is optional; InputError if it is not installed."""
    return optional_module(name, "s3", "s3:// needs obstore")


@contextmanager
def told(url: str, verb: str) -> Iterator[None]:
    """Turn errors of obstore into FileNotFoundError for a missing object, or else StoreError.

    `url` and `verb` are for the message: what could not be "read", "written", "listed". The texts
    of obstore are not shown and not chained, as they may quote parts of the signed request.
    """
    kinds = library("obstore.exceptions")
    try:
        yield
    except (kinds.BaseError, FileNotFoundError) as error:
        said = str(error)
        missing = isinstance(error, FileNotFoundError)
        failure = _failure(url, verb, said, type(error).__name__, missing=missing)
    else:
        return
    raise failure from None


def _failure(url: str, verb: str, said: str, kind: str, *, missing: bool) -> Exception:
    found, status = _CODE.search(said), _STATUS.search(said)
    code = found[1] if found else ""
    bucket = "/".join(url.split("/")[:3])
    cannot = f"{url} cannot be {verb}"
    if code == "NoSuchBucket":
        return StoreError(f"{bucket} does not exist: make the bucket, or check its name")
    if missing:
        return FileNotFoundError(errno.ENOENT, "no such object", url)
    if code in _CREDENTIALS or (kind == "UnauthenticatedError" and not code):
        return StoreError(
            f"{cannot}, as the server refuses the credentials ({code or 'not accepted'}): check "
            "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN"
        )
    if "Quota" in code:
        return StoreError(
            f"{cannot}, as a quota of the server is used up ({code}); what is finished is kept: "
            "make room or have the quota raised, and run the same again"
        )
    if kind in ("PermissionDeniedError", "UnauthenticatedError"):
        return StoreError(
            f"{cannot}, as the server does not permit it ({code or 'forbidden'}): check the "
            "credentials, or have the permissions of the bucket changed"
        )
    if status and status[1].startswith("4"):
        return StoreError(
            f"{cannot}: the server answers {code or status[1]}; check the name of the bucket, "
            "AWS_ENDPOINT_URL and AWS_REGION"
        )
    reason = f"the server answers {code or status[1]}" if status else "the server does not answer"
    return UnansweredError(
        f"{cannot}, as {reason}; what is finished is kept: check AWS_ENDPOINT_URL and the "
        "network, and run the same again later"
    )

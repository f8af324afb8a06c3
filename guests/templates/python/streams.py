"""Whole contents over streams."""

from typing import Optional

from componentize_py_types import Err
from sandbox import failed
from wit_world.imports.streams import InputStream, OutputStream, StreamError_LastOperationFailed

# Bytes of one write. `blocking-write-and-flush` takes 4096 at most; a prime below it shows in tests that
# nobody relies on round numbers.
CHUNK = 4093
# Bytes of one read or splice: large enough that its own cost does not show.
READ = 64 * 1024


class BrokenPipe(Exception):
    """Nobody reads what is written."""


def write(stream: OutputStream, content: bytes) -> None:
    """Writes everything, and waits until it is taken."""
    for at in range(0, len(content), CHUNK):
        try:
            stream.blocking_write_and_flush(content[at : at + CHUNK])
        except Err as error:
            ended(error)
            raise BrokenPipe()


def read(stream: InputStream, most: int) -> Optional[bytes]:
    """Reads to the end; none when there is more than `most`."""
    content = bytearray()
    while True:
        try:
            content += stream.blocking_read(READ)
        except Err as error:
            ended(error)
            return bytes(content)
        if len(content) > most:
            return None


def splice(source: InputStream, target: OutputStream) -> None:
    """Moves everything inside the host; no byte enters this instance."""
    try:
        while True:
            target.blocking_splice(source, READ)
    except Err as error:
        ended(error)
    try:
        target.blocking_flush()
    except Err as error:
        ended(error)


def ended(error: Err) -> None:
    """Returns when the stream was closed; anything else is a fault."""
    if isinstance(error.value, StreamError_LastOperationFailed):
        raise failed("stream_failed", error.value.value.to_debug_string())

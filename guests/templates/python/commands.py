"""The commands of the sandbox. A real provider would hand them to its back end instead."""

from typing import Callable, Optional

import sandbox
import streams
from componentize_py_types import Err
from sandbox import PathError, Sandbox
from streams import BrokenPipe
from wit_world.exports.execute import ExecuteRequest, Exit, Exit_Exited, Exit_Signaled, Exit_TimedOut
from wit_world.imports import monotonic_clock, types
from wit_world.imports.streams import InputStream, OutputStream

# What a shell answers to a command it does not know, and to one that is used wrongly.
NOT_FOUND = 127
MISUSED = 2
# Digits of a number on a command line; more would not be a time or a count that anybody means.
DIGITS_MAX = 9


class Run:
    """One command that runs."""

    def __init__(self, request: ExecuteRequest, box: Sandbox, input: InputStream, out: OutputStream, err: OutputStream):
        self.request, self.box, self.input, self.out, self.err = request, box, input, out, err
        self.arguments = request.argv[1:]

    def complain(self, text: str, code: int) -> Exit:
        streams.write(self.err, f"{self.request.argv[0]}: {text}\n".encode())
        return Exit_Exited(code)


def run(command: Run) -> Exit:
    known = COMMANDS.get(command.request.argv[0])
    try:
        return known(command) if known else command.complain("not found", NOT_FOUND)
    except BrokenPipe:
        # Nobody reads any more: a command would get this signal.
        return Exit_Signaled("SIGPIPE")


def echo(command: Run) -> Exit:
    streams.write(command.out, (" ".join(command.arguments) + "\n").encode())
    return Exit_Exited(0)


def cat(command: Run) -> Exit:
    if not command.arguments:
        streams.splice(command.input, command.out)
        return Exit_Exited(0)
    code = 0
    for argument in command.arguments:
        path = command.box.resolve(argument)
        node = command.box.nodes.get(path)
        if node is not None and node.content is not None:
            streams.write(command.out, node.content)
        else:
            code = 1
            command.complain(f"{path}: {'no such file' if node is None else 'is a directory'}", code)
    return Exit_Exited(code)


def write(command: Run) -> Exit:
    if len(command.arguments) != 1:
        return command.complain("give one path", MISUSED)
    path = command.box.resolve(command.arguments[0])
    content = streams.read(command.input, sandbox.SANDBOX_MAX)
    try:
        if content is None:
            raise PathError("sandbox_full", path, "no space left")
        command.box.put(path, content, None)
        if len(sandbox.encode(command.box)) > sandbox.SANDBOX_MAX:
            raise PathError("sandbox_full", path, "no space left")
    except PathError as error:
        return command.complain(f"{error.path}: {error.reason}", 1)
    sandbox.save(command.request.lease.id, command.box)
    return Exit_Exited(0)


def sleep(command: Run) -> Exit:
    wanted = number(command.arguments)
    if wanted is None:
        return command.complain("give milliseconds", MISUSED)
    allowed = command.request.timeout_ms
    timed_out = allowed is not None and wanted > allowed
    monotonic_clock.subscribe_duration((allowed if timed_out else wanted) * 1_000_000).block()
    return Exit_TimedOut() if timed_out else Exit_Exited(0)


def exit_(command: Run) -> Exit:
    code = number(command.arguments)
    if code is None or code > 255:
        return command.complain("give a code from 0 to 255", MISUSED)
    return Exit_Exited(code)


def env(command: Run) -> Exit:
    lines = [f"{name}={value}\n" for name, value in command.request.env]
    streams.write(command.out, "".join(lines).encode())
    return Exit_Exited(0)


def seq(command: Run) -> Exit:
    last = number(command.arguments)
    if last is None:
        return command.complain("give a number", MISUSED)
    pending = bytearray()
    for current in range(1, last + 1):
        pending += b"%d\n" % current
        if len(pending) >= streams.CHUNK:
            streams.write(command.out, bytes(pending[: streams.CHUNK]))
            del pending[: streams.CHUNK]
    streams.write(command.out, bytes(pending))
    return Exit_Exited(0)


COMMANDS: dict[str, Callable[[Run], Exit]] = {
    "echo": echo,
    "cat": cat,
    "write": write,
    "sleep": sleep,
    "exit": exit_,
    "env": env,
    "seq": seq,
}


def number(arguments: list[str]) -> Optional[int]:
    if len(arguments) != 1:
        return None
    text = arguments[0]
    return int(text) if text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX else None

"""The sandbox: a small tree of files, kept as one value in the host's store.

One value for one sandbox means that every change is one compare-and-set: all of it is kept, or nothing.
"""

from dataclasses import dataclass
from typing import Optional

from componentize_py_types import Err
from wit_world.imports import state, types

# The only directory that commands and transfers may change.
WORKSPACE = "/workspace"
# Bytes of a whole sandbox, names and contents. The store takes no larger value unless the host raises its
# limit `state-value-bytes`. Hit: the write fails and the sandbox stays as it was.
SANDBOX_MAX = 64 * 1024
FILE_MODE = 0o644
DIRECTORY_MODE = 0o755


def failed(code: str, message: str) -> Err:
    return Err(types.Error_Failed(types.PermanentFault(code, message)))


def unavailable(message: str) -> Err:
    fault = types.TransientFault(types.TransientCategory.UNAVAILABLE, None, message)
    return Err(types.Error_Transient(fault))


def of_state(error: state.StateError) -> Err:
    """What the store says, as the contract's errors."""
    if isinstance(error, state.StateError_Conflict):
        return unavailable("the sandbox was changed meanwhile; try again")
    if isinstance(error, state.StateError_Quota):
        return failed("sandbox_full", error.value)
    return unavailable("the store of sandboxes cannot be reached")


class PathError(Exception):
    """A path that cannot be used, and why. Commands print it, transfers return it."""

    def __init__(self, code: str, path: str, reason: str) -> None:
        super().__init__(reason)
        self.code, self.path, self.reason = code, path, reason

    def as_error(self) -> Err:
        if self.code == "outside":
            return Err(types.Error_Denied(f"{self.path}: {self.reason}"))
        return failed(self.code, f"{self.path}: {self.reason}")


@dataclass
class Node:
    """A file, or a directory when there is no content."""

    mode: int
    content: Optional[bytes]


class Sandbox:
    def __init__(self, cwd: str) -> None:
        self.cwd = cwd
        # Absolute path to node. Parents are always there.
        self.nodes: dict[str, Node] = {}
        # Version in the store; 0 means that it must not be there yet.
        self.version = 0

    def resolve(self, path: str) -> str:
        """An absolute path without `.`, `..` and doubled slashes."""
        return normal(path if path.startswith("/") else f"{self.cwd}/{path}")

    def make_directory(self, path: str) -> Node:
        inside(path)
        prefix = WORKSPACE
        for name in ["", *path[len(WORKSPACE) + 1 :].split("/")]:
            prefix = f"{prefix}/{name}" if name else prefix
            node = self.nodes.setdefault(prefix, Node(DIRECTORY_MODE, None))
            if node.content is not None:
                raise PathError("not_a_directory", prefix, "not a directory")
        return self.nodes[path]

    def put(self, path: str, content: bytes, mode: Optional[int]) -> None:
        """Writes a file; no mode keeps the one it has."""
        inside(path)
        old = self.nodes.get(path)
        if path == WORKSPACE or (old and old.content is None):
            raise PathError("is_a_directory", path, "is a directory")
        self.make_directory(path[: path.rindex("/")])
        if mode is None:
            mode = old.mode if old else FILE_MODE
        self.nodes[path] = Node(mode, content)

    def remove(self, path: str) -> None:
        """Removes whatever is at a path, with everything below it."""
        inside(path)
        self.nodes.pop(path, None)
        for below, _ in self.below(path):
            del self.nodes[below]

    def below(self, path: str) -> list[tuple[str, Node]]:
        """Everything below a directory; a parent always comes before its children."""
        return sorted((name, node) for name, node in self.nodes.items() if name.startswith(path + "/"))


def normal(path: str) -> str:
    names: list[str] = []
    for name in path.split("/"):
        if name == "..":
            del names[-1:]
        elif name not in ("", "."):
            names.append(name)
    return "/" + "/".join(names)


def inside(path: str) -> None:
    if path != WORKSPACE and not path.startswith(WORKSPACE + "/"):
        raise PathError("outside", path, f"outside of {WORKSPACE}")


def load(lease_id: str) -> Sandbox:
    """The sandbox of a lease. Raises `gone` when there is none."""
    try:
        found = state.get(lease_id)
    except Err as error:
        raise of_state(error.value)
    if found is None:
        raise Err(types.Error_Gone())
    sandbox = decode(found.value)
    sandbox.version = found.version
    return sandbox


def save(lease_id: str, sandbox: Sandbox) -> None:
    """Writes the sandbox over the version it was read at."""
    value = encode(sandbox)
    if len(value) > SANDBOX_MAX:
        raise failed("sandbox_full", f"a sandbox holds {SANDBOX_MAX} bytes")
    try:
        sandbox.version = state.set(lease_id, value, sandbox.version, None)
    except Err as error:
        raise of_state(error.value)


# A sandbox is stored as records, each a line `kind mode length-of-path length-of-content`, then the path,
# then the content. Kinds: `w` the working directory, `d` a directory, `f` a file.


def encode(sandbox: Sandbox) -> bytes:
    records = [record("w", 0, sandbox.cwd, b"")]
    for path, node in sorted(sandbox.nodes.items()):
        kind = "d" if node.content is None else "f"
        records.append(record(kind, node.mode, path, node.content or b""))
    return b"".join(records)


def record(kind: str, mode: int, path: str, content: bytes) -> bytes:
    name = path.encode()
    return f"{kind} {mode:o} {len(name)} {len(content)}\n".encode() + name + content


def decode(value: bytes) -> Sandbox:
    sandbox, at = Sandbox(WORKSPACE), 0
    try:
        while at < len(value):
            end = value.index(b"\n", at)
            kind, mode, name_length, content_length = value[at:end].decode().split(" ")
            middle = end + 1 + int(name_length)
            at = middle + int(content_length)
            path = value[end + 1 : middle].decode()
            if kind == "w":
                sandbox.cwd = path
            else:
                content = value[middle:at] if kind == "f" else None
                sandbox.nodes[path] = Node(int(mode, 8), content)
    except ValueError:
        at = -1
    if at != len(value):
        raise failed("state_damaged", "the stored sandbox cannot be read; destroy the lease")
    return sandbox

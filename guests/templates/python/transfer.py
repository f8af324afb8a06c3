"""Files in and out of the sandbox."""

import streams
from componentize_py_types import Err
from sandbox import SANDBOX_MAX, WORKSPACE, Node, PathError, Sandbox, failed, normal
from wit_world.exports.sync_in import InboundMapping
from wit_world.exports.sync_out import OutboundMapping
from wit_world.imports import transfer
from wit_world.imports.streams import InputStream
from wit_world.imports.sync_types import MappingKind, OperationResult

PERMISSIONS = 0o7777


def take(box: Sandbox, mapping: InboundMapping, moved: OperationResult) -> None:
    """Places what the host gives."""
    target = normal(mapping.target_path)
    if mapping.kind == MappingKind.FILE:
        content = read(mapping.source.tar())
        box.put(target, content, 0o644 if mapping.mode is None else mapping.mode & PERMISSIONS)
        count(moved, content)
        return
    # What was there before goes: the directory becomes what the host gives.
    box.remove(target)
    box.make_directory(target)
    while (found := mapping.source.next()) is not None:
        entry, stream = found
        path = normal(f"{target}/{entry.path}")
        mode = entry.mode & PERMISSIONS
        match entry.kind:
            case transfer.EntryKind_Directory():
                box.make_directory(path).mode = mode
            case transfer.EntryKind_File(size):
                content = read(stream) if stream else b""
                if len(content) != size:
                    raise failed("size_differs", f"{path}: {size} announced, {len(content)} came")
                box.put(path, content, mode)
                count(moved, content)
            case transfer.EntryKind_Symlink(aim):
                raise failed("links_unsupported", f"{path} -> {aim}: this sandbox keeps no links")


def give(box: Sandbox, mapping: OutboundMapping, moved: OperationResult) -> None:
    """Hands out what is in the sandbox."""
    source = normal(mapping.source_path)
    for pattern in mapping.exclude:
        if "[" in pattern or "\\" in pattern:
            raise failed("exclude_unsupported", f"{pattern}: only `*` and `?` are understood")
    node = box.nodes.get(source)
    if node is None:
        raise PathError("not_found", source, "no such file or directory")
    if mapping.kind == MappingKind.FILE:
        if node.content is None:
            raise PathError("is_a_directory", source, "is a directory")
        streams.write(mapping.sink.tar(), node.content)
        count(moved, node.content)
    else:
        if node.content is not None:
            raise PathError("not_a_directory", source, "not a directory")
        put(mapping.sink, "", node)
        for path, below in box.below(source):
            name = path[len(source) + 1 :]
            if not any(excluded(name, pattern) for pattern in mapping.exclude):
                put(mapping.sink, name, below)
                if below.content is not None:
                    count(moved, below.content)
    mapping.sink.finish()


def put(sink: transfer.Sink, name: str, node: Node) -> None:
    if node.content is None:
        sink.put(transfer.Entry(name, transfer.EntryKind_Directory(), node.mode))
        return
    kind = transfer.EntryKind_File(len(node.content))
    stream = sink.put(transfer.Entry(name, kind, node.mode))
    if stream:
        # Before the next entry the host wants this one's stream back.
        with stream:
            streams.write(stream, node.content)


def read(stream: InputStream) -> bytes:
    with stream:
        content = streams.read(stream, SANDBOX_MAX)
    if content is None:
        raise failed("sandbox_full", f"a sandbox holds {SANDBOX_MAX} bytes")
    return content


def count(moved: OperationResult, content: bytes) -> None:
    moved.files += 1
    moved.bytes += len(content)


def excluded(name: str, pattern: str) -> bool:
    """As GNU tar means it: from the start of any component, to the end of any; wildcards match `/` too."""
    starts = [0, *(at + 1 for at, char in enumerate(name) if char == "/")]
    ends = [*(at for at, char in enumerate(name) if char == "/"), len(name)]
    return any(matches(name[start:end], pattern) for start in starts for end in ends if start < end)


def matches(text: str, pattern: str) -> bool:
    at, star, resume = 0, -1, 0
    place = 0
    while at < len(text):
        if place < len(pattern) and pattern[place] == "*":
            star, resume = place, at
            place += 1
        elif place < len(pattern) and pattern[place] in ("?", text[at]):
            place += 1
            at += 1
        elif star >= 0:
            place, resume = star + 1, resume + 1
            at = resume
        else:
            return False
    return pattern[place:].strip("*") == ""


def of_transfer(error: transfer.TransferError) -> Err:
    """What the host says of a transfer, as the contract's errors."""
    match error:
        case transfer.TransferError_Limit(text):
            return failed("transfer_limit", text)
        case transfer.TransferError_Refused(text):
            return failed("transfer_refused", text)
        case transfer.TransferError_Failed(text):
            return failed("transfer_failed", text)
        case _:
            return failed("transfer_closed", "the host ended the transfer")

// Files in and out of the sandbox.

import { PathError, SANDBOX_MAX, failed, normal, payload } from './sandbox.js';
import { BROKEN_PIPE, dispose, read as readAll, write } from './streams.js';

const PERMISSIONS = 0o7777;

// Places what the host gives.
export function take(sandbox, mapping, moved) {
  const target = normal(mapping.targetPath);
  if (mapping.kind === 'file') {
    const content = read(told(() => mapping.source.tar()));
    sandbox.put(target, content, (mapping.mode ?? 0o644) & PERMISSIONS);
    count(moved, content);
    return;
  }
  // What was there before goes: the directory becomes what the host gives.
  sandbox.remove(target);
  sandbox.makeDirectory(target);
  for (let found; (found = told(() => mapping.source.next())) !== undefined;) {
    const [entry, stream] = found;
    const path = normal(`${target}/${entry.path}`);
    const mode = entry.mode & PERMISSIONS;
    if (entry.kind.tag === 'directory') sandbox.makeDirectory(path).mode = mode;
    else if (entry.kind.tag === 'file') {
      const content = stream ? read(stream) : new Uint8Array();
      if (BigInt(content.length) !== entry.kind.val) {
        throw failed('size_differs', `${path}: ${entry.kind.val} announced, ${content.length} came`);
      }
      sandbox.put(path, content, mode);
      count(moved, content);
    } else {
      throw failed('links_unsupported', `${path} -> ${entry.kind.val}: this sandbox keeps no links`);
    }
  }
}

// Hands out what is in the sandbox.
export function give(sandbox, mapping, moved) {
  const source = normal(mapping.sourcePath);
  for (const pattern of mapping.exclude) {
    if (/[[\\]/.test(pattern)) {
      throw failed('exclude_unsupported', `${pattern}: only \`*\` and \`?\` are understood`);
    }
  }
  const node = sandbox.nodes.get(source);
  if (!node) throw new PathError('not_found', source, 'no such file or directory');
  if (mapping.kind === 'file') {
    if (!node.content) throw new PathError('is_a_directory', source, 'is a directory');
    write(told(() => mapping.sink.tar()), node.content);
    count(moved, node.content);
  } else {
    if (node.content) throw new PathError('not_a_directory', source, 'not a directory');
    put(mapping.sink, '', node);
    for (const [path, below] of sandbox.below(source)) {
      const name = path.slice(source.length + 1);
      if (mapping.exclude.some((pattern) => excluded(name, pattern))) continue;
      put(mapping.sink, name, below);
      if (below.content) count(moved, below.content);
    }
  }
  told(() => mapping.sink.finish());
}

// Moves a mapping, and gives every fault the form the contract knows.
export function guarded(move, sandbox, mapping, moved) {
  try {
    move(sandbox, mapping, moved);
  } catch (thrown) {
    if (thrown instanceof PathError) throw thrown.asError();
    if (thrown === BROKEN_PIPE) throw failed('transfer_closed', 'the host ended the transfer');
    throw thrown;
  }
}

function put(sink, path, { mode, content }) {
  const kind = content ? { tag: 'file', val: BigInt(content.length) } : { tag: 'directory' };
  const stream = told(() => sink.put({ path, kind, mode }));
  if (!content || !stream) return;
  try {
    write(stream, content);
  } finally {
    // Before the next entry the host wants this one's stream back.
    dispose(stream);
  }
}

function read(stream) {
  const content = readAll(stream, SANDBOX_MAX);
  dispose(stream);
  if (content === undefined) throw failed('sandbox_full', `a sandbox holds ${SANDBOX_MAX} bytes`);
  return content;
}

function count(moved, content) {
  moved.files += 1n;
  moved.bytes += BigInt(content.length);
}

// As GNU tar means it: from the start of any component, to the end of any; wildcards match `/` too.
function excluded(name, pattern) {
  const body = pattern.replace(/[.+^${}()|]/g, '\\$&').replaceAll('*', '.*').replaceAll('?', '.');
  return new RegExp(`(^|/)${body}(/|$)`, 'su').test(name);
}

// Calls into the host, and says its faults as the contract's errors.
function told(call) {
  try {
    return call();
  } catch (thrown) {
    const error = payload(thrown);
    if (error.tag === 'closed') throw failed('transfer_closed', 'the host ended the transfer');
    throw failed(`transfer_${error.tag}`, error.val);
  }
}

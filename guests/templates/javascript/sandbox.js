// The sandbox: a small tree of files, kept as one value in the host's store.
//
// One value for one sandbox means that every change is one compare-and-set: all of it is kept, or nothing.

import * as state from 'leasehold:host/state@0.1.0';

// The only directory that commands and transfers may change.
export const WORKSPACE = '/workspace';
// Bytes of a whole sandbox, names and contents. The store takes no larger value unless the host raises its
// limit `state-value-bytes`. Hit: the write fails and the sandbox stays as it was.
export const SANDBOX_MAX = 64 * 1024;
const FILE_MODE = 0o644;
const DIRECTORY_MODE = 0o755;

const encoder = new TextEncoder();
// Without `fatal` a damaged record would be read as something else; without `ignoreBOM` a name would lose
// its first character.
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
export const bytes = (text) => encoder.encode(text);

// The contract's errors, as they are thrown. A record needs all its fields, `undefined` for none.
export const failed = (code, message) => ({ tag: 'failed', val: { code, message } });
const unavailable = (message) => ({
  tag: 'transient',
  val: { category: 'unavailable', retryAfterMs: undefined, message },
});

// What the host's functions throw carries their error in `payload`.
export function payload(thrown) {
  if (thrown?.payload === undefined) throw thrown;
  return thrown.payload;
}

// Calls into the store, and says its faults as the contract's errors.
export function stored(call) {
  try {
    return call();
  } catch (thrown) {
    throw ofState(payload(thrown));
  }
}

export function ofState(error) {
  switch (error.tag) {
    case 'conflict': return unavailable('the sandbox was changed meanwhile; try again');
    case 'quota': return failed('sandbox_full', error.val);
    default: return unavailable('the store of sandboxes cannot be reached');
  }
}

// A path that cannot be used, and why. Commands print it, transfers return it.
export class PathError {
  constructor(code, path, reason) {
    Object.assign(this, { code, path, reason });
  }

  get text() {
    return `${this.path}: ${this.reason}`;
  }

  asError() {
    return this.code === 'outside' ? { tag: 'denied', val: this.text } : failed(this.code, this.text);
  }
}

export class Sandbox {
  // Absolute path to node, `{ mode, content }`; a directory has no content. Parents are always there.
  nodes = new Map();
  // Version in the store; 0 means that it must not be there yet.
  version = 0n;

  constructor(cwd) {
    this.cwd = cwd;
  }

  // An absolute path without `.`, `..` and doubled slashes.
  resolve(path) {
    return normal(path.startsWith('/') ? path : `${this.cwd}/${path}`);
  }

  makeDirectory(path) {
    inside(path);
    let prefix = WORKSPACE;
    for (const name of ['', ...path.slice(WORKSPACE.length + 1).split('/')]) {
      if (name !== '') prefix = `${prefix}/${name}`;
      if (!this.nodes.has(prefix)) this.nodes.set(prefix, { mode: DIRECTORY_MODE, content: undefined });
      if (this.nodes.get(prefix).content) throw new PathError('not_a_directory', prefix, 'not a directory');
    }
    return this.nodes.get(path);
  }

  // Writes a file; no mode keeps the one it has.
  put(path, content, mode) {
    inside(path);
    const old = this.nodes.get(path);
    if (path === WORKSPACE || (old && !old.content)) {
      throw new PathError('is_a_directory', path, 'is a directory');
    }
    this.makeDirectory(path.slice(0, path.lastIndexOf('/')));
    this.nodes.set(path, { mode: mode ?? old?.mode ?? FILE_MODE, content });
  }

  // Removes whatever is at a path, with everything below it.
  remove(path) {
    inside(path);
    this.nodes.delete(path);
    for (const [below] of this.below(path)) this.nodes.delete(below);
  }

  // Everything below a directory; a parent always comes before its children.
  below(path) {
    return this.sorted().filter(([name]) => name.startsWith(`${path}/`));
  }

  sorted() {
    return [...this.nodes].sort(([a], [b]) => compare(a, b));
  }
}

// By code points, which is the order of the bytes. Plain comparison goes by UTF-16 units, which is not.
function compare(a, b) {
  const [left, right] = [[...a], [...b]];
  for (let at = 0; at < Math.min(left.length, right.length); at += 1) {
    const difference = left[at].codePointAt(0) - right[at].codePointAt(0);
    if (difference !== 0) return difference;
  }
  return left.length - right.length;
}

export function normal(path) {
  const names = [];
  for (const name of path.split('/')) {
    if (name === '..') names.pop();
    else if (name !== '' && name !== '.') names.push(name);
  }
  return `/${names.join('/')}`;
}

function inside(path) {
  if (path !== WORKSPACE && !path.startsWith(`${WORKSPACE}/`)) {
    throw new PathError('outside', path, `outside of ${WORKSPACE}`);
  }
}

// The sandbox of a lease. Throws `gone` when there is none.
export function load(leaseId) {
  const found = stored(() => state.get(leaseId));
  if (found === undefined) throw { tag: 'gone' };
  const sandbox = decode(found.value);
  sandbox.version = found.version;
  return sandbox;
}

// Writes the sandbox over the version it was read at.
export function save(leaseId, sandbox) {
  const value = encode(sandbox);
  if (value.length > SANDBOX_MAX) throw failed('sandbox_full', `a sandbox holds ${SANDBOX_MAX} bytes`);
  sandbox.version = stored(() => state.set(leaseId, value, sandbox.version, undefined));
}

// A sandbox is stored as records, each a line `kind mode length-of-path length-of-content`, then the path,
// then the content. Kinds: `w` the working directory, `d` a directory, `f` a file.

export function encode(sandbox) {
  const pieces = record('w', 0, sandbox.cwd, new Uint8Array());
  for (const [path, { mode, content }] of sandbox.sorted()) {
    pieces.push(...record(content ? 'f' : 'd', mode, path, content ?? new Uint8Array()));
  }
  return joined(pieces);
}

function record(kind, mode, path, content) {
  const name = bytes(path);
  return [bytes(`${kind} ${mode.toString(8)} ${name.length} ${content.length}\n`), name, content];
}

export function joined(pieces) {
  const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

function decode(value) {
  const sandbox = new Sandbox(WORKSPACE);
  const damaged = () => failed('state_damaged', 'the stored sandbox cannot be read; destroy the lease');
  let at = 0;
  while (at < value.length) {
    const end = value.indexOf(10, at);
    if (end < 0) throw damaged();
    const [kind, mode, nameLength, contentLength] = decoder.decode(value.subarray(at, end)).split(' ');
    const middle = end + 1 + Number(nameLength);
    at = middle + Number(contentLength);
    if (!(at <= value.length)) throw damaged();
    const path = decoder.decode(value.subarray(end + 1, middle));
    if (kind === 'w') sandbox.cwd = path;
    else {
      const content = kind === 'f' ? value.slice(middle, at) : undefined;
      sandbox.nodes.set(path, { mode: parseInt(mode, 8), content });
    }
  }
  return sandbox;
}

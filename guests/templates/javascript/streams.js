// Whole contents over streams.

import { failed, joined, payload } from './sandbox.js';

// Bytes of one write. `blocking-write-and-flush` takes 4096 at most; a prime below it shows in tests that
// nobody relies on round numbers.
export const CHUNK = 4093;
// Bytes of one read or splice: large enough that its own cost does not show.
const READ = 64n * 1024n;

// Thrown when nobody reads what is written.
export const BROKEN_PIPE = Symbol('broken pipe');

// Writes everything, and waits until it is taken.
export function write(stream, content) {
  for (let at = 0; at < content.length; at += CHUNK) {
    try {
      stream.blockingWriteAndFlush(content.subarray(at, at + CHUNK));
    } catch (thrown) {
      ended(thrown);
      throw BROKEN_PIPE;
    }
  }
}

// Reads to the end; undefined when there is more than `most`.
export function read(stream, most) {
  const pieces = [];
  let length = 0;
  for (;;) {
    let piece;
    try {
      piece = stream.blockingRead(READ);
    } catch (thrown) {
      ended(thrown);
      return joined(pieces);
    }
    pieces.push(piece);
    length += piece.length;
    if (length > most) return undefined;
  }
}

// Moves everything inside the host; no byte enters this instance.
export function splice(source, target) {
  try {
    for (;;) target.blockingSplice(source, READ);
  } catch (thrown) {
    ended(thrown);
  }
  try {
    target.blockingFlush();
  } catch (thrown) {
    ended(thrown);
  }
}

// Returns when the stream was closed; anything else is a fault.
function ended(thrown) {
  const error = payload(thrown);
  if (error.tag !== 'closed') throw failed('stream_failed', error.val.toDebugString());
}

// Gives a handle back at once instead of when it is collected: the host counts them, and waits for some.
export function dispose(handle) {
  handle[Symbol.dispose]?.();
}

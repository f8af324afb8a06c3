// The commands of the sandbox. A real provider would hand them to its back end instead.

import { subscribeDuration } from 'wasi:clocks/monotonic-clock@0.2.12';
import { PathError, SANDBOX_MAX, bytes, encode, save } from './sandbox.js';
import { BROKEN_PIPE, CHUNK, read, splice, write } from './streams.js';

// What a shell answers to a command it does not know, and to one that is used wrongly.
const NOT_FOUND = 127;
const MISUSED = 2;

const exited = (code) => ({ tag: 'exited', val: code });

export function run(command) {
  const known = Object.hasOwn(COMMANDS, command.request.argv[0]);
  try {
    return known ? COMMANDS[command.request.argv[0]](command) : complain(command, 'not found', NOT_FOUND);
  } catch (thrown) {
    // Nobody reads any more: a command would get this signal.
    if (thrown === BROKEN_PIPE) return { tag: 'signaled', val: 'SIGPIPE' };
    throw thrown;
  }
}

function complain({ request, err }, text, code) {
  write(err, bytes(`${request.argv[0]}: ${text}\n`));
  return exited(code);
}

const words = ({ request }) => request.argv.slice(1);

const COMMANDS = {
  echo(command) {
    write(command.out, bytes(`${words(command).join(' ')}\n`));
    return exited(0);
  },

  cat(command) {
    if (words(command).length === 0) {
      splice(command.input, command.out);
      return exited(0);
    }
    let code = 0;
    for (const word of words(command)) {
      const path = command.sandbox.resolve(word);
      const node = command.sandbox.nodes.get(path);
      if (node?.content) write(command.out, node.content);
      else {
        code = 1;
        complain(command, `${path}: ${node ? 'is a directory' : 'no such file'}`, code);
      }
    }
    return exited(code);
  },

  write(command) {
    const { sandbox, request } = command;
    if (words(command).length !== 1) return complain(command, 'give one path', MISUSED);
    const path = sandbox.resolve(words(command)[0]);
    const content = read(command.input, SANDBOX_MAX);
    try {
      if (content === undefined) throw new PathError('sandbox_full', path, 'no space left');
      sandbox.put(path, content, undefined);
      if (encode(sandbox).length > SANDBOX_MAX) throw new PathError('sandbox_full', path, 'no space left');
    } catch (thrown) {
      if (thrown instanceof PathError) return complain(command, thrown.text, 1);
      throw thrown;
    }
    save(request.lease.id, sandbox);
    return exited(0);
  },

  sleep(command) {
    const wanted = number(words(command));
    if (wanted === undefined) return complain(command, 'give milliseconds', MISUSED);
    const allowed = command.request.timeoutMs;
    const timedOut = allowed !== undefined && BigInt(wanted) > allowed;
    subscribeDuration((timedOut ? allowed : BigInt(wanted)) * 1_000_000n).block();
    return timedOut ? { tag: 'timed-out' } : exited(0);
  },

  exit(command) {
    const code = number(words(command));
    if (code === undefined || code > 255) return complain(command, 'give a code from 0 to 255', MISUSED);
    return exited(code);
  },

  env(command) {
    write(command.out, bytes(command.request.env.map(([name, value]) => `${name}=${value}\n`).join('')));
    return exited(0);
  },

  seq(command) {
    const last = number(words(command));
    if (last === undefined) return complain(command, 'give a number', MISUSED);
    let pending = '';
    for (let current = 1; current <= last; current += 1) {
      pending += `${current}\n`;
      if (pending.length >= CHUNK) {
        write(command.out, bytes(pending.slice(0, CHUNK)));
        pending = pending.slice(CHUNK);
      }
    }
    write(command.out, bytes(pending));
    return exited(0);
  },
};

// At most nine digits; more would not be a time or a count that anybody means.
function number(words) {
  return words.length === 1 && /^[0-9]{1,9}$/.test(words[0]) ? Number(words[0]) : undefined;
}

// A provider whose sandboxes are small trees in the host's store. One exported object for each interface.

import { now } from 'wasi:clocks/monotonic-clock@0.2.12';
import * as state from 'leasehold:host/state@0.1.0';
import { run } from './commands.js';
import {
  PathError, Sandbox, WORKSPACE, encode, failed, load, normal, ofState, payload, save, stored,
} from './sandbox.js';
import { give, guarded, take } from './transfer.js';

// Time that one write to the store may take.
const ACQUIRE_BUDGET_MS = 1000n;
// There is no account at a back end; this is the digest of an empty one.
const NO_ACCOUNT = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

const leaseOf = (id) => ({ id, metadata: '{"sandbox":"memory"}', expiresAtMs: undefined });
// The id follows from the creation name, so a second call finds what the first one made.
const leaseId = (creationName) => `memory-${creationName}`;

export const validateConfig = {
  validateConfig({ config }) {
    if (config.replace(/[ \t\r\n]/g, '') !== '{}') {
      throw { tag: 'invalid-config', val: [{ path: '', message: 'this provider takes no settings; write {}' }] };
    }
    return { normalized: undefined, warnings: [] };
  },
};

export const acquireLease = {
  acquireLease(ctx, request) {
    const started = now();
    const sandbox = new Sandbox(normal(request.requestedCwd ?? WORKSPACE));
    try {
      sandbox.makeDirectory(sandbox.cwd);
    } catch (thrown) {
      if (!(thrown instanceof PathError)) throw thrown;
      throw { error: thrown.asError(), diagnostic: undefined, cleanup: undefined };
    }
    const id = leaseId(request.creationName);
    try {
      state.set(id, encode(sandbox), 0n, undefined);
    } catch (thrown) {
      const error = payload(thrown);
      // Made by an earlier call of the same name: that one is adopted.
      if (error.tag !== 'conflict') throw acquireError(ofState(error), request, started);
    }
    return leaseOf(id);
  },
};

function acquireError(error, request, started) {
  const elapsedMs = (now() - started) / 1_000_000n;
  return {
    error,
    diagnostic: { phase: 'create', elapsedMs, budgetMs: ACQUIRE_BUDGET_MS, started: false },
    cleanup: {
      creationName: request.creationName,
      observedId: undefined,
      accountFingerprint: NO_ACCOUNT,
      labels: [['provider', 'memory']],
    },
  };
}

export const resumeLease = {
  resumeLease(ctx, { lease, requestedCwd }) {
    const sandbox = load(lease.id);
    if (requestedCwd !== undefined) enter(lease.id, sandbox, requestedCwd);
    return leaseOf(lease.id);
  },
};

export const releaseLease = {
  releaseLease(ctx, { lease, retention }) {
    if (retention === 'ephemeral') return remove(lease.id);
    const there = stored(() => state.get(lease.id)) !== undefined;
    return { leaseId: lease.id, state: there ? 'retained' : 'already-gone' };
  },
};

export const destroyLease = {
  destroyLease(ctx, target) {
    const leased = target.tag === 'lease';
    try {
      return remove(leased ? target.val.id : leaseId(target.val.creationName));
    } catch (error) {
      throw { error, cleanup: leased ? undefined : target.val };
    }
  },
};

export const realizeWorkspace = {
  realizeWorkspace(ctx, { lease, path }) {
    const sandbox = load(lease.id);
    return { cwd: enter(lease.id, sandbox, path ?? sandbox.cwd), metadata: undefined };
  },
};

export const execute = {
  execute(ctx, request, input, out, err) {
    if (request.argv.length === 0) throw failed('no_command', 'argv is empty');
    const sandbox = load(request.lease.id);
    sandbox.cwd = normal(request.cwd ?? sandbox.cwd);
    return { exit: run({ request, sandbox, input, out, err }), metadata: undefined };
  },
};

export const syncIn = {
  syncIn(ctx, lease, operations) {
    return operations.map(({ operationId, mappings, postUpload }) => {
      for (const { command } of postUpload) {
        throw failed('post_upload_unsupported', `there is no shell here to run \`${command}\``);
      }
      const [sandbox, moved] = [load(lease.id), { operationId, files: 0n, bytes: 0n }];
      for (const mapping of mappings) guarded(take, sandbox, mapping, moved);
      // Only now is anything kept: an operation is done completely or not at all.
      save(lease.id, sandbox);
      return moved;
    });
  },
};

export const syncOut = {
  syncOut(ctx, lease, operations) {
    return operations.map(({ operationId, mappings }) => {
      const [sandbox, moved] = [load(lease.id), { operationId, files: 0n, bytes: 0n }];
      for (const mapping of mappings) guarded(give, sandbox, mapping, moved);
      return moved;
    });
  },
};

// Makes a directory and the working directory of it.
function enter(id, sandbox, path) {
  sandbox.cwd = normal(path);
  try {
    sandbox.makeDirectory(sandbox.cwd);
  } catch (thrown) {
    throw thrown instanceof PathError ? thrown.asError() : thrown;
  }
  save(id, sandbox);
  return sandbox.cwd;
}

function remove(id) {
  const there = stored(() => state.remove(id, undefined));
  return { leaseId: id, state: there ? 'destroyed' : 'already-gone' };
}

// Usage: node build.mjs SOURCE WIT WORLD OUT
import { componentize } from '@bytecodealliance/componentize-js';
import { writeFile } from 'node:fs/promises';

const [sourcePath, witPath, worldName, out] = process.argv.slice(2);
// Left on, the engine would import `wasi:http`, `wasi:cli` and more for itself, and a host would refuse that.
const disableFeatures = ['clocks', 'http', 'random', 'stdio', 'fetch-event'];
const { component } = await componentize({ sourcePath, witPath, worldName, disableFeatures });
await writeFile(out, component);

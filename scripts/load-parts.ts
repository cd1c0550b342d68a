// dist/main.js of a package: runs the program, which build.ts made into scripts ("parts"). Node's compile cache keeps
// what was compiled before a module ran, hence none of its functions: V8 compiles each of them with
// its first call. A script can be asked later; what the first seconds needed is kept for the next start.

import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire, getCompileCacheDir } from 'node:module';
import { join } from 'node:path';
import { constants, Script } from 'node:vm';
import { crc32 } from 'node:zlib';

type Module = { exports: Readonly<Record<string, unknown>> };
/** @see HEAD in build.ts */
type PartFunction = (
  module: Module,
  exports: Module['exports'],
  require: (id: string) => unknown,
  load: (id: string) => Promise<unknown>,
  outside: (id: string) => unknown,
  meta: ImportMeta,
) => void;
/** What this process compiled. */
type Compiled = { readonly script: Script; readonly sourceSum: number };

const PROGRAM = './program.js';
/** A gateway is killed more often than it leaves. What it needs later only takes memory at a start. */
const KEPT_AFTER_MS = 5000;
/** Before what is kept: checksums of the source and of the rest. */
const HEADER_BYTES = 8;

/** Of this version and these flags of Node. Undefined: switched off, or not writable. */
const cache = getCompileCacheDir();
/** A gateway needs other functions than a command. */
const use = process.argv[2] === 'gateway' ? 'gateway' : 'command';
const outside = createRequire(import.meta.url);
const modules = new Map<string, Module>();
const fresh = new Map<string, Compiled>();

const keptIn = (folder: string, file: string) =>
  join(folder, `${crc32(`${use} ${file}`).toString(16)}.script`);

function readKept(file: string, sourceSum: number): Buffer<ArrayBuffer> | undefined {
  if (cache === undefined) return undefined;
  try {
    const whole = readFileSync(keptIn(cache, file));
    const data = whole.subarray(HEADER_BYTES);
    const isIntact = whole.readUInt32LE(0) === sourceSum && whole.readUInt32LE(4) === crc32(data);
    return isIntact ? data : undefined;
  } catch {
    return undefined;
  }
}

function keepFresh(folder: string): void {
  for (const [file, { script, sourceSum }] of fresh) {
    const data = script.createCachedData();
    const header = Buffer.alloc(HEADER_BYTES);
    header.writeUInt32LE(sourceSum, 0);
    header.writeUInt32LE(crc32(data), 4);
    const to = keptIn(folder, file);
    try {
      writeFileSync(`${to}.${process.pid}`, Buffer.concat([header, data]), { mode: 0o600 });
      renameSync(`${to}.${process.pid}`, to);
    } catch {
      // The next start compiles again.
    }
  }
  fresh.clear();
}

function keepLater(file: string, compiled: Compiled): void {
  if (cache === undefined) return;
  fresh.set(file, compiled);
  if (use === 'gateway' && fresh.size === 1) {
    setTimeout(() => keepFresh(cache), KEPT_AFTER_MS).unref();
  }
}

function compile(file: string): PartFunction {
  // Plain ASCII: a string of bytes outside the heap.
  const source = readFileSync(file);
  const sourceSum = crc32(source);
  const cachedData = readKept(file, sourceSum);
  const script = new Script(source.toString('latin1'), {
    filename: file,
    ...(cachedData === undefined ? {} : { cachedData }),
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  });
  const isKept = cachedData !== undefined && script.cachedDataRejected !== true;
  if (!isKept) keepLater(file, { script, sourceSum });
  for (const read of [source, cachedData]) if (read !== undefined) free(read);
  return script.runInThisContext();
}

/** Garbage collection would do it much later. A small buffer shares its memory with others. */
function free({ buffer }: Buffer<ArrayBuffer>): void {
  if (buffer.byteLength > Buffer.poolSize) buffer.transfer(0);
}

function run(id: string): Module {
  const known = modules.get(id);
  if (known !== undefined) return known;
  const module: Module = { exports: {} };
  modules.set(id, module);
  try {
    const part = compile(join(import.meta.dirname, id));
    part(module, module.exports, require, load, outside, import.meta);
    return module;
  } catch (error) {
    modules.delete(id);
    throw error;
  }
}

/**
 * A chunk of the program, or a module of Node. Unlike Node's own `require` it leaves unused parts of
 * a module unloaded, such as the fetch of `node:http`.
 */
function require(id: string): unknown {
  if (id.startsWith('./')) return modules.get(PROGRAM)?.exports[id] ?? run(id).exports;
  const found = process.getBuiltinModule(id);
  if (found !== undefined) return found;
  throw Object.assign(new Error(`Cannot find module '${id}'`), { code: 'MODULE_NOT_FOUND' });
}

async function load(id: string): Promise<unknown> {
  return require(id);
}

if (cache !== undefined && use === 'command') process.once('exit', () => keepFresh(cache));
run(PROGRAM);

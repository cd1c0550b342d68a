// The origin of the files in the workspace, by their content: what the agent wrote for a person
// while no untrusted content was in view, and what a tool or a program wrote while there was some.
// A text is identified by its hash. Under rights that trust files everything is the owner's except
// what is recorded as untrusted; under others everything is untrusted except what is recorded as
// written by the agent itself.

import { createHash, hash, randomUUID } from 'node:crypto';
import { createReadStream, type Stats } from 'node:fs';
import { lstat, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { isOwnName, leadsToExtracts } from '../../agent/rules/taint.ts';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import { port } from '../../kernel/feature.ts';
import { createLanes } from '../../lib/async.ts';
import type { ToolContext } from '../tool.ts';

type Turn = Pick<ToolContext, 'person' | 'isTainted' | 'clock' | 'rights' | 'workspace'>;

export type Provenance = ReturnType<typeof createProvenance>;

export const PROVENANCE = port<Provenance>('provenance');

export const PROVENANCE_SCOPE = 'own-files';
const TEXT = 'text:';
const NAME = 'name:';
/** Of a content; the value is its size. Never removed by age: it would become the owner's. */
const UNTRUSTED = 'untrusted:';
const UNTRUSTED_NAME = 'untrusted-name:';
/** A run that may write untrusted files; the value is its start by the clock of the disk. */
const RUN = 'run:';
/** The workspace had too many entries to examine: nothing in it is trusted any more. */
const ALL = `${UNTRUSTED}*`;
const KEPT_MS = 365 * 86_400_000;
const MAX_ENTRIES = 100_000;
/** The clock of a disk is coarse. */
const STEP_MS = 20;

export function createProvenance(state: KeyValueStore, workspaceNow: () => string) {
  const lanes = createLanes();
  let ready: Promise<void> | undefined;
  const textKey = (content: string | Uint8Array, { person }: Turn) =>
    `${TEXT}${person.notes}:${hashOf(content)}`;
  // A name may contain text that is erased one day.
  const nameKey = (path: string, { person }: Turn) => `${NAME}${person.notes}:${hashOf(path)}`;
  const has = async (key: string) => (await state.get(key)) !== undefined;
  const isUntrusted = async (hash: string) => (await has(UNTRUSTED + hash)) || has(ALL);

  async function wroteOwn(path: string, content: string, turn: Turn): Promise<void> {
    const keys = [textKey(content, turn), ...pathsTo(path).map((each) => nameKey(each, turn))];
    await state.setMany(keys.map((key) => ({ key, value: '' })));
    for (const prefix of [TEXT, NAME]) await state.expire(prefix, turn.clock.now() - KEPT_MS);
  }

  /** Whether a file with untrusted content is in the workspace, wherever it was moved. */
  async function holdsUntrusted(workspace: string): Promise<boolean> {
    if (await holdsUntrustedExtracts(workspace)) return true;
    const rows = await state.list(UNTRUSTED);
    if (rows.length === 0) return false;
    if (await has(ALL)) return true;
    const sizes = new Set(rows.map(({ value }) => value));
    const found = await entriesOf(workspace);
    if (found === undefined) return true;
    for (const { path, info } of found) {
      if (!info.isFile() || !sizes.has(`${info.size}`)) continue;
      const hash = await hashOfFile(path);
      if (hash === undefined || (await has(UNTRUSTED + hash))) return true;
    }
    return false;
  }

  /** Records what changed since then, by the clock of the disk. */
  async function recordChanges(workspace: string, since: number): Promise<void> {
    const found = await entriesOf(workspace);
    if (found === undefined) return state.set(ALL, '');
    const changed = found.filter(({ info }) =>
      info.isDirectory() ? (info.birthtimeMs || info.ctimeMs) >= since : info.ctimeMs >= since,
    );
    for (const { path, info } of changed) {
      const hash = info.isFile() ? await hashOfFile(path) : undefined;
      const name = { key: UNTRUSTED_NAME + hashOf(relative(workspace, path)), value: '' };
      const content = { key: UNTRUSTED + hash, value: `${info.size}` };
      await state.setMany(hash === undefined ? [name] : [name, content]);
    }
  }

  /** Records everything that unfinished runs of an earlier process could have changed. */
  async function takeUp(): Promise<void> {
    for (const { key, value } of await state.list(RUN)) {
      await recordChanges(workspaceNow(), Number(value));
      await state.delete(key);
    }
  }

  /** Completes before the first query of this process. */
  const taken = () => {
    ready ??= takeUp();
    return ready;
  };

  return {
    /** Call before the text is written, so that no untrusted content is on the disk unrecorded. */
    async writes(path: string, content: string, turn: Turn, wasUntrusted = false): Promise<void> {
      if (!turn.isTainted && !wasUntrusted) return;
      const rows = [{ key: UNTRUSTED + hashOf(content), value: `${Buffer.byteLength(content)}` }];
      for (const each of pathsTo(path)) {
        // Existing entries had their names before.
        const info = await lstat(join(turn.workspace, each)).catch(() => undefined);
        if (info === undefined) rows.push({ key: UNTRUSTED_NAME + hashOf(each), value: '' });
      }
      await state.setMany(rows);
    },
    /** Call after writing: records text that the agent wrote with nothing untrusted in view. */
    async wrote(path: string, content: string, turn: Turn): Promise<void> {
      if (!turn.isTainted) await wroteOwn(path, content, turn);
    },
    isUntrusted: (content: string | Uint8Array) => isUntrusted(hashOf(content)),
    /** Whether this content is free of untrusted content. */
    async isOwn(path: string, content: string | Uint8Array, turn: Turn): Promise<boolean> {
      if (leadsToExtracts(path)) return false;
      await taken();
      if (turn.rights.trustsFiles === true) return !(await isUntrusted(hashOf(content)));
      return has(textKey(content, turn));
    },
    /** The same for the names in this folder. */
    async named(folder: string, names: readonly string[], turn: Turn): Promise<boolean> {
      const above = folder === '.' ? [] : plainNames(folder);
      if (above === undefined) return false;
      await taken();
      if (turn.rights.trustsFiles === true && (leadsToExtracts(folder) || (await has(ALL))))
        return false;
      for (const name of names) {
        const path = [...above, name].join('/');
        if (turn.rights.trustsFiles === true) {
          if (await has(UNTRUSTED_NAME + hashOf(path))) return false;
        } else if (!isOwnName(above, name) && !(await has(nameKey(path, turn)))) return false;
      }
      return true;
    },
    /**
     * Runs what may write any file of the workspace, and records its changes if untrusted content
     * was within its reach. `isOpen`: it reaches more than the workspace. `own` is called if its
     * output contains no untrusted content.
     */
    async running<T>(
      work: () => Promise<T>,
      {
        workspace,
        isTainted,
        rights,
        own,
      }: Pick<ToolContext, 'workspace' | 'isTainted' | 'rights' | 'own'>,
      isOpen: boolean,
    ): Promise<T> {
      await taken();
      const key = RUN + randomUUID();
      const since = await diskTime();
      const isReached = isOpen || isTainted || (await holdsUntrusted(workspace));
      // After a kill the row remains, and the next process records the changes.
      await state.set(key, `${since}`);
      try {
        return await work();
      } finally {
        // Another conversation may have written such a file meanwhile.
        const mayHold = isReached || (await holdsUntrusted(workspace));
        if (mayHold) await lanes.run('record', () => recordChanges(workspace, since));
        else if (rights.trustsFiles === true) own?.();
        await state.delete(key);
      }
    },
  };
}

const hashOf = (content: string | Uint8Array) => hash('sha256', content);

async function hashOfFile(path: string): Promise<string | undefined> {
  const hash = createHash('sha256');
  try {
    await pipeline(createReadStream(path), hash);
  } catch {
    return undefined;
  }
  return hash.digest('hex');
}

/** Extracts of conversations whose head does not say that they contain nothing untrusted. */
async function holdsUntrustedExtracts(workspace: string): Promise<boolean> {
  const folder = join(workspace, 'memory', 'sessions');
  for (const name of await readdir(folder).catch(() => [])) {
    const text = await readFile(join(folder, name), 'utf8').catch(() => '');
    const [, head] = /^---\n([\s\S]*?)\n---/.exec(text) ?? [];
    if (head === undefined || /^foreign: true$/m.test(head)) return true;
  }
  return false;
}

type Found = { readonly path: string; readonly info: Stats };

/** Files and folders, links not followed; undefined if there are too many. */
async function entriesOf(folder: string): Promise<readonly Found[] | undefined> {
  const found: Found[] = [];
  const open = [folder];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const names = await readdir(next).catch(() => []);
    if (found.length + names.length > MAX_ENTRIES) return undefined;
    for (const name of names) {
      const path = join(next, name);
      const info = await lstat(path).catch(() => undefined);
      if (info === undefined) continue;
      found.push({ path, info });
      if (info.isDirectory()) open.push(path);
    }
  }
  return found;
}

/** The current time of the disk, which may differ from the process's clock. */
async function diskTime(): Promise<number> {
  const probe = await mkdtemp(join(tmpdir(), 'nanobot-time-'));
  const { ctimeMs } = await stat(probe);
  await rm(probe, { recursive: true, force: true });
  return ctimeMs - STEP_MS;
}

/** Undefined if the path contains empty names, `.` or `..`. */
function plainNames(path: string): readonly string[] | undefined {
  const names = path
    .replace(/^(?:\.\/)+/, '')
    .replace(/\/+$/, '')
    .split('/');
  return names.some((name) => name === '' || name === '.' || name === '..') ? undefined : names;
}

/** The path and all folders above it; empty if it is not plain. */
function pathsTo(path: string): readonly string[] {
  const names = plainNames(path) ?? [];
  return names.map((_, index) => names.slice(0, index + 1).join('/'));
}

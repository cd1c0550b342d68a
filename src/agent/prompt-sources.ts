// Reads what the system prompt is made of. A file is read again only when its stamp changed, so a
// turn costs a few stat calls however large the workspace grows. Links are not followed: the agent
// writes into this folder, and a link could show it files from outside.

import { constants } from 'node:fs';
import { type FileHandle, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { OWNER_FILES } from '../core/notes.ts';
import { MEMORY_FILE, type PromptFile, SKILLS_FOLDER, WORKSPACE_FILES } from '../core/prompt.ts';
import { skillLine } from '../core/skill.ts';
import { fileStamp } from '../lib/file-stamp.ts';

export type PromptMaterial = {
  readonly files: readonly PromptFile[];
  readonly channelContext?: PromptFile;
  readonly memory: string;
  /** Where it is kept, below the workspace. */
  readonly memoryFile: string;
  /** One line per skill. */
  readonly skills: string;
};

export interface PromptSources {
  /** For a turn of whoever has these notes. */
  read(channel: string, notes: string): Promise<PromptMaterial>;
}

export type PromptSourcesDeps = {
  /** Absolute path; read at each turn. */
  workspace(): string;
  /** Long-term memory for the prompt; empty when there is none. */
  memoryText(notes: string): Promise<string>;
};

/** Far above every prompt budget; a larger file is read up to here. */
const MAX_FILE_BYTES = 262_144;
const MAX_SKILLS = 200;
/** The fixed files, one context file per channel, and the skills. */
const MAX_CACHED_FILES = 64 + MAX_SKILLS;

type Cached = { readonly stamp: string; readonly text: string };

export function createPromptSources(deps: PromptSourcesDeps): PromptSources {
  const cache = new Map<string, Cached>();

  async function readFile(name: string): Promise<PromptFile | undefined> {
    const path = join(deps.workspace(), name);
    const stamp = await fileStamp(path);
    if (stamp === undefined) return undefined;
    const cached = cache.get(path);
    if (cached?.stamp === stamp) return { name, text: cached.text };
    const text = await readRegular(path);
    if (text === undefined) return undefined;
    if (cache.size >= MAX_CACHED_FILES) cache.clear();
    cache.set(path, { stamp, text });
    return { name, text };
  }

  /** `skills/<name>/SKILL.md`, in the order of their names. */
  async function readSkills(): Promise<string> {
    const folder = join(deps.workspace(), SKILLS_FOLDER);
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
    const paths = entries
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => `${SKILLS_FOLDER}/${name}/SKILL.md`)
      .sort()
      .slice(0, MAX_SKILLS);
    const found = await Promise.all(paths.map(readFile));
    const lines = found.flatMap((file) =>
      file === undefined ? [] : (skillLine(file.name, file.text) ?? []),
    );
    return lines.join('\n');
  }

  return {
    async read(channel, notes) {
      const names = WORKSPACE_FILES.filter((name) => notes === '' || !OWNER_FILES.includes(name));
      const [found, ownContext, memory, skills] = await Promise.all([
        Promise.all(names.map(readFile)),
        readFile(`CONTEXT-${channel}.md`),
        deps.memoryText(notes),
        readSkills(),
      ]);
      const channelContext = ownContext ?? (await readFile('CONTEXT.md'));
      return {
        files: found.filter((file) => file !== undefined),
        memory,
        memoryFile: notes + MEMORY_FILE,
        skills,
        ...(channelContext === undefined ? {} : { channelContext }),
      };
    },
  };
}

async function readRegular(path: string): Promise<string | undefined> {
  let file: FileHandle;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    return undefined;
  }
  try {
    if (!(await file.stat()).isFile()) return undefined;
    const buffer = Buffer.alloc(MAX_FILE_BYTES);
    const { bytesRead } = await file.read(buffer, 0, MAX_FILE_BYTES, 0);
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await file.close();
  }
}

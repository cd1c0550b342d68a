// Reads what the system prompt is made of. A file is read again only when its stamp changed, so a
// turn costs a few stat calls however large the workspace grows. Links are not followed: the agent
// writes into this folder, and a link could show it files from outside.

import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { type PromptFile, WORKSPACE_FILES } from '../core/prompt.ts';
import { fileStamp } from '../lib/file-stamp.ts';

export type PromptMaterial = {
  readonly files: readonly PromptFile[];
  readonly channelContext?: PromptFile;
  readonly memory: string;
};

export interface PromptSources {
  read(channel: string): Promise<PromptMaterial>;
}

export type PromptSourcesDeps = {
  /** Absolute path; read at each turn. */
  workspace(): string;
  /** Long-term memory for the prompt; empty when there is none. */
  memoryText(): Promise<string>;
};

/** Far above every prompt budget; a larger file is read up to here. */
const MAX_FILE_BYTES = 262_144;
/** The fixed files and one context file per channel. */
const MAX_CACHED_FILES = 64;

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

  return {
    async read(channel) {
      const [found, ownContext, memory] = await Promise.all([
        Promise.all(WORKSPACE_FILES.map(readFile)),
        readFile(`CONTEXT-${channel}.md`),
        deps.memoryText(),
      ]);
      const channelContext = ownContext ?? (await readFile('CONTEXT.md'));
      return {
        files: found.filter((file) => file !== undefined),
        memory,
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

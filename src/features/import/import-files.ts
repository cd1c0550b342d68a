// Files of another program's workspace: who the agent is, whom it works for, what it remembers. Files
// that tell an agent how to work are laid aside, since they describe the tools of the other program.

import { existsSync } from 'node:fs';
import { lstat, mkdir, readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { WORKSPACE_TEMPLATE } from '../../kernel/config/files/package-files.ts';
import { writeAtomic } from '../../lib/files/files.ts';

export type FileStep = {
  /** Below our workspace. */
  readonly path: string;
  readonly how: 'new' | 'replaces ours, which was never changed' | 'added to ours' | 'laid aside';
  readonly content: string;
};

export type FilePlan = {
  readonly steps: readonly FileStep[];
  readonly left: readonly string[];
};

const MAX_BYTES = 1_000_000;
const MEMORY = 'memory/MEMORY.md';
const ASIDE = 'imported';
/** Ours where nobody wrote in them yet. */
const PERSONAL = ['SOUL.md', 'IDENTITY.md', 'USER.md'];
/** Full of the other program's tools, or done without being asked again. */
const FOR_READING = ['AGENTS.md', 'TOOLS.md', 'HEARTBEAT.md', 'memory/HISTORY.md'];
const MEMORIES = ['MEMORY.md', 'memory/MEMORY.md'];
const READ_THEM =
  'These files count as your own words from then on. Read them: what others said to the other program may stand in them.';
const DAY = /^\d{4}-\d\d-\d\d\.md$/;

/** What would be done; nothing is written. The same again once it is done: nothing. */
export async function planFiles(from: string, to: string, program: string): Promise<FilePlan> {
  const steps = [
    ...(await personal(from, to)),
    ...(await memory(from, to, program)),
    ...(await days(from, to)),
    ...(await aside(from, to, FOR_READING)),
  ];
  const isTrusted = steps.some(({ how }) => how !== 'laid aside');
  const left = [...(await unreadable(from)), ...(await skills(from))];
  return { steps, left: [...(isTrusted ? [READ_THEM] : []), ...left] };
}

export async function carryOut(to: string, steps: readonly FileStep[]): Promise<void> {
  for (const { path, content } of steps) {
    const target = join(to, path);
    await mkdir(dirname(target), { recursive: true, mode: 0o700 });
    await writeAtomic(target, content);
  }
}

async function personal(from: string, to: string): Promise<readonly FileStep[]> {
  const steps = await Promise.all(
    PERSONAL.map(async (path): Promise<readonly FileStep[]> => {
      const [theirs, ours] = [await textOf(join(from, path)), await ownText(join(to, path))];
      if (theirs === undefined || theirs === ours) return [];
      if (ours === undefined) return [{ path, how: 'new', content: theirs }];
      const isUntouched = ours === (await ownText(join(WORKSPACE_TEMPLATE, path)));
      if (!isUntouched) return aside(from, to, [path]);
      return [{ path, how: 'replaces ours, which was never changed', content: theirs }];
    }),
  );
  return steps.flat();
}

async function memory(from: string, to: string, program: string): Promise<readonly FileStep[]> {
  const found = await Promise.all(MEMORIES.map((path) => textOf(join(from, path))));
  const theirs = found.flatMap((text) => (text === undefined ? [] : [text.trim()])).join('\n\n');
  const ours = (await ownText(join(to, MEMORY))) ?? '';
  if (theirs === '' || ours.includes(theirs)) return [];
  const isUntouched = ours === ((await ownText(join(WORKSPACE_TEMPLATE, MEMORY))) ?? '');
  if (isUntouched || ours.trim() === '') {
    const how = ours === '' ? 'new' : 'replaces ours, which was never changed';
    return [{ path: MEMORY, how, content: `${theirs}\n` }];
  }
  const content = `${ours.trimEnd()}\n\n## From ${program}\n\n${theirs}\n`;
  return [{ path: MEMORY, how: 'added to ours', content }];
}

async function days(from: string, to: string): Promise<readonly FileStep[]> {
  const names = await readdir(join(from, 'memory')).catch((): string[] => []);
  const steps = await Promise.all(
    names
      .filter((name) => DAY.test(name))
      .sort()
      .map(async (name): Promise<readonly FileStep[]> => {
        const path = `memory/${name}`;
        const theirs = await textOf(join(from, path));
        const ours = await ownText(join(to, path));
        if (theirs === undefined || ours?.includes(theirs.trim()) === true) return [];
        if (ours === undefined) return [{ path, how: 'new', content: theirs }];
        return [{ path, how: 'added to ours', content: `${ours.trimEnd()}\n\n${theirs.trim()}\n` }];
      }),
  );
  return steps.flat();
}

async function aside(
  from: string,
  to: string,
  paths: readonly string[],
): Promise<readonly FileStep[]> {
  const steps = await Promise.all(
    paths.map(async (path): Promise<readonly FileStep[]> => {
      const theirs = await textOf(join(from, path));
      const target = `${ASIDE}/${path}`;
      if (theirs === undefined || theirs === (await ownText(join(to, target)))) return [];
      return [{ path: target, how: 'laid aside', content: theirs }];
    }),
  );
  return steps.flat();
}

/** Whoever wrote a skill tells the agent what to do: each is shown before it is added. */
async function skills(from: string): Promise<readonly string[]> {
  const folder = join(from, 'skills');
  const names = await readdir(folder).catch((): string[] => []);
  return names
    .filter((name) => existsSync(join(folder, name, 'SKILL.md')))
    .sort()
    .map(
      (name) => `Skill ${name}: look at it and add it: nanobot skills add ${join(folder, name)}`,
    );
}

/** Plain files of a sensible size alone; links may lead anywhere. One that is not read is named apart. */
async function textOf(path: string): Promise<string | undefined> {
  const found = await lstat(path).catch(() => undefined);
  if (found === undefined || !found.isFile() || found.size > MAX_BYTES) return undefined;
  const text = await readFile(path, 'utf8').catch(() => '');
  return text.trim() === '' ? undefined : text;
}

/** Of ours, which is never overwritten unread. */
async function ownText(path: string): Promise<string | undefined> {
  if (!existsSync(path)) return undefined;
  const text = await readFile(path, 'utf8');
  return text.trim() === '' ? undefined : text;
}

/** What of it is wanted and cannot be taken over, and why. */
async function unreadable(from: string): Promise<readonly string[]> {
  const days = await readdir(join(from, 'memory')).catch((): string[] => []);
  const dated = days.filter((name) => DAY.test(name)).map((name) => `memory/${name}`);
  const wanted = [...new Set([...PERSONAL, ...MEMORIES, ...FOR_READING, ...dated])];
  const found = await Promise.all(wanted.map((path) => problemOf(join(from, path))));
  return found.flatMap((problem) => problem ?? []);
}

async function problemOf(path: string): Promise<string | undefined> {
  const found = await lstat(path).catch(() => undefined);
  if (found === undefined || found.isDirectory()) return undefined;
  const stays = 'stays where it is: copy it by hand if you want it.';
  if (!found.isFile()) return `${path} is no plain file and ${stays}`;
  if (found.size > MAX_BYTES) return `${path} is larger than 1 MB and ${stays}`;
  return readFile(path).then(
    () => undefined,
    () => `${path} cannot be read and ${stays}`,
  );
}

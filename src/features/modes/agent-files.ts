// The declared specialists and what they are told: those that come with the program, and a person's own in
// the home, which count before them. Read anew for each turn, so that a change counts from the next one
// on. Links are not followed; a file that cannot be used says why.

import type { Home } from '../../kernel/config/files/home.ts';
import { SHIPPED_AGENTS } from '../../kernel/config/files/package-files.ts';
import { createGuardedFiles, type GuardedFiles } from '../../lib/files/guarded-files.ts';
import { GuardedFileError } from '../../lib/files/guarded-path.ts';
import { parseYaml, YamlError } from '../../lib/yaml.ts';
import {
  AGENT_ENDINGS,
  AGENTS_FOLDER,
  type AgentFile,
  type DeclaredAgent,
  PROMPTS_FOLDER,
  type ReadAgent,
  readAgentFile,
} from './rules/declared-agent.ts';

export type AgentRoster = {
  /** Those switched on, by name; also the broken ones. */
  readonly agents: readonly ReadAgent<DeclaredAgent>[];
  /** Orders of the supervisor, and of who writes the answer. */
  readonly supervisor: string;
  readonly answer: string;
  /** Of the orders of these two. */
  readonly problems: readonly string[];
};

export type AgentFiles = { roster(): Promise<AgentRoster> };

type Found = { readonly text: string } | { readonly problem: string };

const MAX_FILES = 200;
const MAX_BYTES = 65_536;
const MAX_PROMPT_CHARS = 20_000;

/** `folders`: absolute paths, each with agents/ and prompts/; what a later one holds counts first. */
export function createAgentFiles(files: GuardedFiles, folders: readonly string[]): AgentFiles {
  const newestFirst = folders.toReversed();

  /** Names in one of the folders, without their ending. */
  async function namesIn(folder: string): Promise<readonly string[]> {
    try {
      const { entries } = await files.list(folder, AGENTS_FOLDER, { maxEntries: MAX_FILES });
      return AGENT_ENDINGS.flatMap((ending) =>
        entries
          .filter(({ name, kind }) => kind === 'file' && name.endsWith(ending))
          .map(({ name }) => name.slice(0, -ending.length)),
      );
    } catch (error) {
      if (error instanceof GuardedFileError) return [];
      throw error;
    }
  }

  /** Undefined where it is not there; a problem where it cannot be used. */
  async function textIn(folder: string, path: string): Promise<Found | undefined> {
    try {
      const bytes = await files.read(folder, path, { maxBytes: MAX_BYTES });
      return { text: bytes.toString('utf8') };
    } catch (error) {
      if (!(error instanceof GuardedFileError)) throw error;
      return error.reason === 'not_found' ? undefined : { problem: `${path}: ${error.message}` };
    }
  }

  async function newest(path: string): Promise<Found> {
    for (const folder of newestFirst) {
      const found = await textIn(folder, path);
      if (found !== undefined) return found;
    }
    return { problem: `${path}: it is missing; write what is to be told there` };
  }

  async function instructionsAt(prompt: string): Promise<Found> {
    const path = `${PROMPTS_FOLDER}/${prompt}`;
    const found = await newest(path);
    if ('problem' in found) return found;
    const { length } = found.text.trim();
    if (length > 0 && length <= MAX_PROMPT_CHARS) return { text: found.text.trim() };
    return { problem: `${path}: ${length} characters; write 1 to ${MAX_PROMPT_CHARS}` };
  }

  async function agentIn(folder: string, name: string): Promise<ReadAgent<AgentFile>> {
    const broken = (problem: string) => ({ kind: 'broken', name, problem }) as const;
    const [first, second] = AGENT_ENDINGS.map((ending) => `${AGENTS_FOLDER}/${name}${ending}`);
    const own = first === undefined ? undefined : await textIn(folder, first);
    const path = (own === undefined ? second : first) ?? name;
    const found = own ?? (await textIn(folder, path));
    if (found === undefined) return broken(`${path}: it was taken away`);
    if ('problem' in found) return broken(found.problem);
    try {
      const read = readAgentFile(await parseYaml(found.text), name);
      if (read.kind === 'valid') return read;
      const { problem, more = [] } = read;
      return { ...broken(`${path}: ${problem}`), more: more.map((each) => `${path}: ${each}`) };
    } catch (error) {
      if (error instanceof YamlError) return broken(`${path}: ${error.message}`);
      throw error;
    }
  }

  async function declared(name: string, folder: string) {
    const read = await agentIn(folder, name);
    if (read.kind === 'broken') return [read];
    const { enabled, prompt, ...rest } = read.value;
    if (!enabled) return [];
    const told = await instructionsAt(prompt);
    if ('problem' in told) return [{ kind: 'broken', name, problem: told.problem } as const];
    return [{ kind: 'valid', value: { ...rest, instructions: told.text } } as const];
  }

  return {
    async roster() {
      const placed = new Map<string, string>();
      for (const folder of folders) {
        for (const name of await namesIn(folder)) placed.set(name, folder);
      }
      const sorted = [...placed].sort(([one], [other]) => (one < other ? -1 : 1));
      const agents = await Promise.all(sorted.map(([name, folder]) => declared(name, folder)));
      const [supervisor, answer] = await Promise.all([
        instructionsAt('supervisor.md'),
        instructionsAt('answer.md'),
      ]);
      const problems = [supervisor, answer].flatMap((each) =>
        'problem' in each ? [each.problem] : [],
      );
      const textOf = (each: Found) => ('text' in each ? each.text : '');
      const orders = { supervisor: textOf(supervisor), answer: textOf(answer) };
      return { agents: agents.flat(), ...orders, problems };
    },
  };
}

// The declared specialists of a home: those that come with the program, and the home's own.

export const openAgentFiles = ({ agents }: Pick<Home, 'agents'>): AgentFiles =>
  createAgentFiles(createGuardedFiles(), [SHIPPED_AGENTS, agents]);

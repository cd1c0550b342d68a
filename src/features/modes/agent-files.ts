// Loads the declared specialists and their prompts: those shipped with the program, overridden by
// those in the home. Read for each turn, so that a change applies from the next turn.

import type { Home } from '../../kernel/config/files/home.ts';
import { SHIPPED_AGENTS } from '../../kernel/config/files/home.ts';
import { declaredPaths, MAX_DECLARED_BYTES, readWithPath } from '../../lib/files/declared-files.ts';
import { createGuardedFiles, type GuardedFiles } from '../../lib/files/guarded-files.ts';
import { GuardedFileError } from '../../lib/files/guarded-path.ts';
import { broken, type ReadFile } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import {
  AGENTS_FOLDER,
  type DeclaredAgent,
  PROMPTS_FOLDER,
  readAgentFile,
} from './rules/declared-agent.ts';

export type AgentRoster = {
  /** The enabled specialists by name, including invalid files. */
  readonly agents: readonly ReadFile<DeclaredAgent>[];
  /** The prompts of the supervisor and of the model that writes the answer. */
  readonly supervisor: string;
  readonly answer: string;
  /** Problems of these two prompts. */
  readonly problems: readonly string[];
};

export type AgentFiles = { roster(): Promise<AgentRoster> };

type Prompt = { readonly text: string; readonly problem?: string };

const MAX_PROMPT_CHARS = 20_000;

/**
 * `folders`: absolute paths, each with agents/ and prompts/; a later folder overrides earlier ones.
 */
export function createAgentFiles(files: GuardedFiles, folders: readonly string[]): AgentFiles {
  async function promptAt(prompt: string): Promise<Prompt> {
    const path = `${PROMPTS_FOLDER}/${prompt}`;
    for (const folder of folders.toReversed()) {
      try {
        const bytes = await files.read(folder, path, { maxBytes: MAX_DECLARED_BYTES });
        const text = bytes.toString('utf8').trim();
        if (text.length > 0 && text.length <= MAX_PROMPT_CHARS) return { text };
        const problem = t`${path}: ${text.length} characters; write 1 to ${MAX_PROMPT_CHARS}`;
        return { text: '', problem };
      } catch (error) {
        if (!(error instanceof GuardedFileError)) throw error;
        if (error.reason !== 'not_found') return { text: '', problem: `${path}: ${error.message}` };
      }
    }
    return { text: '', problem: t`${path}: it is missing; write what is to be told there` };
  }

  async function declared(
    name: string,
    root: string,
    path: string,
  ): Promise<readonly ReadFile<DeclaredAgent>[]> {
    const read = await readWithPath(files, { root, path, name }, readAgentFile);
    if (read.kind === 'broken') return [read];
    const { enabled, prompt, ...rest } = read.value;
    if (!enabled) return [];
    const { text: instructions, problem } = await promptAt(prompt);
    if (problem !== undefined) return [broken(name, problem)];
    return [{ kind: 'valid', value: { ...rest, instructions } }];
  }

  return {
    async roster() {
      const placed = new Map<string, readonly [root: string, path: string]>();
      for (const root of folders) {
        const paths = await declaredPaths(files, root, AGENTS_FOLDER);
        for (const [name, path] of paths) placed.set(name, [root, path]);
      }
      const sorted = [...placed].sort(([one], [other]) => (one < other ? -1 : 1));
      const agents = await Promise.all(sorted.map(([name, place]) => declared(name, ...place)));
      const prompts = await Promise.all([promptAt('supervisor.md'), promptAt('answer.md')]);
      const [supervisor, answer] = prompts;
      return {
        agents: agents.flat(),
        ...{ supervisor: supervisor.text, answer: answer.text },
        problems: prompts.flatMap(({ problem }) => problem ?? []),
      };
    },
  };
}

export const openAgentFiles = ({ agents }: Pick<Home, 'agents'>): AgentFiles =>
  createAgentFiles(createGuardedFiles(), [SHIPPED_AGENTS, agents]);

// The workflows and capabilities in the workspace, read anew each time they are asked for, so that a
// change counts from the next start on. Links are not followed; a file that cannot be used says why.

import { z } from 'zod';
import { failureText } from '../../agent/stream.ts';
import { ProviderError } from '../../kernel/message/errors.ts';
import type { ModelMessage } from '../../kernel/message/transcript.ts';
import type { GuardedFiles } from '../../lib/files/guarded-files.ts';
import { GuardedFileError } from '../../lib/files/guarded-path.ts';
import { parseYaml, YamlError } from '../../lib/yaml.ts';
import { definitionProblem } from './rules/check.ts';
import {
  CAPABILITIES_FOLDER,
  type Capability,
  type Definition,
  WORKFLOWS_FOLDER,
  type Workflow,
} from './rules/definition.ts';
import {
  isFileName,
  type ReadFile,
  readCapability,
  readWorkflow,
  WORKFLOW_ENDINGS,
} from './rules/file.ts';
import type { StepResult } from './rules/result.ts';
import {
  askSkill,
  fits,
  handleFor,
  missing,
  promptOf,
  readAnswer,
  type SkillCall,
  type SkillDeps,
  systemFor,
  tooLong,
  unpriced,
  usedUp,
} from './workflow-ask.ts';

export type WorkflowFiles = {
  /** By name. A workflow is broken as well where a capability of its is. */
  workflows(): Promise<readonly ReadFile<Definition>[]>;
  /** Undefined where there is none of this name. */
  workflow(name: string): Promise<ReadFile<Definition> | undefined>;
  capabilities(): Promise<readonly ReadFile<Capability>[]>;
};

const MAX_FILES = 200;
const MAX_BYTES = 65_536;

export function createWorkflowFiles(files: GuardedFiles, workspace: () => string): WorkflowFiles {
  async function names(folder: string): Promise<readonly string[]> {
    return [...(await paths(folder)).keys()];
  }

  /** By name, in their order. */
  async function paths(folder: string): Promise<ReadonlyMap<string, string>> {
    try {
      const { entries } = await files.list(workspace(), folder, { maxEntries: MAX_FILES });
      const found = WORKFLOW_ENDINGS.toReversed().flatMap((ending) =>
        entries
          .filter(({ name, kind }) => kind === 'file' && name.endsWith(ending))
          .map(({ name }) => [name.slice(0, -ending.length), `${folder}/${name}`] as const),
      );
      return new Map([...new Map(found)].sort(([one], [other]) => (one < other ? -1 : 1)));
    } catch (error) {
      if (error instanceof GuardedFileError) return new Map();
      throw error;
    }
  }

  async function read<T>(
    folder: string,
    name: string,
    check: (values: unknown, name: string) => ReadFile<T>,
  ): Promise<ReadFile<T>> {
    const path = (await paths(folder)).get(name) ?? `${folder}/${name}${WORKFLOW_ENDINGS[0]}`;
    try {
      const bytes = await files.read(workspace(), path, { maxBytes: MAX_BYTES });
      const found = check(await parseYaml(bytes.toString('utf8')), name);
      if (found.kind === 'valid') return found;
      const more = found.more?.map((each) => `${path}: ${each}`) ?? [];
      return { ...found, problem: `${path}: ${found.problem}`, more };
    } catch (error) {
      const isKnown = error instanceof YamlError || error instanceof GuardedFileError;
      if (isKnown) return { kind: 'broken', name, problem: `${path}: ${error.message}` };
      throw error;
    }
  }

  async function definitionOf(workflow: Workflow): Promise<ReadFile<Definition>> {
    const { name, steps } = workflow;
    const capabilities: Record<string, Capability> = {};
    const there = await names(CAPABILITIES_FOLDER);
    for (const step of steps) {
      if (step.kind !== 'llm_skill' || !there.includes(step.capability)) continue;
      const found = await read(CAPABILITIES_FOLDER, step.capability, readCapability);
      if (found.kind === 'broken') return { ...found, name };
      capabilities[step.capability] = found.value;
    }
    const value = { workflow, capabilities };
    const problem = definitionProblem(value);
    if (problem === undefined) return { kind: 'valid', value };
    const path = (await paths(WORKFLOWS_FOLDER)).get(name) ?? name;
    return { kind: 'broken', name, problem: `${path}: ${problem}` };
  }

  async function whole(name: string): Promise<ReadFile<Definition>> {
    const found = await read(WORKFLOWS_FOLDER, name, readWorkflow);
    return found.kind === 'broken' ? found : definitionOf(found.value);
  }

  return {
    workflows: async () => Promise.all((await names(WORKFLOWS_FOLDER)).map(whole)),
    async workflow(name) {
      const isThere = isFileName(name) && (await names(WORKFLOWS_FOLDER)).includes(name);
      return isThere ? whole(name) : undefined;
    },
    async capabilities() {
      const found = await names(CAPABILITIES_FOLDER);
      return Promise.all(found.map((name) => read(CAPABILITIES_FOLDER, name, readCapability)));
    },
  };
}

// Carries out one LLM_SKILL by one answer that has to fit the schema. What does not fit is asked for again
// with what is wrong.

/** @throws SpendingRefusedError, or the signal's reason */
export async function runSkill(
  deps: SkillDeps,
  call: SkillCall,
  signal: AbortSignal,
): Promise<StepResult> {
  const prompt = promptOf(call);
  if (prompt.kind === 'missing') return missing(prompt.paths);
  const { capability, hasMoneyLimit } = call;
  const schema = z.fromJSONSchema(capability.output);
  const messages: ModelMessage[] = [{ role: 'user', text: prompt.value }];
  let spent = { tokens: 0, micros: 0 };
  const { isForeign } = prompt;
  const failed = (error: string, mayRetry = true) =>
    ({ kind: 'failed', error, mayRetry, isForeign, spent }) as const;
  try {
    const handle = handleFor(deps, call);
    for (let tries = 1; ; tries += 1) {
      const over = usedUp(spent, call);
      if (over !== undefined) return failed(over, false);
      const question = { system: systemFor(capability), messages };
      if (!fits(handle, question)) return failed(tooLong(handle), false);
      const answer = await askSkill(deps, call, { handle, question, role: 'workflow' }, signal);
      if (answer.micros === undefined && hasMoneyLimit) return failed(unpriced(handle), false);
      spent = { tokens: spent.tokens + answer.tokens, micros: spent.micros + (answer.micros ?? 0) };
      const read = readAnswer(answer.text, schema);
      if (read.kind === 'fits') return { kind: 'skill', value: read.value, isForeign, spent };
      if (tries >= capability.tries)
        return failed(`the answer does not fit its schema: ${read.problem}`);
      messages.push({ role: 'assistant', text: answer.text, toolCalls: [], thinking: [] });
      messages.push({
        role: 'user',
        text: `[Your answer cannot be used: ${read.problem}. Write the whole JSON object again.]`,
      });
    }
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ProviderError) return failed(failureText(error));
    throw error;
  }
}

// Operations on workflows for people and for the model: list, start, show and cancel. Everybody
// sees their own runs; an owner in a private chat sees all.

import type { Kernel } from '../../kernel/feature.ts';
import type { SessionKey } from '../../kernel/message/ids.ts';
import type { ReadFile } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import type { MarkedAnswer } from '../../tools/tool.ts';
import type { Definition, SkillStep } from './rules/definition.ts';
import {
  inspected,
  WorkflowError,
  type WorkflowRun,
  type WorkflowStarter,
  type WorkflowWish,
  workflowLine,
} from './rules/workflow.ts';
import { openRuns, type WorkflowRows } from './workflow-rows.ts';
import type { WorkflowFiles } from './workflow-runs.ts';
import { sessionOfHome, type WorkflowRuns } from './workflow-runs.ts';

/** Who asks: a turn of the model, or a command of a person. */
export type WorkflowAsker = {
  readonly session: SessionKey;
  /** The notes folder whose runs are visible; undefined: all runs. */
  readonly notes: string | undefined;
  /** The same for a repetition of the same request. */
  readonly key: string;
  /** @throws WorkflowError where no run can be started from there */
  starter(): Omit<WorkflowStarter, 'model'>;
};

export type WorkflowService = ReturnType<typeof createWorkflowService>;

type WorkflowPeopleDeps = Pick<Kernel, 'clock' | 'settings'> & {
  readonly rows: WorkflowRows;
  readonly files: WorkflowFiles;
  readonly runs: WorkflowRuns;
};

type RunsOf = Pick<WorkflowAsker, 'notes'>;

const MAX_LINES = 30;
const MAX_NAMED = 5;

/** What cannot be done throws a WorkflowError. */
export function createWorkflowService(deps: WorkflowPeopleDeps) {
  const { rows, files, runs, clock, settings } = deps;

  const line = (run: WorkflowRun) => workflowLine(run, clock.now());

  /** `notes`: the notes folder; undefined: all runs. */
  async function visible(notes: string | undefined): Promise<readonly WorkflowRun[]> {
    const all = await rows.runs.list();
    const own = notes === undefined ? all : all.filter((run) => run.starter.person.notes === notes);
    return own.toReversed();
  }

  async function openOf(session: SessionKey): Promise<readonly WorkflowRun[]> {
    const open = await openRuns(rows);
    return open.filter(({ starter }) => sessionOfHome(starter) === session);
  }

  /** @throws WorkflowError */
  async function found(id: string, notes: string | undefined): Promise<WorkflowRun> {
    const own = await visible(notes);
    const run = own.find((each) => each.id === id);
    if (run !== undefined) return run;
    const ids = own.slice(0, MAX_NAMED).map((each) => each.id);
    const there = ids.length === 0 ? t`there is none` : t`there is ${ids.join(', ')}`;
    throw new WorkflowError(t`There is no run "${id}" of yours; ${there}.`);
  }

  return {
    /** Oldest first. */
    all: () => rows.runs.list(),
    /** One line per workflow, with its problem if it is invalid. */
    list: async (): Promise<readonly string[]> => (await files.workflows()).map(definitionLine),
    /** Repeating the request starts nothing new. `line`: about the run. */
    async start(wish: WorkflowWish, { session, key, starter: asked }: WorkflowAsker) {
      const { model } = await settings.get(session);
      const starter = { ...asked(), ...(model === undefined ? {} : { model }) };
      const run = await runs.start({ ...wish, key: t`started by ${key}`, starter });
      return { id: run.id, line: line(run) };
    },
    /** One line per run, newest first. */
    runs: async ({ notes }: RunsOf): Promise<readonly string[]> =>
      (await visible(notes)).slice(0, MAX_LINES).map(line),
    /** A run with its state as JSON, or what a workflow does. */
    async show(name: string, { notes }: RunsOf): Promise<MarkedAnswer> {
      const definition = await files.workflow(name);
      if (definition !== undefined)
        return { text: definitionDetails(definition), isForeign: false };
      const run = await found(name, notes);
      const { isTainted: isForeign } = run.state;
      return { text: JSON.stringify(inspected(run), undefined, 1), isForeign };
    },
    async cancel(id: string, { notes }: RunsOf): Promise<string> {
      const run = await found(id, notes);
      const ran = await runs.cancel(run);
      return `${ran ? t`Ended` : t`It had already ended`}: ${line((await rows.runs.get(id)) ?? run)}`;
    },
    /** Runs of this session or job that have not ended. */
    atWork: async (session: SessionKey) =>
      (await openOf(session)).map(({ id, workflow: name }) => ({ id, name })),
    /** Ends all of them; returns their number. */
    async stopAll(session: SessionKey): Promise<number> {
      const open = await openOf(session);
      for (const run of open) await runs.cancel(run);
      return open.length;
    },
  };
}

// A workflow in one text: its purpose, its inputs and its steps.

export function definitionLine(found: ReadFile<Definition>): string {
  if (found.kind === 'broken') return t`${found.name} cannot be used: ${found.problem}`;
  const { name, description, inputs } = found.value.workflow;
  const names = Object.entries(inputs).map(([input, schema]) =>
    schema['default'] === undefined ? input : `[${input}]`,
  );
  return `${name}: ${description}${names.length === 0 ? '' : t` (inputs: ${names.join(', ')})`}`;
}

function definitionDetails(found: ReadFile<Definition>): string {
  if (found.kind === 'broken') return definitionLine(found);
  const { inputs, steps } = found.value.workflow;
  const inputLines = Object.entries(inputs).map(
    ([name, schema]) => t`- input ${name}: ${JSON.stringify(schema)}`,
  );
  const stepLines = steps.map((step) => {
    const what =
      step.kind === 'tool'
        ? t`tool ${step.tool}`
        : t`capability ${step.capability}${votesOf(step)}`;
    return t`- step ${step.id}: ${what}${step.when === undefined ? '' : t`, when ${JSON.stringify(step.when)}`}`;
  });
  return [definitionLine(found), ...inputLines, ...stepLines].join('\n');
}

const votesOf = ({ votes }: SkillStep) =>
  votes === undefined ? '' : t`, the answer that is ahead by ${votes}`;

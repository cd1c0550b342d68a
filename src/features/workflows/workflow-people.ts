// Workflows as people and the model see them: what there is, what runs, how far it came.

import type { Rights } from '../../kernel/access/rights.ts';
import type { JsonObject } from '../../kernel/config/json.ts';
import type { MessageId, SessionKey } from '../../kernel/message/ids.ts';
import { type InboundMessage, sessionKeyOf } from '../../kernel/message/message.ts';
import type { TurnPerson } from '../../kernel/message/notes.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { ToolContext } from '../../tools/tool.ts';
import { jobChat } from '../schedule/rules/job.ts';
import { payerOf } from '../subagents/helper-starts.ts';
import { SUBAGENT_CHANNEL } from '../subagents/rules/subagent.ts';
import type { Definition, SkillStep } from './rules/definition.ts';
import type { ReadFile } from './rules/file.ts';
import { namedAs } from './rules/inputs.ts';
import {
  inspected,
  WORKFLOW_CHANNEL,
  type WorkflowAnswer,
  WorkflowError,
  type WorkflowRun,
  type WorkflowStarter,
  type WorkflowWish,
  workflowLine,
} from './rules/workflow.ts';
import type { WorkflowFiles } from './workflow-files.ts';
import { openRuns, type WorkflowRows } from './workflow-rows.ts';
import type { WorkflowRuns } from './workflow-runs.ts';

export type WorkflowPeopleDeps = {
  readonly rows: WorkflowRows;
  readonly files: WorkflowFiles;
  readonly runs: WorkflowRuns;
  readonly clock: Clock;
  isEnabled(): boolean;
  /** What the sender may have done there, and who they are. */
  standingOf(message: InboundMessage): Promise<{
    readonly rights: Rights;
    readonly isTainted: boolean;
    readonly person: TurnPerson;
  }>;
  modelOf(session: WorkflowAsker['session']): Promise<string | undefined>;
};

const MAX_LINES = 30;

/** `desk` is for commands, `workflows` for the tool. */
export function createWorkflowPeople(deps: WorkflowPeopleDeps) {
  const { rows, files, runs, clock, isEnabled } = deps;

  const line = (run: WorkflowRun) => workflowLine(run, clock.now());
  const lines = async () => (await files.workflows()).map(definitionLine);

  /** `notes`: whose; undefined: of all. */
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
    const there =
      own.length === 0
        ? 'there is none'
        : `there is ${own
            .slice(0, 5)
            .map((each) => each.id)
            .join(', ')}`;
    throw new WorkflowError(`There is no run "${id}" of yours; ${there}.`);
  }

  async function notesOf({ message, isOwnerAlone }: WorkflowAsker): Promise<string | undefined> {
    return isOwnerAlone ? undefined : (await deps.standingOf(message)).person.notes;
  }

  async function shown(name: string, notes: string | undefined) {
    const definition = await files.workflow(name);
    if (definition !== undefined) return { text: definitionDetails(definition), isForeign: false };
    const run = await found(name, notes);
    return { text: JSON.stringify(inspected(run), undefined, 1), isForeign: run.state.isTainted };
  }

  async function cancelled(id: string, notes: string | undefined): Promise<string> {
    const run = await found(id, notes);
    const ran = await runs.cancel(run);
    return `${ran ? 'Ended' : 'It had ended before'}: ${line((await rows.runs.get(id)) ?? run)}`;
  }

  async function started(
    wish: { readonly workflow: string; readonly input: JsonObject | string; readonly key: string },
    starter: Omit<WorkflowStarter, 'model'>,
    session: WorkflowAsker['session'],
  ): Promise<WorkflowRun> {
    const model = await deps.modelOf(session);
    return runs.start({
      ...wish,
      starter: { ...starter, ...(model === undefined ? {} : { model }) },
    });
  }

  const desk: WorkflowDesk = {
    isEnabled,
    list: lines,
    async start(typed, { session, message }) {
      const { workflow, input } = namedAs(typed);
      const { chat } = message;
      const home = { kind: 'chat', session, chat } as const;
      const standing = await deps.standingOf(message);
      const starter = { home, ...standing, payingChat: chat, payer: payerOf(message) };
      const run = await started({ workflow, input, key: keyOf(message.id) }, starter, session);
      return `Started: ${line(run)}. You hear of it here when it has ended; /workflow show ${run.id} shows how far it is.`;
    },
    async runs(asker) {
      const all = await visible(await notesOf(asker));
      return all.slice(0, MAX_LINES).map(line);
    },
    async show(name, asker) {
      return (await shown(name, await notesOf(asker))).text;
    },
    cancel: async (id, asker) => cancelled(id, await notesOf(asker)),
    async atWork(session) {
      const open = isEnabled() ? await openOf(session) : [];
      return open.map(({ id, workflow: name }) => ({ id, name }));
    },
    async stopAll(session) {
      const open = isEnabled() ? await openOf(session) : [];
      for (const run of open) await runs.cancel(run);
      return open.length;
    },
  };

  const workflows = {
    isEnabled,
    async list(): Promise<WorkflowAnswer> {
      const all = await lines();
      return own(all.length === 0 ? 'There are no workflows.' : all.join('\n'));
    },
    async start({ workflow, input }: WorkflowWish, context: ToolContext) {
      const starter = starterOf(context);
      const key = keyOf(`${context.session} ${context.turnId}`);
      const run = await started({ workflow, input, key }, starter, context.session);
      return own(
        `Started: ${line(run)}. Its result is told in this conversation when it has ended.`,
      );
    },
    async runs({ person }: Pick<ToolContext, 'person'>) {
      const all = (await visible(person.notes)).slice(0, MAX_LINES).map(line);
      return own(all.length === 0 ? 'There are no runs.' : all.join('\n'));
    },
    show: (name: string, { person }: Pick<ToolContext, 'person'>) => shown(name, person.notes),
    cancel: async (id: string, { person }: Pick<ToolContext, 'person'>) =>
      own(await cancelled(id, person.notes)),
  };
  return { desk, workflows };
}

const sessionOfHome = ({ home }: Pick<WorkflowStarter, 'home'>): SessionKey =>
  home.kind === 'chat' ? home.session : sessionKeyOf(jobChat(home.job));

const own = (text: string): WorkflowAnswer => ({ text, isForeign: false });

const keyOf = (what: MessageId | string) => `started by ${what}`;

/** @throws WorkflowError where nobody would pay, or nobody would hear of it */
function starterOf(context: ToolContext): Omit<WorkflowStarter, 'model'> {
  const { session, chat, rights, person, payer } = context;
  const isNoPlace = chat.channel === SUBAGENT_CHANNEL || chat.channel === WORKFLOW_CHANNEL;
  if (payer === undefined || isNoPlace) {
    throw new WorkflowError('Workflows are started only within a turn of a person or a job.');
  }
  return {
    home: { kind: 'chat', session, chat },
    ...{ rights, person, isTainted: context.isTainted },
    ...{ payingChat: payer.chat, payer: payerOf(payer) },
  };
}

// Workflows in words: what each is for, what it takes, and its steps.

export function definitionLine(found: ReadFile<Definition>): string {
  if (found.kind === 'broken') return `${found.name} cannot be used: ${found.problem}`;
  const { name, description, inputs } = found.value.workflow;
  const names = Object.entries(inputs).map(([input, schema]) =>
    schema.default === undefined ? input : `[${input}]`,
  );
  return `${name}: ${description}${names.length === 0 ? '' : ` (inputs: ${names.join(', ')})`}`;
}

export function definitionDetails(found: ReadFile<Definition>): string {
  if (found.kind === 'broken') return definitionLine(found);
  const { inputs, steps } = found.value.workflow;
  const inputLines = Object.entries(inputs).map(
    ([name, schema]) => `- input ${name}: ${JSON.stringify(schema)}`,
  );
  const stepLines = steps.map((step) => {
    const what =
      step.kind === 'tool' ? `tool ${step.tool}` : `capability ${step.capability}${votesOf(step)}`;
    return `- step ${step.id}: ${what}${step.when === undefined ? '' : `, when ${JSON.stringify(step.when)}`}`;
  });
  return [definitionLine(found), ...inputLines, ...stepLines].join('\n');
}

const votesOf = ({ votes }: SkillStep) =>
  votes === undefined ? '' : `, the answer that is ahead by ${votes}`;

// CONTRACT of what people see and do about workflows. Everybody sees their own runs, an owner who is alone
// with the agent those of all.

/** Who asks in a chat. */
export type WorkflowAsker = {
  readonly session: SessionKey;
  readonly message: InboundMessage;
  readonly isOwnerAlone: boolean;
};

/** All answers are texts for people; what cannot be done is a WorkflowError. */
export interface WorkflowDesk {
  isEnabled(): boolean;
  /** A line for each workflow; what is wrong with one stands in it. */
  list(): Promise<readonly string[]>;
  /** `typed`: the name, and inputs as key=value. */
  start(typed: string, asker: WorkflowAsker): Promise<string>;
  /** A line each, newest first. */
  runs(asker: WorkflowAsker): Promise<readonly string[]>;
  /** A run with its state as JSON, or what a workflow does. */
  show(name: string, asker: WorkflowAsker): Promise<string>;
  cancel(id: string, asker: WorkflowAsker): Promise<string>;
  /** Runs of this conversation, that of a job too, that are not over. */
  atWork(session: SessionKey): Promise<readonly { readonly id: string; readonly name: string }[]>;
  /** Ends all of these; how many there were. */
  stopAll(session: SessionKey): Promise<number>;
}

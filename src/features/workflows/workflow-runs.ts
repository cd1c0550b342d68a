// Starts and ends runs of workflows. Every operation is idempotent: a repeated request is the same
// run, an end counts once, and a report has a fixed id.

import { hash } from 'node:crypto';
import type { MessageBus } from '../../kernel/bus/bus.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { type MessageId, messageId, type SessionKey } from '../../kernel/message/ids.ts';
import { type InboundMessage, writtenNow } from '../../kernel/message/message.ts';
import type { PersonalData } from '../../kernel/personal-data.ts';
import { isOfChats } from '../../kernel/sessions/rules/forgetting.ts';
import { declaredPaths, readWithPath } from '../../lib/files/declared-files.ts';
import type { GuardedFiles } from '../../lib/files/guarded-files.ts';
import { broken, type ReadFile } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import { jobChat, jobSession } from '../schedule/settings.ts';
import { senderOf } from '../subagents/index.ts';
import {
  type Capability,
  type Definition,
  isFileName,
  namedAs,
  readInputs,
  typedInputs,
} from './rules/definition.ts';
import { definitionProblem, readCapability, readWorkflow } from './rules/file.ts';
import { newState } from './rules/state.ts';
import {
  isOver,
  type WorkflowEnding,
  WorkflowError,
  type WorkflowRun,
  type WorkflowStarter,
  type WorkflowWish,
  workflowChat,
  workflowRights,
  workflowSession,
} from './rules/workflow.ts';
import type { WorkflowsConfig } from './settings.ts';
import { CAPABILITIES_FOLDER, WORKFLOWS_FOLDER } from './settings.ts';
import {
  beginRun,
  changeRun,
  openRuns,
  removeOldRuns,
  removeRun,
  type WorkflowRows,
} from './workflow-rows.ts';

type WorkflowRunsDeps = Pick<Kernel, 'clock' | 'log'> & {
  readonly rows: WorkflowRows;
  readonly files: WorkflowFiles;
  readonly bus: Pick<MessageBus, 'accept' | 'cancel' | 'send'>;
  /** The run of a job has ended; a repetition changes nothing. */
  readonly jobEnded: JobEnded;
  settings(): WorkflowsConfig;
};

type JobEnding = 'done' | 'failed' | 'stopped';
export type JobEnded = (
  job: string,
  run: MessageId,
  how: JobEnding,
  detail?: string,
) => Promise<void>;

/** `key`: the same for repetitions of a request. */
type WorkflowStart = WorkflowWish & {
  readonly key: string;
  readonly starter: WorkflowStarter;
  /** The id of the message that starts it, if it exists already. */
  readonly begunBy?: MessageId;
};

const KEEP_MS = 7 * 86_400_000;
const ID_CHARS = 10;

export type WorkflowRuns = ReturnType<typeof createWorkflowRuns>;

export function createWorkflowRuns(deps: WorkflowRunsDeps) {
  const { rows, files, bus, clock, log, settings, jobEnded } = deps;

  async function begun(id: string, wish: WorkflowStart): Promise<WorkflowRun> {
    const { maxRunning } = settings();
    const { definition, input } = await readWish(files, wish);
    await removeOldRuns(rows, clock.now() - KEEP_MS);
    const open = await openRuns(rows);
    if (open.length >= maxRunning) {
      throw new WorkflowError(
        t`${open.length} workflows are running, the maximum (agents.workflows.maxRunning). Wait for one or cancel one.`,
      );
    }
    const { starter } = wish;
    const run: WorkflowRun = {
      ...{ id, workflow: wish.workflow, starter },
      begunBy: wish.begunBy ?? messageId(`workflow/${id}/begin`),
      state: newState(input, starter.isTainted),
      startedAt: clock.now(),
      ...{ status: 'running', telling: 'due' },
    };
    await beginRun(rows, run, definition);
    return run;
  }

  /** Returns whether it had not ended before. */
  async function over({ id }: WorkflowRun, status: WorkflowEnding, result: string) {
    const ended = { status, result, endedAt: clock.now() };
    const step = (run: WorkflowRun) => (isOver(run) ? run : { ...run, ...ended });
    return (await changeRun(rows, id, step)) !== undefined;
  }

  /** Reports the end to the starter, once. */
  async function tell(id: string): Promise<void> {
    const run = await rows.runs.get(id);
    if (run === undefined || run.telling === 'over' || !isOver(run)) return;
    const { starter, status, result = '', begunBy } = run;
    const { home } = starter;
    const isDone = status === 'done';
    // A job reports its failures itself.
    if (home.kind === 'chat' || isDone) {
      await tellHome(run, { name: 'end', text: endText(run), now: clock.now() }, bus);
    }
    if (home.kind === 'job') {
      const how = status === 'cancelled' ? 'stopped' : status;
      await jobEnded(home.job, begunBy, how, ...(isDone ? [] : [result]));
    }
    await changeRun(rows, id, (each) => ({ ...each, telling: 'over' }));
  }

  return {
    /** Durable when it resolves. @throws WorkflowError */
    async start(wish: WorkflowStart): Promise<WorkflowRun> {
      const id = idOf(wish);
      const run = (await rows.runs.get(id)) ?? (await begun(id, wish));
      if (!isOver(run)) {
        await bus.accept([{ kind: 'queue', message: inOwnChat(run, run.begunBy, clock.now()) }]);
        log.info('workflow started', { run: id, workflow: run.workflow });
      }
      return run;
    },
    async end(run: WorkflowRun, how: WorkflowEnding, result: string): Promise<void> {
      if (await over(run, how, result)) log.info('workflow ended', { run: run.id, how });
      await tell(run.id);
    },
    /** Returns whether it was running. */
    async cancel(run: WorkflowRun): Promise<boolean> {
      const cancelled = await over(run, 'cancelled', t`stopped by a person`);
      await bus.cancel(workflowSession(run.id), 'the workflow was stopped');
      if (cancelled) await tell(run.id);
      return cancelled;
    },
    tell,
  };
}

/**
 * Erases runs of these chats that contain the words; a running one keeps them until it has ended.
 */
export function forgetRuns(rows: WorkflowRows): NonNullable<PersonalData['forget']> {
  return async (chats, holds) => {
    let forgotten = 0;
    for (const run of await rows.runs.list()) {
      const isTheirs = isOfChats({ session: sessionOfHome(run.starter) }, chats) && isOver(run);
      if (!isTheirs || !holds(JSON.stringify([run.result, run.state]))) continue;
      await removeRun(rows, run.id);
      forgotten += 1;
    }
    return forgotten;
  };
}

/** The session that the run belongs to. */
export const sessionOfHome = ({ home }: Pick<WorkflowStarter, 'home'>): SessionKey =>
  home.kind === 'chat' ? home.session : jobSession(home.job);

/**
 * The same for repetitions of a request, so that a call or command resumed after a crash starts one
 * run.
 */
function idOf({ key, workflow, input }: WorkflowStart): string {
  return `w${hash('sha256', JSON.stringify([key, workflow, input])).slice(0, ID_CHARS)}`;
}

function endText({ workflow, status, result = '', id }: WorkflowRun): string {
  if (status === 'done') return `**${workflow}**\n\n${result}`;
  if (status === 'cancelled') return t`The workflow ${workflow} (${id}) was stopped by a person.`;
  return t`The workflow ${workflow} (${id}) failed: ${result.replace(/\.$/, '')}.`;
}

// Validates a request against the files in the workspace, before anything is started or promised.

/** @throws WorkflowError; for an unknown workflow it lists the existing ones */
async function readWish(files: WorkflowFiles, { workflow, input }: WorkflowWish) {
  const found = await files.workflow(workflow);
  if (found === undefined) {
    const all = await files.workflows();
    const names = all.map((each) => (each.kind === 'valid' ? each.value.workflow : each).name);
    const there = names.length === 0 ? t`there are none` : t`there is ${names.join(', ')}`;
    throw new WorkflowError(t`There is no workflow "${workflow}"; ${there}.`);
  }
  if (found.kind === 'broken') {
    throw new WorkflowError(t`The workflow ${workflow} cannot be used: ${found.problem}.`);
  }
  const definition = found.value;
  const given = typeof input === 'string' ? typedInputs(definition.workflow, input) : input;
  if (given === undefined) {
    throw new WorkflowError(
      t`Write inputs as key=value, and key="two words" if they contain spaces.`,
    );
  }
  const read = readInputs(definition.workflow, given);
  if (read.kind === 'broken') throw new WorkflowError(read.problem);
  return { definition, input: read.input };
}

/**
 * Validates the text of a job: a name followed by inputs.
 * @throws WorkflowError where it could not run now
 */
export async function checkTyped(files: WorkflowFiles, typed: string): Promise<void> {
  await readWish(files, namedAs(typed));
}

// The messages that start runs, resume them after a decision, and report them. Each has a stable
// id, so that a repetition after a crash is a duplicate.

/** `why`: the message that wakes the run. */
export function wakeMessage(run: WorkflowRun, why: MessageId, now: number): InboundMessage {
  return inOwnChat(run, messageId(`workflow/${run.id}/wake/${why}`), now);
}

function inOwnChat(run: WorkflowRun, id: MessageId, now: number): InboundMessage {
  const sender = { ...senderOf('workflow', run.starter), rights: workflowRights(run.starter) };
  const text = `[workflow ${run.workflow}]`;
  return writtenNow({ id, chat: workflowChat(run.id), sender, text }, now);
}

/** Sends it to where the run belongs, once under this name; durable when it resolves. */
export async function tellHome(
  { id, starter, state }: WorkflowRun,
  told: { readonly name: string; readonly text: string; readonly now: number },
  bus: Pick<MessageBus, 'accept' | 'send'>,
): Promise<void> {
  const { name, text, now } = told;
  const said = messageId(`workflow/${id}/${name}`);
  const { home } = starter;
  if (home.kind === 'job') {
    await bus.send({ id: said, chat: jobChat(home.job), markdown: text });
    return;
  }
  const { isTainted: isForeign } = state;
  const { chat, session } = home;
  const sender = senderOf('workflow', starter);
  const message = {
    ...{ id: said, chat, session, text, announces: { attachments: [] } },
    sender: isForeign ? { ...sender, isTainted: isForeign } : sender,
  };
  await bus.accept([{ kind: 'queue', message: writtenNow(message, now) }]);
}

// The workflows and capabilities in the workspace, read at each use, so that a change applies from
// the next start.

export type WorkflowFiles = ReturnType<typeof createWorkflowFiles>;

export function createWorkflowFiles(files: GuardedFiles, workspace: () => string) {
  const paths = (folder: string) => declaredPaths(files, workspace(), folder);
  const capabilityAt = (name: string, path: string) =>
    readWithPath(files, { root: workspace(), path, name }, readCapability);

  async function workflowAt(name: string, path: string): Promise<ReadFile<Definition>> {
    const found = await readWithPath(files, { root: workspace(), path, name }, readWorkflow);
    if (found.kind === 'broken') return found;
    const workflow = found.value;
    const capabilities: Record<string, Capability> = {};
    const there = await paths(CAPABILITIES_FOLDER);
    for (const step of workflow.steps) {
      const at = step.kind === 'llm_skill' ? there.get(step.capability) : undefined;
      if (step.kind !== 'llm_skill' || at === undefined) continue;
      const capability = await capabilityAt(step.capability, at);
      if (capability.kind === 'broken') return { ...capability, name };
      capabilities[step.capability] = capability.value;
    }
    const value = { workflow, capabilities };
    const problem = definitionProblem(value);
    return problem === undefined ? { kind: 'valid', value } : broken(name, `${path}: ${problem}`);
  }

  const all = async <T>(folder: string, read: (name: string, path: string) => Promise<T>) =>
    Promise.all([...(await paths(folder))].map(([name, path]) => read(name, path)));

  return {
    /** By name. A workflow with an invalid capability is invalid too. */
    workflows: () => all(WORKFLOWS_FOLDER, workflowAt),
    /** Undefined where no workflow has this name. */
    async workflow(name: string) {
      const path = isFileName(name) ? (await paths(WORKFLOWS_FOLDER)).get(name) : undefined;
      return path === undefined ? undefined : workflowAt(name, path);
    },
    capabilities: () => all(CAPABILITIES_FOLDER, capabilityAt),
  };
}

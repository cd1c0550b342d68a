// Starts and ends subagents and notifies their parents. Every operation is idempotent: a start
// repeated after a crash finds the subagent, an end counts once, and a notification has a fixed id.

import { hash } from 'node:crypto';
import { isTouched } from '../../agent/rules/context-marks.ts';
import type { MessageBus } from '../../kernel/bus/bus.ts';
import type { Kernel } from '../../kernel/feature.ts';
import {
  type MessageId,
  messageId,
  type SessionKey,
  type TurnId,
} from '../../kernel/message/ids.ts';
import { type InboundMessage, writtenNow } from '../../kernel/message/message.ts';
import { wrapUntrusted } from '../../kernel/message/untrusted.ts';
import type { SessionStore } from '../../kernel/sessions/store.ts';
import { newBoundary } from '../../lib/boundary.ts';
import { shortened } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';
import type { ToolContext } from '../../tools/tool.ts';
import { removeEndedRuns, type SubagentRows } from './personal-data.ts';
import {
  endText,
  SUBAGENT_CHANNEL,
  SubagentError,
  type SubagentRequest,
  type SubagentRun,
  senderOf,
  signalText,
  subagentChat,
  subagentRights,
  subagentSession,
  taskText,
} from './rules/subagent.ts';

type SubagentServiceDeps = Pick<Kernel, 'clock' | 'log'> & {
  readonly subagents: SubagentRows;
  readonly bus: Pick<MessageBus, 'accept' | 'cancel' | 'trace'>;
  /** Turns of subagents may end in another process. */
  readonly isShared?: boolean;
};

type SubagentEnd = {
  readonly state: Exclude<SubagentRun['state'], 'running'>;
  readonly result: string;
  readonly isForeign: boolean;
};

/** Decides who has to be notified. */
export type Cancelled = 'by the agent' | 'by a person' | 'with what it was for';

const KEEP_MS = 7 * 86_400_000;

export type SubagentService = ReturnType<typeof createSubagentService>;

/** Between two looks for the end of a run of another process. */
const LOOK_MS = 500;

export function createSubagentService(deps: SubagentServiceDeps) {
  const { subagents, bus, clock, log, isShared = false } = deps;
  const { runs } = subagents;
  const ends = new Map<string, PromiseWithResolvers<void>>();
  /** Number of waiting turns by run; they learn of the end by waiting. */
  const readers = new Map<string, number>();
  let drive: (run: SubagentRun) => void = () => undefined;

  async function accept(message: InboundMessage): Promise<void> {
    await bus.accept([{ kind: 'queue', message }]);
  }

  /** The run as it ended; undefined where it had ended before. */
  const finished = (id: string, over: (run: SubagentRun) => Partial<SubagentRun>) =>
    runs.change(id, (run) =>
      run?.state === 'running' ? { ...run, endedAt: clock.now(), ...over(run) } : undefined,
    );

  function resolveEnd(id: string): void {
    ends.get(id)?.resolve();
    ends.delete(id);
  }

  async function goOn(run: SubagentRun): Promise<void> {
    if (run.plan.kind === 'task') await accept(taskMessage(run, clock.now()));
    else drive(run);
  }

  /** The asking turn has seen the end. */
  async function read(id: string): Promise<void> {
    await runs.change(id, (run) =>
      run === undefined || run.state === 'running' || run.telling === 'over'
        ? undefined
        : { ...run, telling: 'over' },
    );
  }

  async function tell(id: string): Promise<void> {
    if (readers.has(id)) return;
    const run = await runs.get(id);
    if (run === undefined || run.state === 'running' || run.telling === 'over') return;
    await accept(endMessage(run, `end-${run.attempt}`, clock.now()));
    await read(id);
  }

  async function cancelChildren(id: string): Promise<void> {
    const session = subagentSession(id);
    const children = (await runs.list()).filter(
      ({ state, series, parent }) =>
        state === 'running' && (series === id || parent.session === session),
    );
    for (const child of children) await cancel(child, 'with what it was for');
  }

  async function end(id: string, { state, result, isForeign }: SubagentEnd): Promise<void> {
    const ended = await finished(id, (run) => ({
      ...{ state, result, telling: isHeardElsewhere(run) ? 'over' : 'due' },
      ...(isForeign ? { isForeign } : {}),
    }));
    if (ended !== undefined) log.info('subagent ended', { subagent: id, state });
    await cancelChildren(id);
    resolveEnd(id);
    await tell(id);
  }

  /** Ends it with all it started; returns whether it was running. */
  async function cancel(run: SubagentRun, how: Cancelled): Promise<boolean> {
    const { id, plan } = run;
    const cancelled = await finished(id, () => ({
      ...{ state: 'cancelled', result: t`ended ${how}`, telling: 'over' },
    }));
    await cancelChildren(id);
    if (plan.kind === 'task') await bus.cancel(subagentSession(id), 'the subagent was stopped');
    resolveEnd(id);
    if (cancelled === undefined) return false;
    log.info('subagent ended', { subagent: id, state: 'cancelled' });
    if (how === 'by a person' && !isHeardElsewhere(run)) {
      await accept(killMessage(cancelled, clock.now()));
    }
    return true;
  }

  /** Whether a crash came between the end of its parent and its own. */
  async function isOrphan({ series, parent }: SubagentRun): Promise<boolean> {
    const isBelow = parent.chat.channel === SUBAGENT_CHANNEL;
    const above = series ?? (isBelow ? parent.chat.chat : undefined);
    return above !== undefined && (await runs.get(above))?.state !== 'running';
  }

  async function takeUp(run: SubagentRun): Promise<void> {
    if (await isOrphan(run)) {
      await cancel(run, 'with what it was for');
      return;
    }
    const trace = run.plan.kind === 'task' ? await bus.trace(taskMessageId(run.id)) : undefined;
    if (trace === undefined || trace.state === 'pending') return goOn(run);
    const result = t`It was lost. Start it again if it is still needed.`;
    await end(run.id, { state: 'failed', result, isForeign: false });
  }

  return {
    read,
    end,
    cancel,
    /** `then` is called with each series that has to continue. */
    drivenBy(then: (run: SubagentRun) => void): void {
      drive = then;
    },
    /** Durable when it resolves. */
    async begin(run: SubagentRun): Promise<void> {
      if (run.series === undefined) await removeEndedRuns(subagents, clock.now() - KEEP_MS);
      await runs.change(run.id, () => run);
      const { kind } = run.plan;
      log.info('subagent started', { subagent: run.id, kind, parent: run.parent.session });
      try {
        await goOn(run);
      } catch (error) {
        const over = { state: 'failed', result: t`It could not start.`, telling: 'over' } as const;
        await runs.change(run.id, (each) => each && { ...each, ...over, endedAt: clock.now() });
        throw error;
      }
    },
    /** Resolves when it has ended. */
    async over(id: string): Promise<void> {
      const ending = ends.get(id) ?? Promise.withResolvers<void>();
      ends.set(id, ending);
      for (;;) {
        if ((await runs.get(id))?.state !== 'running') resolveEnd(id);
        if (!isShared || !ends.has(id)) return ending.promise;
        await Promise.race([ending.promise, clock.sleep(LOOK_MS)]);
      }
    },
    /**
     * While `work` runs, its caller learns of the end of the runs that it returns; no message is
     * sent.
     */
    async reading(
      waited: readonly SubagentRun[],
      work: () => Promise<readonly string[]>,
    ): Promise<void> {
      const count = (id: string, by: number) => readers.set(id, (readers.get(id) ?? 0) + by);
      for (const { id } of waited) count(id, 1);
      try {
        for (const id of await work()) await read(id);
      } finally {
        for (const { id } of waited) {
          count(id, -1);
          if (readers.get(id) === 0) readers.delete(id);
          await tell(id);
        }
      }
    },
    /** Adds a result after the end, e.g. after an approval; `name` is stable over repetitions. */
    async addendum(id: string, name: string, result: string, isForeign: boolean): Promise<void> {
      const foreign = isForeign ? { isForeign } : {};
      const told = await runs.change(id, (run) => run && { ...run, result, ...foreign });
      if (told === undefined || isHeardElsewhere(told)) return;
      await accept(endMessage(told, name, clock.now()));
    },
    /** Resumes what an earlier process left, and deletes runs that ended long ago. */
    async recover(): Promise<void> {
      await removeEndedRuns(subagents, clock.now() - KEEP_MS);
      for (const run of await runs.list()) {
        if (run.state === 'running') await takeUp(run);
        else await tell(run.id);
      }
    },
  };
}

/** True for a part of a series and for a subagent of a subagent, which end with their parent. */
const isHeardElsewhere = ({ series, parent }: SubagentRun) =>
  series !== undefined || parent.chat.channel === SUBAGENT_CHANNEL;

// The messages that start subagents and notify parents of their end. Each has a stable id, so that
// a repetition after a crash is a duplicate.

/** Of a result in a notification; `check` shows all of it. */
const MAX_TOLD_CHARS = 12_000;

export const taskMessageId = (id: string): MessageId => messageId(`subagent/${id}/task`);

function taskMessage(run: SubagentRun, now: number): InboundMessage {
  const rights = subagentRights(run);
  const sender = { ...senderFor(run), rights, ...tainted(run.parent.isTainted) };
  const { id } = run;
  return writtenNow(
    { id: taskMessageId(id), chat: subagentChat(id), sender, text: taskText(run) },
    now,
  );
}

/** `name`: of the event, stable over repetitions. */
function endMessage(run: SubagentRun, name: string, now: number): InboundMessage {
  const text = `${endText(run, now)}\n\n${resultText(run)}`;
  return toldParent(run, { name, text, isForeign: run.isForeign === true }, now);
}

/** `name`: of the signal, stable over repetitions. */
export function signalMessage(
  run: SubagentRun,
  { name, said, isForeign }: { name: string; said: string; isForeign: boolean },
  now: number,
): InboundMessage {
  const words = wrapUntrusted('report of a subagent', [{ text: said }], newBoundary());
  const text = `${signalText(run)}\n\n${words}`;
  return toldParent(run, { name: `critical-${name}`, text, isForeign }, now);
}

/** Shown in the chat as it is; needs no answer. */
function killMessage(run: SubagentRun, now: number): InboundMessage {
  const text = t`The subagent "${run.label}" (${run.id}) was stopped by a person.`;
  const told = toldParent(run, { name: `killed-${run.attempt}`, text, isForeign: false }, now);
  const sender = { ...senderFor(run), ...tainted(run.parent.isTainted) };
  return { ...told, sender, announces: { attachments: [] } };
}

function toldParent(
  run: SubagentRun,
  { name, text, isForeign }: { name: string; text: string; isForeign: boolean },
  now: number,
): InboundMessage {
  const { chat, session, rights, isTainted } = run.parent;
  const sender = { ...senderFor(run), rights, ...tainted(isTainted || isForeign) };
  const id = messageId(`subagent/${run.id}/${name}`);
  return writtenNow({ id, chat, session, sender, text }, now);
}

/** The result, marked as a report and not as an instruction. */
export function resultText({ result = '' }: Pick<SubagentRun, 'result'>): string {
  const whole = result.trim() === '' ? t`It gave no answer.` : result;
  const text = shortened(whole, MAX_TOLD_CHARS, '\n[cut here]');
  return wrapUntrusted('result of a subagent', [{ text }], newBoundary());
}

const senderFor = ({ parent }: SubagentRun) => senderOf('subagent', parent);

const tainted = (isTainted: boolean) => (isTainted ? ({ isTainted } as const) : {});

// The id of a subagent, derived from the request and its turn.

const ID_CHARS = 10;

/**
 * The same for the same request of the same turn, so that a call repeated after a crash starts one.
 */
export function idOf(
  { id, plan, label }: SubagentRequest,
  { session, turnId }: Pick<ToolContext, 'session' | 'turnId'>,
): string {
  const what = id === undefined ? [turnId, label, plan] : [plan.kind, id];
  return `h${hash('sha256', JSON.stringify([session, ...what])).slice(0, ID_CHARS)}`;
}

/** @throws SubagentError */
export function checkSame(known: SubagentRun, { plan, id }: SubagentRequest): void {
  if (JSON.stringify(known.plan) === JSON.stringify(plan)) return;
  throw new SubagentError(t`"${id}" is already in use. Choose another id.`);
}

// Whether the text of a turn may contain untrusted content: it may repeat whatever the turn saw.

/** True in doubt, where nothing of the turn is recorded. */
export async function isTaintedTurn(
  sessions: Pick<SessionStore, 'turn'>,
  session: SessionKey,
  turn: TurnId,
): Promise<boolean> {
  const entries = await sessions.turn(session, turn);
  return entries.length === 0 || entries.some(isTouched);
}

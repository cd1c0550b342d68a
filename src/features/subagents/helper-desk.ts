// Starts helpers, ends them and tells who asked. Whatever it is told twice changes nothing the second
// time: a start after a crash finds the helper there, an end is one, and an announcement has one id.

import type { MessageBus } from '../../kernel/bus/bus.ts';
import type { InboundMessage } from '../../kernel/message/message.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { endMessage, killMessage, taskMessage, taskMessageId } from './messages.ts';
import {
  type HelperParent,
  type HelperRun,
  helperSession,
  SUBAGENT_CHANNEL,
} from './rules/subagent.ts';
import { removeEndedRuns, type SubagentRows } from './subagent-rows.ts';

export type HelperDeskDeps = {
  readonly subagents: SubagentRows;
  readonly bus: Pick<MessageBus, 'accept' | 'cancel' | 'trace'>;
  readonly clock: Clock;
  readonly log: Logger;
};

export type HelperEnd = {
  readonly state: Exclude<HelperRun['state'], 'running'>;
  readonly result: string;
  readonly isForeign: boolean;
};

/** Who ended it decides who has to hear of it. */
export type Cancelled = 'by the agent' | 'by a person' | 'with what it was for';

const KEEP_MS = 7 * 86_400_000;

export type HelperDesk = ReturnType<typeof createHelperDesk>;

export function createHelperDesk({ subagents, bus, clock, log }: HelperDeskDeps) {
  const { runs } = subagents;
  const ends = new Map<string, PromiseWithResolvers<void>>();
  /** Turns that wait for the end, and hear of it by that. */
  const readers = new Map<string, number>();
  let drive: (run: HelperRun) => void = () => undefined;

  async function accept(message: InboundMessage): Promise<void> {
    await bus.accept([{ kind: 'queue', message }]);
  }

  /** The run as it ended; undefined where it had ended before. */
  const finished = (id: string, over: (run: HelperRun) => Partial<HelperRun>) =>
    runs.change(id, (run) =>
      run?.state === 'running' ? { ...run, endedAt: clock.now(), ...over(run) } : undefined,
    );

  function resolveEnd(id: string): void {
    ends.get(id)?.resolve();
    ends.delete(id);
  }

  async function goOn(run: HelperRun): Promise<void> {
    if (run.plan.kind === 'task') await accept(taskMessage(run, clock.now()));
    else drive(run);
  }

  /** Whoever asked has seen how it ended. */
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
    const session = helperSession(id);
    const children = (await runs.list()).filter(
      ({ state, series, parent }) =>
        state === 'running' && (series === id || parent.session === session),
    );
    for (const child of children) await cancel(child, 'with what it was for');
  }

  async function end(id: string, { state, result, isForeign }: HelperEnd): Promise<void> {
    const ended = await finished(id, (run) => ({
      ...{ state, result, telling: isHeardElsewhere(run) ? 'over' : 'due' },
      ...(isForeign ? { isForeign } : {}),
    }));
    if (ended !== undefined) log.info('helper ended', { helper: id, state });
    await cancelChildren(id);
    resolveEnd(id);
    await tell(id);
  }

  /** Ends it with all it started; whether it ran. */
  async function cancel(run: HelperRun, how: Cancelled): Promise<boolean> {
    const { id, plan } = run;
    const cancelled = await finished(id, () => ({
      ...{ state: 'cancelled', result: `ended ${how}`, telling: 'over' },
    }));
    await cancelChildren(id);
    if (plan.kind === 'task') await bus.cancel(helperSession(id), 'the helper was ended');
    resolveEnd(id);
    if (cancelled === undefined) return false;
    log.info('helper ended', { helper: id, state: 'cancelled' });
    if (how === 'by a person' && !isHeardElsewhere(run)) {
      await accept(killMessage(cancelled, clock.now()));
    }
    return true;
  }

  /** A kill came between the end of what it was for and its own. */
  async function isOrphan({ series, parent }: HelperRun): Promise<boolean> {
    const isBelow = parent.chat.channel === SUBAGENT_CHANNEL;
    const above = series ?? (isBelow ? parent.chat.chat : undefined);
    return above !== undefined && (await runs.get(above))?.state !== 'running';
  }

  async function takeUp(run: HelperRun): Promise<void> {
    if (await isOrphan(run)) {
      await cancel(run, 'with what it was for');
      return;
    }
    const trace = run.plan.kind === 'task' ? await bus.trace(taskMessageId(run.id)) : undefined;
    if (trace === undefined || trace.state === 'pending') return goOn(run);
    const result = 'It was lost on its way. Start it again if it is still needed.';
    await end(run.id, { state: 'failed', result, isForeign: false });
  }

  return {
    read,
    end,
    cancel,
    /** `then` is handed each series that is to go on. */
    drivenBy(then: (run: HelperRun) => void): void {
      drive = then;
    },
    /** Durable when resolved. */
    async begin(run: HelperRun): Promise<void> {
      if (run.series === undefined) await removeEndedRuns(subagents, clock.now() - KEEP_MS);
      await runs.change(run.id, () => run);
      const { kind } = run.plan;
      log.info('helper started', { helper: run.id, kind, parent: run.parent.session });
      try {
        await goOn(run);
      } catch (error) {
        const over = { state: 'failed', result: 'It could not begin.', telling: 'over' } as const;
        await runs.change(run.id, (each) => each && { ...each, ...over, endedAt: clock.now() });
        throw error;
      }
    },
    /** Resolves when it has ended. */
    async over(id: string): Promise<void> {
      const ending = ends.get(id) ?? Promise.withResolvers<void>();
      ends.set(id, ending);
      if ((await runs.get(id))?.state !== 'running') resolveEnd(id);
      return ending.promise;
    },
    /** While `work` goes on, its caller is who hears of the end of those that it gives. */
    async reading(
      waited: readonly HelperRun[],
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
    /** What came after the end, e.g. because an owner allowed something; `name` is the same each time. */
    async addendum(id: string, name: string, result: string, isForeign: boolean): Promise<void> {
      const foreign = isForeign ? { isForeign } : {};
      const told = await runs.change(id, (run) => run && { ...run, result, ...foreign });
      if (told === undefined || isHeardElsewhere(told)) return;
      await accept(endMessage(told, name, clock.now()));
    },
    /** Takes up what an earlier process left, and forgets what is long over. */
    async recover(): Promise<void> {
      await removeEndedRuns(subagents, clock.now() - KEEP_MS);
      for (const run of await runs.list()) {
        if (run.state === 'running') await takeUp(run);
        else await tell(run.id);
      }
    },
  };
}

/** By the series it belongs to, or by nobody: a helper's own helpers end with it. */
function isHeardElsewhere({ series, parent }: { series?: string; parent: HelperParent }): boolean {
  return series !== undefined || parent.chat.channel === SUBAGENT_CHANNEL;
}

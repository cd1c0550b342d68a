// Starts helpers, ends them and tells who asked. Whatever it is told twice changes nothing the second
// time: a start after a crash finds the helper there, an end is one, and an announcement has one id.

import type { MessageBus } from '../../kernel/bus/bus.ts';
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

export class HelperDesk {
  readonly #deps: HelperDeskDeps;
  readonly #ends = new Map<string, PromiseWithResolvers<void>>();
  /** Turns that wait for the end, and hear of it by that. */
  readonly #readers = new Map<string, number>();
  #drive: (run: HelperRun) => void = () => undefined;

  constructor(deps: HelperDeskDeps) {
    this.#deps = deps;
  }

  /** `drive` is handed each series that is to go on. */
  drivenBy(drive: (run: HelperRun) => void): void {
    this.#drive = drive;
  }

  /** Durable when resolved. */
  async begin(run: HelperRun): Promise<void> {
    const { subagents, clock, log } = this.#deps;
    const { runs } = subagents;
    if (run.series === undefined) await removeEndedRuns(subagents, clock.now() - KEEP_MS);
    await runs.change(run.id, () => run);
    log.info('helper started', { helper: run.id, kind: run.plan.kind, parent: run.parent.session });
    try {
      await this.#goOn(run);
    } catch (error) {
      const over = { state: 'failed', result: 'It could not begin.', telling: 'over' } as const;
      await runs.change(run.id, (each) => each && { ...each, ...over, endedAt: clock.now() });
      throw error;
    }
  }

  /** Resolves when it has ended. */
  async over(id: string): Promise<void> {
    const ending = this.#ends.get(id) ?? Promise.withResolvers<void>();
    this.#ends.set(id, ending);
    const run = await this.#deps.subagents.runs.get(id);
    if (run === undefined || run.state !== 'running') this.#ended(id);
    return ending.promise;
  }

  /** While `work` goes on, its caller is who hears of the end; true: they did. */
  async reading(runs: readonly HelperRun[], work: () => Promise<readonly string[]>): Promise<void> {
    const count = (id: string, by: number) =>
      this.#readers.set(id, (this.#readers.get(id) ?? 0) + by);
    for (const { id } of runs) count(id, 1);
    try {
      for (const id of await work()) await this.read(id);
    } finally {
      for (const { id } of runs) {
        count(id, -1);
        if (this.#readers.get(id) === 0) this.#readers.delete(id);
        await this.#tell(id);
      }
    }
  }

  /** Whoever asked has seen how it ended. */
  async read(id: string): Promise<void> {
    await this.#deps.subagents.runs.change(id, (run) =>
      run === undefined || run.state === 'running' || run.telling === 'over'
        ? undefined
        : { ...run, telling: 'over' },
    );
  }

  async end(id: string, { state, result, isForeign }: HelperEnd): Promise<void> {
    const { subagents, clock, log } = this.#deps;
    const ended = await subagents.runs.change(id, (run) =>
      run?.state !== 'running'
        ? undefined
        : {
            ...run,
            ...{ state, result, endedAt: clock.now() },
            ...(isForeign ? { isForeign } : {}),
            telling: isHeardElsewhere(run) ? 'over' : 'due',
          },
    );
    if (ended !== undefined) log.info('helper ended', { helper: id, state });
    await this.#cancelChildren(id);
    this.#ended(id);
    await this.#tell(id);
  }

  /** What came after the end, e.g. because an owner allowed something; `name` is the same each time. */
  async addendum(id: string, name: string, result: string, isForeign: boolean): Promise<void> {
    const told = await this.#deps.subagents.runs.change(
      id,
      (run) => run && { ...run, result, ...(isForeign ? { isForeign } : {}) },
    );
    if (told === undefined || isHeardElsewhere(told)) return;
    await this.#accept(endMessage(told, name, this.#deps.clock.now()));
  }

  /** Ends it with all it started; whether it ran. */
  async cancel(run: HelperRun, how: Cancelled): Promise<boolean> {
    const { subagents, bus, clock, log } = this.#deps;
    const cancelled = await subagents.runs.change(run.id, (each) =>
      each?.state !== 'running'
        ? undefined
        : {
            ...each,
            state: 'cancelled',
            result: `ended ${how}`,
            endedAt: clock.now(),
            telling: 'over',
          },
    );
    await this.#cancelChildren(run.id);
    if (run.plan.kind === 'task') await bus.cancel(helperSession(run.id), 'the helper was ended');
    this.#ended(run.id);
    if (cancelled === undefined) return false;
    log.info('helper ended', { helper: run.id, state: 'cancelled' });
    if (how === 'by a person' && !isHeardElsewhere(run)) {
      await this.#accept(killMessage(cancelled, clock.now()));
    }
    return true;
  }

  /** Takes up what an earlier process left, and forgets what is long over. */
  async recover(): Promise<void> {
    const { subagents, clock } = this.#deps;
    await removeEndedRuns(subagents, clock.now() - KEEP_MS);
    for (const run of await subagents.runs.list()) {
      if (run.state === 'running') await this.#takeUp(run);
      else await this.#tell(run.id);
    }
  }

  async #takeUp(run: HelperRun): Promise<void> {
    const { bus } = this.#deps;
    if (await this.#isOrphan(run)) {
      await this.cancel(run, 'with what it was for');
      return;
    }
    const trace = run.plan.kind === 'task' ? await bus.trace(taskMessageId(run.id)) : undefined;
    if (trace === undefined || trace.state === 'pending') return this.#goOn(run);
    const result = 'It was lost on its way. Start it again if it is still needed.';
    await this.end(run.id, { state: 'failed', result, isForeign: false });
  }

  /** A kill came between the end of what it was for and its own. */
  async #isOrphan({ series, parent }: HelperRun): Promise<boolean> {
    const isBelow = parent.chat.channel === SUBAGENT_CHANNEL;
    const above = series ?? (isBelow ? parent.chat.chat : undefined);
    return above !== undefined && (await this.#deps.subagents.runs.get(above))?.state !== 'running';
  }

  async #goOn(run: HelperRun): Promise<void> {
    if (run.plan.kind === 'task') await this.#accept(taskMessage(run, this.#deps.clock.now()));
    else this.#drive(run);
  }

  async #cancelChildren(id: string): Promise<void> {
    const session = helperSession(id);
    const all = await this.#deps.subagents.runs.list();
    const children = all.filter(
      ({ state, series, parent }) =>
        state === 'running' && (series === id || parent.session === session),
    );
    for (const child of children) await this.cancel(child, 'with what it was for');
  }

  async #tell(id: string): Promise<void> {
    const { subagents, clock } = this.#deps;
    if (this.#readers.has(id)) return;
    const run = await subagents.runs.get(id);
    if (run === undefined || run.state === 'running' || run.telling === 'over') return;
    await this.#accept(endMessage(run, `end-${run.attempt}`, clock.now()));
    await this.read(id);
  }

  async #accept(message: Parameters<MessageBus['accept']>[0][number]['message']): Promise<void> {
    await this.#deps.bus.accept([{ kind: 'queue', message }]);
  }

  #ended(id: string): void {
    this.#ends.get(id)?.resolve();
    this.#ends.delete(id);
  }
}

/** By the series it belongs to, or by nobody: a helper's own helpers end with it. */
function isHeardElsewhere({ series, parent }: { series?: string; parent: HelperParent }): boolean {
  return series !== undefined || parent.chat.channel === SUBAGENT_CHANNEL;
}

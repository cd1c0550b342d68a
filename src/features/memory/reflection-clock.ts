// When the owners' memory is thought over without anybody asking in a chat: every so many hours, where
// the configuration says so and there is something new, and once where the machine's user asked for it.

import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import type { BackgroundTask } from '../../kernel/contributions.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { messageId } from '../../kernel/message/ids.ts';
import { jsonRow, number, rowShape, text } from '../../lib/json/json.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { quietUntil } from '../schedule/rules/quiet-hours.ts';
import type { ReflectionDesk, ThoughtOver } from './reflection-desk.ts';

export const REFLECTION_CLOCK_SCOPE = 'reflection-clock';

export type ReflectionSettings = {
  /** 0: never by itself. */
  readonly everyHours: number;
  readonly apply: 'ask' | 'write';
};

export type ReflectionClockDeps = {
  readonly state: KeyValueStore;
  readonly clock: Clock;
  readonly log: Logger;
  /** Another number once another process has written. */
  revision(): number;
  settings(): ReflectionSettings;
  /** Nobody wants to be asked now. */
  isQuiet(): boolean;
  /** Of what there is to think over. */
  stamp(): Promise<string>;
  /** The same name is thought over once; what came of it. */
  reflect(name: string, apply: ReflectionSettings['apply']): Promise<ThoughtOver>;
  /** To an owner; the same name is told once. */
  tell(name: string, words: string): Promise<void>;
};

type Slot = { readonly at: number; readonly stamp: string };

const SLOT = rowShape<Slot>({ at: number, stamp: text });

const WANTED = 'wanted';
const LAST = 'last';
const HOUR_MS = 3_600_000;
const LOOK_MS = 60_000;

/** Has it thought over as soon as a gateway runs; more than one wish at a time is one. */
export const wantReflection = (state: KeyValueStore, now: number) => state.set(WANTED, `${now}`);

export function createReflectionClock(deps: ReflectionClockDeps) {
  const { state, clock, log } = deps;

  async function asWanted(): Promise<void> {
    const wanted = await state.get(WANTED);
    if (wanted === undefined) return;
    const name = `wanted-${wanted}`;
    const { kind, words } = await deps.reflect(name, 'ask');
    if (kind !== 'asked') await deps.tell(name, words);
    await state.delete(WANTED);
  }

  async function asDue(): Promise<void> {
    const { everyHours, apply } = deps.settings();
    if (everyHours === 0 || deps.isQuiet()) return;
    const row = await state.get(LAST);
    const last = row === undefined ? undefined : jsonRow(row, SLOT);
    const now = clock.now();
    // A clock that was put back counts from now.
    const isDue = last === undefined || last.at > now || now - last.at >= everyHours * HOUR_MS;
    if (!isDue) return;
    const stamp = await deps.stamp();
    if (stamp !== last?.stamp) {
      const name = `after-${last?.at ?? 0}`;
      const { kind, words } = await deps.reflect(name, apply);
      if (kind === 'written') await deps.tell(name, words);
      log.info('memory thought over', { kind });
    }
    await state.set(LAST, JSON.stringify({ at: now, stamp }));
  }

  return {
    async run(signal: AbortSignal): Promise<void> {
      let seen: number | undefined;
      while (!signal.aborted) {
        const revision = deps.revision();
        try {
          if (revision !== seen) await asWanted();
          await asDue();
          seen = revision;
        } catch (error) {
          log.warn('memory not thought over', { error });
        }
        await clock.sleep(LOOK_MS, signal).catch(() => undefined);
      }
    },
  };
}

/** Thinks the owners' memory over as configured, without a message. */
export function reflectionTask(
  { live, clock, log, store, bus, owners }: Kernel,
  desk: Pick<ReflectionDesk, 'byItself'>,
  stamp: () => Promise<string>,
): BackgroundTask {
  const thinking = createReflectionClock({
    ...{ clock, log, stamp, state: store.scope(REFLECTION_CLOCK_SCOPE) },
    revision: () => store.revision(),
    settings() {
      const { enabled, reflection } = live.config.memory;
      return enabled ? reflection : { ...reflection, everyHours: 0 };
    },
    isQuiet() {
      const { quietHours, sessions } = live.config;
      return quietUntil(clock.now(), quietHours, sessions.timeZone) !== undefined;
    },
    reflect: (name, apply) => desk.byItself(name, apply),
    async tell(name, markdown) {
      const id = messageId(`reflection/${name}/told`);
      await bus.send({ id, chat: await owners.askChat(), markdown });
    },
  });
  return { name: 'reflection', run: (signal) => thinking.run(signal) };
}

// A look at HEARTBEAT.md from time to time. Where it asks for nothing no model is asked; where it does,
// a turn with an owner's rights begins, which neither schedules nor changes rules.

import { ALL_RIGHTS, narrowed, type Rights } from '../../kernel/access/rights.ts';
import type { MessageBus } from '../../kernel/bus/bus.ts';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import { messageId } from '../../kernel/message/ids.ts';
import { OWNER_TURN } from '../../kernel/message/notes.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { createDayText } from '../../lib/time/zone-time.ts';
import { readHours } from '../letters/rules/letter.ts';
import { HEARTBEAT, jobChat } from './rules/job.ts';
import { asksForSomething, heartbeatText } from './rules/job-report.ts';
import { isWithinHours } from './rules/quiet-hours.ts';

export type HeartbeatSettings = {
  readonly enabled: boolean;
  readonly everyMins: number;
  /** `08:00-22:00`; empty: at any time. */
  readonly activeHours: string;
  readonly timeZone: string;
};

export type HeartbeatDeps = {
  readonly state: KeyValueStore;
  readonly bus: Pick<MessageBus, 'accept' | 'trace'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Of an owner, alone with the agent. */
  readonly ownerRights: Rights;
  settings(): HeartbeatSettings;
  /** Leaves out of its conversation what was before. */
  beginAnew(): Promise<void>;
  /** Undefined where there is none. */
  readFile(): Promise<string | undefined>;
};

const LOOKED = 'looked';
/** When the newest turn began: a look may have begun none. */
const BEGUN = 'begun';
const DAY = 'day';
const MINUTE_MS = 60_000;
const LOOK_MS = MINUTE_MS;
const NARROWER: Rights = { ...ALL_RIGHTS, rules: 'never', schedule: 'never' };

export function createHeartbeat(deps: HeartbeatDeps) {
  const { state, bus, clock, log, settings } = deps;
  const dayText = createDayText();
  const rights = narrowed(deps.ownerRights, NARROWER);

  /** When the file was last looked at; a clock that was put back counts from now. */
  async function lastLook(): Promise<number | undefined> {
    const at = Number(await state.get(LOOKED));
    return at > 0 && at <= clock.now() ? at : undefined;
  }

  /** It knows what it did today, so that it does once what is due once a day, and no more. */
  async function beginDay(now: number) {
    const day = dayText(now, settings().timeZone);
    if ((await state.get(DAY)) === day) return;
    await deps.beginAnew();
    await state.set(DAY, day);
  }

  async function isUnderWay(): Promise<boolean> {
    const at = await state.get(BEGUN);
    return at !== undefined && (await bus.trace(nameOf(at)))?.state === 'pending';
  }

  async function look(now: number) {
    const { activeHours, timeZone } = settings();
    if (readHours(activeHours) !== undefined && !isWithinHours(now, activeHours, timeZone)) return;
    const file = (await deps.readFile()) ?? '';
    if (!asksForSomething(file)) return;
    if (await isUnderWay()) return log.info('heartbeat skipped: one is under way');
    await beginDay(now);
    const message = {
      id: nameOf(now),
      chat: jobChat(HEARTBEAT),
      sender: { kind: 'system', source: 'heartbeat', rights, person: OWNER_TURN },
      addressing: 'direct',
      text: heartbeatText(file),
      sentAt: now,
      receivedAt: now,
    } as const;
    await state.set(BEGUN, `${now}`);
    await bus.accept([{ kind: 'queue', message }]);
  }

  return {
    async run(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        const { enabled, everyMins } = settings();
        const before = await lastLook();
        const now = clock.now();
        if (enabled && (before === undefined || now - before >= everyMins * MINUTE_MS)) {
          // Noted first: a file that cannot be dealt with is not asked about again at once.
          await state.set(LOOKED, `${now}`);
          await look(now);
        }
        await clock.sleep(LOOK_MS, signal).catch(() => undefined);
      }
    },
  };
}

const nameOf = (at: number | string) => messageId(`cron/${HEARTBEAT}/${at}`);

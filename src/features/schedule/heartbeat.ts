// The heartbeat: reads HEARTBEAT.md at intervals. Without tasks in it no model is called; with
// tasks, a turn with an owner's rights starts, which may not schedule or change rules.

import { narrowed, type Rights, UNRESTRICTED } from '../../kernel/access/rights.ts';
import type { MessageBus } from '../../kernel/bus/bus.ts';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import type { Config } from '../../kernel/config/config.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { messageId } from '../../kernel/message/ids.ts';
import { writtenNow } from '../../kernel/message/message.ts';
import { OWNER_TURN } from '../../kernel/message/untrusted.ts';
import { createDayText, isWithinHours, readHours } from '../../lib/time/zone-time.ts';
import { asksForSomething, HEARTBEAT, heartbeatText } from './rules/job.ts';
import { jobChat } from './settings.ts';

type HeartbeatDeps = Pick<Kernel, 'clock' | 'log'> & {
  readonly state: KeyValueStore;
  readonly bus: Pick<MessageBus, 'accept' | 'trace'>;
  /** The rights of an owner in a private chat. */
  ownerRights(): Rights;
  settings(): Omit<Config['heartbeat'], 'chat'> & { readonly timeZone: string };
  /** Resets its conversation. */
  beginAnew(): Promise<void>;
  /** Undefined where the file does not exist. */
  readFile(): Promise<string | undefined>;
};

const LOOKED = 'looked';
/** Time of the newest turn; a look without tasks starts none. */
const BEGUN = 'begun';
const DAY = 'day';
const MINUTE_MS = 60_000;
const LOOK_MS = MINUTE_MS;
const NARROWER: Rights = {
  ...UNRESTRICTED,
  ...{ rules: 'never', schedule: 'never', own: ['write'] },
};

export type Heartbeat = ReturnType<typeof createHeartbeat>;

export function createHeartbeat(deps: HeartbeatDeps) {
  const { state, bus, clock, log, settings } = deps;
  const dayText = createDayText();

  /** Time of the last look; undefined also where the clock was set back behind it. */
  async function lastLook(): Promise<number | undefined> {
    const at = Number(await state.get(LOOKED));
    return at > 0 && at <= clock.now() ? at : undefined;
  }

  /**
   * The conversation is reset daily: it shows what was done today, so that daily tasks run once.
   */
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

  async function look(now: number): Promise<'begun' | 'nothing' | 'running'> {
    const file = (await deps.readFile()) ?? '';
    if (!asksForSomething(file)) return 'nothing';
    if (await isUnderWay()) return 'running';
    await beginDay(now);
    const rights = narrowed(deps.ownerRights(), NARROWER);
    const message = {
      ...{ id: nameOf(now), chat: jobChat(HEARTBEAT), text: heartbeatText(file) },
      sender: { kind: 'system', source: 'heartbeat', rights, person: OWNER_TURN },
    } as const;
    await state.set(BEGUN, `${now}`);
    await bus.accept([{ kind: 'queue', message: writtenNow(message, now) }]);
    return 'begun';
  }

  return {
    /** For people. `lookedAt`: of the last look; `begunAt`: of the last that found a task. */
    async state() {
      const looked = Number(await state.get(LOOKED));
      const begun = Number(await state.get(BEGUN));
      return {
        isRunning: await isUnderWay(),
        ...(looked > 0 ? { lookedAt: looked } : {}),
        ...(begun > 0 ? { begunAt: begun } : {}),
      };
    },
    /** A look at once, whatever the hours; the next one by itself comes as if it had not been. */
    lookNow: () => look(clock.now()),
    async run(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        const { enabled, everyMins, activeHours, timeZone } = settings();
        const before = await lastLook();
        const now = clock.now();
        if (enabled && (before === undefined || now - before >= everyMins * MINUTE_MS)) {
          // Stored first: a file that causes errors is not retried at once.
          await state.set(LOOKED, `${now}`);
          const isTime =
            readHours(activeHours) === undefined || isWithinHours(now, activeHours, timeZone);
          if (isTime && (await look(now)) === 'running') {
            log.info('heartbeat skipped: the previous one is running');
          }
        }
        await clock.sleep(LOOK_MS, signal).catch(() => undefined);
      }
    },
  };
}

const nameOf = (at: number | string) => messageId(`cron/${HEARTBEAT}/${at}`);

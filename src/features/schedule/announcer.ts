// Sends to a chat what the gateway says unprompted: at once, or together at the end of the person's
// quiet hours. Stored before it is acknowledged; one id is sent once.

import { randomUUID } from 'node:crypto';
import type { MessageBus } from '../../kernel/bus/bus.ts';
import type { Kernel } from '../../kernel/feature.ts';
import type { OutboundAttachment } from '../../kernel/message/attachment.ts';
import { type MessageId, messageId, type SessionKey } from '../../kernel/message/ids.ts';
import {
  type ChatRef,
  type InboundMessage,
  sessionKeyOf,
  writtenNow,
} from '../../kernel/message/message.ts';
import type { KeepNote } from '../../kernel/owners.ts';
import { jsonRows, MARKS } from '../../kernel/rows.ts';
import { createLanes } from '../../lib/async.ts';
import { flag, listShape, number, place, rowShape, text } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import { sleepOrWoken } from '../../lib/time/clock.ts';
import { createMinuteText } from '../../lib/time/zone-time.ts';
import { nameAfter } from './rules/job.ts';

type Announcement = {
  /** Stable: the same source always gives the same id. */
  readonly id: string;
  readonly chat: ChatRef;
  /** The source in a few words, without markup. */
  readonly title: string;
  readonly markdown: string;
  readonly attachments?: readonly OutboundAttachment[];
  /** It may contain untrusted content. */
  readonly isForeign: boolean;
  /** The time that the person chose for it; quiet hours do not delay it then. */
  readonly chosenAt?: number;
};

type Announcements = readonly [Announcement, ...Announcement[]];

type AnnouncerDeps = Pick<Kernel, 'rows' | 'clock'> & {
  readonly bus: Pick<MessageBus, 'accept' | 'trace'>;
  sessionOf(chat: ChatRef): Promise<SessionKey>;
  /**
   * The end of the quiet hours that apply in the chat at the moment (default: now); undefined: none
   * apply.
   */
  quietUntil(
    chat: ChatRef,
    at?: number,
  ): Promise<{ readonly at: number; readonly timeZone: string } | undefined>;
};

type Held = Announcement & { readonly at: number; readonly timeZone: string };

const HELD_ROW = rowShape<Held>({
  ...{ id: text, chat: place, title: text, markdown: text, isForeign: flag, at: number },
  timeZone: text,
});
const HELD_ROWS = listShape(HELD_ROW);

const SCOPE = 'announcements';
const KEEP_DONE_MS = 7 * 86_400_000;
const LOOK_MS = 60_000;
/** Sleep where nothing is held back. */
const IDLE_MS = 86_400_000;

export type Announcer = ReturnType<typeof createAnnouncer>;

export function createAnnouncer(deps: AnnouncerDeps) {
  const { rows, bus, clock } = deps;
  const waiting = rows({
    ...jsonRows(HELD_ROW),
    ...{ scope: SCOPE, prefix: 'held:' },
    order: (one, other) => one.at - other.at,
  });
  const done = rows({ ...MARKS, scope: SCOPE, prefix: 'done:' });
  const batches = rows({ ...jsonRows(HELD_ROWS), scope: SCOPE, prefix: 'batch:' });
  const lanes = createLanes();
  const minuteText = createMinuteText();
  let changed = Promise.withResolvers<void>();

  async function say(id: MessageId, announcements: Announcements) {
    const message = messageOf(id, announcements, clock.now());
    const session = await deps.sessionOf(message.chat);
    await bus.accept([{ kind: 'queue', message: { ...message, session } }]);
  }

  async function announce(announcement: Announcement) {
    const id = messageId(`announced/${announcement.id}`);
    if ((await waiting.get(announcement.id)) !== undefined) return;
    if ((await done.get(announcement.id)) !== undefined) return;
    if ((await bus.trace(id)) !== undefined) return;
    const { chosenAt, ...rest } = announcement;
    const quiet = await deps.quietUntil(rest.chat);
    const isChosen = async (at: number) => (await deps.quietUntil(rest.chat, at)) !== undefined;
    if (quiet === undefined || (chosenAt !== undefined && (await isChosen(chosenAt)))) {
      return say(id, [rest]);
    }
    const held: Held = { ...rest, at: clock.now(), timeZone: quiet.timeZone };
    await waiting.change(announcement.id, () => held);
    changed.resolve();
  }

  async function held(): Promise<readonly (readonly [Held, ...Held[]])[]> {
    const byChat = Map.groupBy(await waiting.list(), ({ chat }) => sessionKeyOf(chat));
    return [...byChat.values()].flatMap(([first, ...more]) =>
      first === undefined ? [] : [[first, ...more] as const],
    );
  }

  /** Joined in one transaction, so that after a crash the same text is sent once. */
  async function gather(together: readonly [Held, ...Held[]]) {
    await batches.change(
      together[0].id,
      () => together,
      () => together.flatMap(({ id }) => [waiting.write(id, undefined), done.write(id, {})]),
    );
  }

  async function sayBatches() {
    for (const [id, [first, ...more]] of await batches.entries()) {
      if (first !== undefined) {
        await say(messageId(`announced/batch:${id}`), [dated(first), ...more.map(dated)]);
      }
      await batches.change(id, () => 'remove');
      await done.expire(clock.now() - KEEP_DONE_MS);
    }
  }

  /** Adds the original time to a delayed announcement. */
  function dated(announcement: Held): Announcement {
    const time = minuteText(announcement.at, announcement.timeZone).slice(-5);
    return { ...announcement, title: `${announcement.title}, ${time}` };
  }

  /** The next moment to check, epoch milliseconds; undefined: nothing is held back. */
  async function release(): Promise<number | undefined> {
    await sayBatches();
    const ends: number[] = [];
    for (const together of await held()) {
      const quiet = await deps.quietUntil(together[0].chat);
      if (quiet === undefined) await gather(together);
      else ends.push(quiet.at);
    }
    await sayBatches();
    return ends.length === 0 ? undefined : Math.min(...ends);
  }

  const inTurn = (announcement: Announcement) => lanes.run(SCOPE, () => announce(announcement));

  return {
    /** Durable when it resolves. @throws BusFullError: nothing was stored */
    announce: inTurn,
    /** Holds a notice to an owner back until the end of their quiet hours; false: there are none. */
    keepNote: (async (markdown, chat) => {
      if ((await deps.quietUntil(chat)) === undefined) return false;
      const id = `note/${randomUUID()}`;
      await inTurn({ id, chat, title: t`Notice`, markdown, isForeign: true });
      return true;
    }) satisfies KeepNote,
    /** Sends at the end of quiet hours what they held back. */
    async run(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        changed = Promise.withResolvers<void>();
        const at = await lanes.run(SCOPE, release);
        // Quiet hours or the system clock may change before that.
        const restMs = at === undefined ? IDLE_MS : Math.min(LOOK_MS, at - clock.now());
        await sleepOrWoken(clock, restMs, changed.promise, signal);
      }
    },
  };
}

function messageOf(id: MessageId, announcements: Announcements, now: number): InboundMessage {
  const [first] = announcements;
  const attachments = announcements.flatMap((each) => each.attachments ?? []);
  const isForeign = announcements.some((each) => each.isForeign);
  const message = {
    ...{ id, chat: first.chat, announces: { attachments } },
    sender: { kind: 'system', source: 'cron', ...(isForeign ? { isTainted: isForeign } : {}) },
    text: announcements.map(spoken).join('\n\n'),
  } as const;
  return writtenNow(message, now);
}

/** A title that is derived from the text is not repeated. */
const spoken = ({ title, markdown }: Announcement) =>
  title === nameAfter(markdown) ? markdown : `**${title}**\n\n${markdown}`;

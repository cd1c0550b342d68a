// Hands to a chat what the machine says of its own accord: at once, or at the end of the quiet hours of
// whoever is there, all together. On disk before anything is acknowledged; the same id is said once.

import { randomUUID } from 'node:crypto';
import type { MessageBus } from '../../kernel/bus/bus.ts';
import type { OutboundAttachment } from '../../kernel/message/attachment.ts';
import { type MessageId, messageId, type SessionKey } from '../../kernel/message/ids.ts';
import { type ChatRef, type InboundMessage, sessionKeyOf } from '../../kernel/message/message.ts';
import type { KeepNote } from '../../kernel/owners.ts';
import { jsonRows, MARKS, type OpenRows } from '../../kernel/rows.ts';
import { createLanes } from '../../lib/async.ts';
import { flag, listShape, number, place, rowShape, text } from '../../lib/json/json.ts';
import { type Clock, sleepOrWoken } from '../../lib/time/clock.ts';
import { createMinuteText } from '../../lib/time/zone-time.ts';
import { nameAfter } from './rules/job.ts';

type Announcement = {
  /** Whatever it comes from always gives the same. */
  readonly id: string;
  readonly chat: ChatRef;
  /** Who speaks, in a few words without markup. */
  readonly title: string;
  readonly markdown: string;
  readonly attachments?: readonly OutboundAttachment[];
  /** It may hold untrusted content. */
  readonly isForeign: boolean;
  /** The time at which the person who gets it wants it; in their quiet hours, these do not hold it. */
  readonly chosenAt?: number;
};

type AnnouncerDeps = {
  readonly rows: OpenRows;
  readonly bus: Pick<MessageBus, 'accept' | 'trace'>;
  readonly clock: Clock;
  sessionOf(chat: ChatRef): Promise<SessionKey>;
  /** When the quiet hours of the chat end that hold at the moment (left out: now); undefined: none hold. */
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
/** Nothing waits. */
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

  async function say(id: MessageId, announcements: readonly [Announcement, ...Announcement[]]) {
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

  /** Taken together in one transaction, so that a kill behind it says them once, and the same. */
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

  /** Said later than it was meant: the time belongs to it. */
  function dated(announcement: Held): Announcement {
    const time = minuteText(announcement.at, announcement.timeZone).slice(-5);
    return { ...announcement, title: `${announcement.title}, ${time}` };
  }

  /** The next moment to look again; undefined: nothing waits. */
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

  return {
    /** Durable when resolved. @throws BusFullError: nothing was kept */
    announce: (announcement: Announcement): Promise<void> =>
      lanes.run(SCOPE, () => announce(announcement)),
    /** Says at the end of quiet hours what waited for it. */
    async run(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        changed = Promise.withResolvers<void>();
        const at = await lanes.run(SCOPE, release);
        // Somebody may change their hours, or the clock of the machine, before that.
        const restMs = at === undefined ? IDLE_MS : Math.min(LOOK_MS, at - clock.now());
        await sleepOrWoken(clock, restMs, changed.promise, signal);
      }
    },
  };
}

function messageOf(
  id: MessageId,
  announcements: readonly [Announcement, ...Announcement[]],
  now: number,
): InboundMessage {
  const [first] = announcements;
  const attachments = announcements.flatMap((each) => each.attachments ?? []);
  const isForeign = announcements.some((each) => each.isForeign);
  return {
    id,
    chat: first.chat,
    sender: { kind: 'system', source: 'cron', ...(isForeign ? { isTainted: true } : {}) },
    addressing: 'direct',
    text: announcements.map(spoken).join('\n\n'),
    announces: { attachments },
    sentAt: now,
    receivedAt: now,
  };
}

/** What is named after its own words is not said twice. */
const spoken = ({ title, markdown }: Announcement) =>
  title === nameAfter(markdown) ? markdown : `**${title}**\n\n${markdown}`;

// Keeps notes to an owner for the end of their quiet hours.

type NoteKeeperDeps = Pick<AnnouncerDeps, 'quietUntil'> & {
  readonly announcer: Pick<Announcer, 'announce'>;
};

const TITLE = 'Notice';

export function createNoteKeeper({ announcer, quietUntil }: NoteKeeperDeps): KeepNote {
  return async (markdown, chat) => {
    if ((await quietUntil(chat)) === undefined) return false;
    const id = `note/${randomUUID()}`;
    await announcer.announce({ id, chat, title: TITLE, markdown, isForeign: true });
    return true;
  };
}

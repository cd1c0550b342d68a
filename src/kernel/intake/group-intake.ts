// Intake steps for groups: talk among others is kept as context, messages for the agent get the
// talk before them, and a call from an unlisted group is reported to the owner. Nothing is sent to
// that group.

import type { ShowOutcome } from '../../channels/channel.ts';
import { listShape, number, rowShape, text } from '../../lib/json/json.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { AdmittedRole, SettledVerdict, Verdict } from '../access/admission.ts';
import { parseCommand, unlistedGroupText } from '../access/admission.ts';
import type { InboundEntry } from '../bus/bus.ts';
import { type AccountName, accountName } from '../message/ids.ts';
import { type HeardLine, type InboundMessage, sessionKeyOf } from '../message/message.ts';
import { jsonRows, type OpenRows } from '../rows.ts';
import { withSaid } from './rules/group-talk.ts';

type GroupIntakeDeps = {
  readonly buffer: GroupBuffer;
  /** Sends the owner a notice about an account. */
  tellOwner(text: string, about: AccountName): void;
};

/** The role of an admitted sender, and whether the message asks for an answer or is a command. */
export type CountedAs = { readonly role: AdmittedRole; readonly as: 'message' | 'command' };

/**
 * The result of admission for one message: the entry to store and what follows once it is stored.
 */
export type Gated = {
  readonly entry: InboundEntry;
  /** It is group talk, context for later messages. */
  readonly isHeard?: true;
  /** It was admitted, and counts against its sender's limits. */
  readonly counts?: CountedAs;
  /** Runs before it is stored; may run again. */
  readonly before?: () => Promise<void>;
  /** `show`: for the outcome of a button press. */
  readonly afterwards?: (show: ShowOutcome | undefined) => Promise<void>;
};

/** Decides about a message, or leaves it to the later steps. */
export type IntakeStep = {
  readonly name: string;
  decide(
    message: InboundMessage,
    verdict: SettledVerdict,
    judged: Verdict,
  ): Gated | undefined | Promise<Gated | undefined>;
};

export type GroupIntake = ReturnType<typeof createGroupIntake>;

/** It changes an earlier message or is a reaction to one. */
export const isNote = ({ amends, reaction }: InboundMessage) =>
  amends !== undefined || reaction !== undefined;

export function createGroupIntake({ buffer, tellOwner }: GroupIntakeDeps) {
  const said = (message: InboundMessage) => ({
    isHeard: true as const,
    afterwards: () => buffer.note(message),
  });
  return {
    /** Said in a group and not to the agent. */
    heard: (message: InboundMessage, gate: string): Gated => ({
      entry: { kind: 'record', message, gate },
      ...said(message),
    }),

    /** What a change of a message changes of the talk; nothing outside of groups. */
    changed: (message: InboundMessage) =>
      message.group === undefined || message.amends === undefined ? {} : said(message),

    /** Said to the agent in a group that is not listed, by a person who may talk to it. */
    called: (message: InboundMessage, gate: string): Gated => ({
      entry: { kind: 'record', message, gate },
      async afterwards() {
        if (await buffer.isFirstCall(message)) {
          tellOwner(unlistedGroupText(message), accountName(message.chat));
        }
      },
    }),

    /** The batch, in which messages for the agent include the earlier talk of their group. */
    withTalk: (batch: readonly Gated[]): Promise<readonly Gated[]> =>
      Promise.all(
        batch.map(async (item, index) => {
          const { entry } = item;
          if (entry.kind !== 'queue' || entry.message.group === undefined) return item;
          const before = batch.slice(0, index).filter(({ isHeard }) => isHeard);
          const earlier = before.map((one) => one.entry.message);
          const message = await buffer.withTalk(entry.message, earlier);
          const { afterwards } = item;
          return {
            ...item,
            entry: { ...entry, message },
            async afterwards(show) {
              await afterwards?.(show);
              await buffer.shown(message);
            },
          };
        }),
      ),
  };
}

// Group talk that was not addressed to the agent, per conversation: durable, bounded and
// short-lived. It is shown once, with the next message for the agent. Admission decides which talk
// counts.

/** Older talk is of no use as context. */
const MAX_AGE_MS = 24 * 3_600_000;
const SCOPE = 'groups';

const LINES = listShape(rowShape<HeardLine>({ id: text, author: text, text, at: number }));

export type GroupBuffer = ReturnType<typeof createGroupBuffer>;

export function createGroupBuffer(rows: OpenRows, clock: Clock) {
  const talk = rows({ ...jsonRows(LINES), scope: SCOPE, prefix: 'heard:' });
  /** When the agent was first called there. */
  const calls = rows({
    read: (at) => ({ at }),
    write: ({ at }) => at,
    ...{ scope: SCOPE, prefix: 'called:' },
  });
  const recent = (lines: readonly HeardLine[] = []) =>
    lines.filter(({ at }) => clock.now() - at < MAX_AGE_MS);

  return {
    /** Stores talk among others, or a change of it. */
    async note(message: InboundMessage): Promise<void> {
      await talk.change(sessionKeyOf(message.chat), (lines) => {
        const all = withSaid(recent(lines), message);
        return all.length === 0 ? 'remove' : all;
      });
    },

    /** The message with the talk before it; `earlier` came with it and is not stored yet. */
    async withTalk(
      message: InboundMessage,
      earlier: readonly InboundMessage[],
    ): Promise<InboundMessage> {
      const { text, amends, reaction } = message;
      // A command is executed, a reaction or deletion noted: the model reads none of them.
      const isNoted = reaction !== undefined || amends?.kind === 'withdrawn';
      if (parseCommand(text) !== undefined || isNoted) return message;
      const session = sessionKeyOf(message.chat);
      const ofSession = earlier.filter(({ chat }) => sessionKeyOf(chat) === session);
      const kept = recent(await talk.get(session));
      const lines = ofSession.reduce(withSaid, kept);
      // Of the changes, only that of a line of the talk can be a message of its own.
      const heard = lines.filter(({ id }) => id !== amends?.id);
      if (amends !== undefined && heard.length === lines.length) return message;
      return heard.length === 0 ? message : { ...message, heard };
    },

    /** Deletes the talk that was shown with this message. */
    async shown({ chat, amends, heard = [] }: InboundMessage): Promise<void> {
      const ids = new Set(
        [...heard, ...(amends === undefined ? [] : [amends])].map(({ id }) => id),
      );
      if (ids.size === 0) return;
      await talk.change(sessionKeyOf(chat), (lines) => {
        const rest = recent(lines).filter(({ id }) => !ids.has(id));
        return rest.length === 0 ? 'remove' : rest;
      });
    },

    /** Deletes talk that is too old, in groups that are quiet. */
    async expire(): Promise<void> {
      await talk.expire(clock.now() - MAX_AGE_MS);
    },

    /** True for the first call of the agent in this unlisted group. */
    async isFirstCall({ chat: { channel, account, chat } }: InboundMessage): Promise<boolean> {
      const at = `${clock.now()}`;
      const first = await calls.change(`${channel}:${account}:${chat}`, (known) =>
        known === undefined ? { at } : undefined,
      );
      return first !== undefined;
    },
  };
}

// The part of the way in that only groups have: talk among others is kept, what is for the agent gets
// the talk before it, and a call from an unlisted group is told to the owner. Nothing is said there.

import type { ShowOutcome } from '../../channels/channel.ts';
import type { AdmittedRole } from '../access/admission.ts';
import { unlistedGroupText } from '../access/group-names.ts';
import type { InboundEntry } from '../bus/bus.ts';
import { type AccountName, accountName } from '../message/account.ts';
import type { InboundMessage } from '../message/message.ts';
import type { GroupBuffer } from './group-buffer.ts';

export type GroupIntakeDeps = {
  readonly buffer: GroupBuffer;
  /** Tells the owner something about an account. */
  tellOwner(text: string, about: AccountName): void;
};

/** By whom a message is that was let in, and whether it asks for an answer or gives a command. */
export type CountedAs = { readonly role: AdmittedRole; readonly as: 'message' | 'command' };

/** What the gate made of one message: the entry to store and what follows once it is stored. */
export type Gated = {
  readonly entry: InboundEntry;
  /** It is group talk, of interest to those behind it. */
  readonly isHeard?: true;
  /** It was let in, and counts among what its sender may have answered. */
  readonly counts?: CountedAs;
  /** Done before it is stored; may be done again. */
  readonly before?: () => Promise<void>;
  /** `show`: for what came of a press. */
  readonly afterwards?: (show: ShowOutcome | undefined) => Promise<void>;
};

export interface GroupIntake {
  /** Said in a group and not to the agent. */
  heard(message: InboundMessage, gate: string): Gated;
  /** Said to the agent in a group that is not listed, by somebody who may speak to it. */
  called(message: InboundMessage, gate: string): Gated;
  /** The batch, in which what is for the agent holds what was said in its group before. */
  withTalk(batch: readonly Gated[]): Promise<readonly Gated[]>;
}

export function createGroupIntake({ buffer, tellOwner }: GroupIntakeDeps): GroupIntake {
  return {
    heard: (message, gate) => ({
      entry: { kind: 'record', message, gate },
      isHeard: true,
      afterwards: () => buffer.note(message),
    }),

    called: (message, gate) => ({
      entry: { kind: 'record', message, gate },
      async afterwards() {
        if (await buffer.isFirstCall(message)) {
          tellOwner(unlistedGroupText(message), accountName(message.chat));
        }
      },
    }),

    withTalk: (batch) =>
      Promise.all(
        batch.map(async (item, index) => {
          const { entry } = item;
          if (entry.kind !== 'queue' || entry.message.group === undefined) return item;
          const before = batch.slice(0, index).filter(({ isHeard }) => isHeard);
          const earlier = before.map((one) => one.entry.message);
          const message = await buffer.withTalk(entry.message, earlier);
          const { afterwards } = item;
          return {
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

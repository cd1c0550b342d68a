// The mails an owner was shown or is to be shown, and how far each is: on disk, and in memory as they
// are on disk, so that no message of the owner costs a look into the store.

import { z } from 'zod';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import type { MessageId } from '../../kernel/message/ids.ts';
import { type ChatRef, sessionKeyOf } from '../../kernel/message/message.ts';
import { createLanes, readOnce } from '../../lib/async.ts';
import { jsonRow, kind, number, place, rowShape, text, texts } from '../../lib/json/json.ts';
import type { MailNote } from './rules/bridge.ts';
import type { MailSummary } from './rules/summary.ts';

export type MailStage =
  /** To be shown as soon as may be. */
  | { readonly kind: 'waiting' }
  /** `isAsked`: the question is surely on disk too. */
  | { readonly kind: 'shown'; readonly chat: ChatRef; readonly isAsked: boolean }
  /** Epoch milliseconds. */
  | { readonly kind: 'snoozed'; readonly until: number }
  /** What the owner writes next in the chat is the answer. */
  | { readonly kind: 'writing'; readonly chat: ChatRef; readonly until: number }
  | {
      readonly kind: 'drafted';
      readonly chat: ChatRef;
      readonly text: string;
      /** The messages it was written in. */
      readonly by: readonly MessageId[];
      readonly hasFiles: boolean;
      readonly isAsked: boolean;
    }
  | { readonly kind: 'archiving'; readonly chat: ChatRef };

export type BridgedMail = {
  readonly id: MessageId;
  readonly chat: ChatRef;
  readonly note: MailNote;
  /** Undefined where the note says it all. */
  readonly summary?: MailSummary;
  /** Number of the newest question about it; 0: none yet. */
  readonly round: number;
  readonly stage: MailStage;
  /** Epoch milliseconds. */
  readonly at: number;
};

const PREFIX = 'mail:';
/** Dealt with, so that the same mail handed over again is not shown again. */
const DONE_PREFIX = 'done:';
const KEEP_DONE_MS = 30 * 86_400_000;

const MAIL = rowShape<BridgedMail>({
  ...{ id: text, chat: place, round: number, stage: kind, at: number },
  note: z.looseObject({ address: text, name: text, subject: text, lines: texts, files: texts }),
});

export class BridgeBook {
  readonly #state: KeyValueStore;
  readonly #lanes = createLanes();
  readonly #mails = readOnce(() => this.#load());

  constructor(state: KeyValueStore) {
    this.#state = state;
  }

  /** Oldest first. */
  async all(): Promise<readonly BridgedMail[]> {
    return [...(await this.#mails()).values()].sort((one, other) => one.at - other.at);
  }

  async get(id: string): Promise<BridgedMail | undefined> {
    return (await this.#mails()).get(id);
  }

  /** The mail for which the owner writes, or wrote by this message, in the chat. */
  async writtenIn(chat: ChatRef, message: MessageId): Promise<BridgedMail | undefined> {
    const mails = await this.#mails();
    if (mails.size === 0) return undefined;
    const place = sessionKeyOf(chat);
    const all = [...mails.values()];
    const taken = all.find(({ stage }) => stage.kind === 'drafted' && stage.by.includes(message));
    // Of several the owner means the one they chose last.
    return (
      taken ??
      all
        .filter(({ stage }) => isWrittenIn(stage, place))
        .sort(byChoice)
        .at(-1)
    );
  }

  /** Keeps a mail that was not seen before. */
  add(mail: BridgedMail): Promise<void> {
    return this.#lanes.run('mails', async () => {
      const mails = await this.#mails();
      if (mails.has(mail.id)) return;
      if ((await this.#state.get(`${DONE_PREFIX}${mail.id}`)) !== undefined) return;
      await this.#put(mail);
    });
  }

  /**
   * One step at a time; `step` gives the mail's next form, `done` where it is dealt with, or
   * undefined to leave it. Returns whether anything changed.
   */
  change(
    id: string,
    step: (mail: BridgedMail) => BridgedMail | 'done' | undefined,
  ): Promise<boolean> {
    return this.#lanes.run('mails', async () => {
      const mail = await this.get(id);
      const next = mail && step(mail);
      if (next === undefined) return false;
      if (next === 'done') await this.#close(id);
      else await this.#put(next);
      return true;
    });
  }

  /** Forgets mails that were dealt with long ago. */
  async expire(now: number): Promise<void> {
    await this.#state.expire(DONE_PREFIX, now - KEEP_DONE_MS);
  }

  async #put(mail: BridgedMail): Promise<void> {
    await this.#state.set(`${PREFIX}${mail.id}`, JSON.stringify(mail));
    (await this.#mails()).set(mail.id, mail);
  }

  async #close(id: string): Promise<void> {
    await this.#state.setMany([
      { key: `${PREFIX}${id}`, value: undefined },
      { key: `${DONE_PREFIX}${id}`, value: '' },
    ]);
    (await this.#mails()).delete(id);
  }

  async #load(): Promise<Map<string, BridgedMail>> {
    const rows = await this.#state.list(PREFIX);
    const mails = rows.flatMap(({ value }) => jsonRow(value, MAIL) ?? []);
    return new Map(mails.map((mail) => [mail.id, mail]));
  }
}

const isWrittenIn = (stage: MailStage, place: string) =>
  stage.kind === 'writing' && sessionKeyOf(stage.chat) === place;

const until = ({ stage }: BridgedMail) => ('until' in stage ? stage.until : 0);
const byChoice = (one: BridgedMail, other: BridgedMail) => until(one) - until(other);

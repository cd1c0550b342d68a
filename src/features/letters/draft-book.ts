// Texts for somebody else that an owner has to see first, on disk from the asking to the end, and where
// something was sent before. Read into memory once: every message asks whether it is a new text.

import { createHash } from 'node:crypto';
import { isSameChat } from '../../kernel/access/person.ts';
import type { Rights } from '../../kernel/access/rights.ts';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import type { MessageId } from '../../kernel/message/ids.ts';
import { type ChatRef, sessionKeyOf } from '../../kernel/message/message.ts';
import { FORGOTTEN, type Holds, isOfChats } from '../../kernel/sessions/rules/forgetting.ts';
import { readOnce } from '../../lib/async.ts';
import {
  flag,
  jsonRow,
  number,
  object,
  place,
  rowShape,
  text,
  texts,
} from '../../lib/json/json.ts';
import type { AskingTurn } from '../approvals/approvals.ts';
import type { Letter } from './rules/letter.ts';

export type DraftState = 'open' | 'editing' | 'sent' | 'dropped' | 'expired';

export type Draft = {
  /** `turnId/place of the call`: the same on every retry of the turn. */
  readonly id: string;
  readonly letter: Letter;
  /** Where it goes. */
  readonly chat: ChatRef;
  /** Who that is, in words. */
  readonly name: string;
  /** Those it goes to whom nothing was sent before. */
  readonly newTo: readonly string[];
  readonly turn: Omit<AskingTurn, 'isOwnerHere'>;
  /** Of the turn that asked; those of the turn that hears what came of it. */
  readonly rights: Rights;
  readonly isTainted: boolean;
  /** Where an owner sees it. */
  readonly shownIn: ChatRef;
  /** Every change is asked anew. */
  readonly version: number;
  /** The message that held the newest text. */
  readonly editedBy?: MessageId;
  /** Epoch milliseconds. */
  readonly at: number;
  /** When an owner last chose something about it. */
  readonly changedAt?: number;
  readonly state: DraftState;
};

export const DRAFTS_SCOPE = 'drafts';
const DRAFT = 'draft:';
const WRITTEN = 'written:';
/** A turn is tried again within minutes; limits count a day. */
const KEPT_MS = 3 * 86_400_000;

/** What a press is bound to. */
export function hashOfDraft({ id, chat, letter, version }: Draft): string {
  const parts = [id, sessionKeyOf(chat), letter, version];
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}

export const isWaiting = ({ state }: Draft) => state === 'open' || state === 'editing';

const KEPT = rowShape<Draft>({
  ...{ id: text, letter: object, chat: place, name: text, newTo: texts, turn: object },
  ...{ rights: object, isTainted: flag, shownIn: place, version: number, at: number },
  state: text,
});

export class DraftBook {
  readonly #state: KeyValueStore;
  readonly #drafts = readOnce(() => this.#load());

  constructor(state: KeyValueStore) {
    this.#state = state;
  }

  async get(id: string): Promise<Draft | undefined> {
    return (await this.#drafts()).get(id);
  }

  async put(draft: Draft): Promise<void> {
    const drafts = await this.#drafts();
    await this.#state.set(`${DRAFT}${draft.id}`, JSON.stringify(draft));
    drafts.set(draft.id, draft);
  }

  /** Oldest first. */
  async all(): Promise<readonly Draft[]> {
    return [...(await this.#drafts()).values()].sort((one, other) => one.at - other.at);
  }

  /** Whose next text this message may be, or was before it came again. */
  async editedBy(chat: ChatRef, message: MessageId): Promise<Draft | undefined> {
    const drafts = await this.#drafts();
    if (drafts.size === 0) return undefined;
    const here = (await this.all()).filter(({ shownIn }) => isSameChat(shownIn, chat));
    const taken = here.find((draft) => draft.editedBy === message);
    // Of several the owner means the one they chose last.
    return (
      taken ??
      here
        .filter(({ state }) => state === 'editing')
        .sort(byChoice)
        .at(-1)
    );
  }

  async wasWritten(chat: ChatRef): Promise<boolean> {
    return (await this.#state.get(`${WRITTEN}${sessionKeyOf(chat)}`)) !== undefined;
  }

  async noteWritten(chat: ChatRef): Promise<void> {
    await this.#state.set(`${WRITTEN}${sessionKeyOf(chat)}`, '');
  }

  /** Of letters of these conversations that wait for nobody, the text where it holds the words; how many. */
  async forget(chats: readonly string[], holds: Holds): Promise<number> {
    const found = (await this.all()).filter(
      (draft) =>
        !isWaiting(draft) && isOfChats(draft.turn, chats) && holds(JSON.stringify(draft.letter)),
    );
    for (const draft of found) {
      const { letter } = draft;
      const subject = letter.kind === 'mail' ? { subject: FORGOTTEN } : {};
      await this.put({ ...draft, letter: { ...letter, ...subject, markdown: FORGOTTEN } });
    }
    return found.length;
  }

  async forgetOld(now: number): Promise<void> {
    const drafts = await this.#drafts();
    const old = [...drafts.values()].filter(
      (draft) => draft.at < now - KEPT_MS && !isWaiting(draft),
    );
    for (const { id } of old) {
      await this.#state.delete(`${DRAFT}${id}`);
      drafts.delete(id);
    }
  }

  async #load(): Promise<Map<string, Draft>> {
    const rows = await this.#state.list(DRAFT);
    const drafts = rows.flatMap(({ value }) => jsonRow(value, KEPT) ?? []);
    return new Map(drafts.map((draft) => [draft.id, draft]));
  }
}

const byChoice = (one: Draft, other: Draft) => (one.changedAt ?? 0) - (other.changedAt ?? 0);

// People whose phone number WhatsApp does not tell: an allow list of numbers cannot know them, so they
// are refused, and the owner is told once who wrote and how to let them in.

import { EVERYBODY } from '../../core/admission.ts';
import { normaliseAllowed, personOfId } from '../../core/whatsapp-jid.ts';
import type { Clock } from '../../lib/clock.ts';
import type { KeyValueStore } from '../../store/store.ts';

export interface Unresolved {
  /** Somebody wrote of whom only the LID is known (as ids are spelled). */
  note(lid: string, name: string | undefined): Promise<void>;
}

export type UnresolvedDeps = {
  readonly state: KeyValueStore;
  readonly clock: Clock;
  /** Who may write now. */
  allowFrom(): readonly string[] | Promise<readonly string[]>;
  alert(text: string): void;
};

const DAY_MS = 86_400_000;
/** Strangers must not be able to fill the owner's other channel. */
const MAX_PER_DAY = 20;

export function createUnresolved({ state, clock, allowFrom, alert }: UnresolvedDeps): Unresolved {
  let told: readonly number[] = [];

  return {
    async note(lid, name) {
      if (!wouldNeedNumber((await allowFrom()).map(normaliseAllowed), lid)) return;
      const key = `person/told/${lid}`;
      const now = clock.now();
      told = told.filter((at) => at > now - DAY_MS);
      if (told.length >= MAX_PER_DAY || (await state.get(key)) !== undefined) return;
      told = [...told, now];
      alert(noticeOf(lid, name));
      await state.set(key, String(now));
    },
  };
}

function wouldNeedNumber(allowed: readonly string[], lid: string): boolean {
  if (allowed.includes(EVERYBODY) || allowed.includes(lid)) return false;
  return allowed.some((entry) => personOfId(entry)?.kind === 'number');
}

function noticeOf(lid: string, name: string | undefined): string {
  const who = name === undefined ? lid : `"${name}" (${lid})`;
  return (
    `${who} wrote, and WhatsApp does not say which phone number that is, so the allow list ` +
    `cannot let them in. If you know them: nanobot pair approve whatsapp ${lid}`
  );
}

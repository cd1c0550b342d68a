// People whose phone number WhatsApp does not tell: an allow list of numbers cannot know them, so they
// are refused, and the owner is told once who wrote and how to let them in.

import type { InboundMessage } from '../../core/message.ts';
import { normaliseAllowed, personOfId } from '../../core/whatsapp/jid.ts';
import type { ChannelHost } from '../channel.ts';

export interface Unresolved {
  /** Somebody wrote of whom only the LID is known. */
  note(message: InboundMessage): Promise<void>;
}

export type UnresolvedDeps = {
  readonly host: Pick<ChannelHost, 'state' | 'clock' | 'alert' | 'isStranger'>;
  /** Who may write now, as configured. */
  allowFrom(): readonly string[];
};

const DAY_MS = 86_400_000;
/** Strangers must not be able to fill the owner's other channel. */
const MAX_PER_DAY = 20;

export function createUnresolved({ host, allowFrom }: UnresolvedDeps): Unresolved {
  const { state, clock } = host;
  let told: readonly number[] = [];

  return {
    async note(message) {
      const { sender } = message;
      if (sender.kind !== 'person' || !hasNumbers(allowFrom())) return;
      if (!(await host.isStranger(message))) return;
      const key = `person/told/${sender.id}`;
      const now = clock.now();
      told = told.filter((at) => at > now - DAY_MS);
      if (told.length >= MAX_PER_DAY || (await state.get(key)) !== undefined) return;
      told = [...told, now];
      host.alert(noticeOf(sender.id, sender.name));
      await state.set(key, String(now));
    },
  };
}

/** Only where somebody is let in by number can a known person look like a stranger. */
function hasNumbers(allowed: readonly string[]): boolean {
  return allowed.some((entry) => personOfId(normaliseAllowed(entry))?.kind === 'number');
}

function noticeOf(lid: string, name: string | undefined): string {
  const who = name === undefined ? lid : `"${name}" (${lid})`;
  return (
    `${who} wrote, and WhatsApp does not say which phone number that is, so the allow list ` +
    `cannot let them in. If you know them: nanobot pair approve whatsapp ${lid}`
  );
}

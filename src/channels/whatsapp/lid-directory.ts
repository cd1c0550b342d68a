// Which phone number belongs to a LID, as the vendor's library knows it: from the rows it stored, and
// through the open connection. An answer may be late or never come, and is not waited for long.

import type { SignalKeyStore, SocketConfig } from '@whiskeysockets/baileys';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { inTime } from './change-signal.ts';
import { isPerson, type PersonJid, parseJid } from './rules/jid.ts';

export interface LidDirectory {
  /** The same person's other address; undefined while nobody knows it. */
  otherOf(person: PersonJid): Promise<PersonJid | undefined>;
}

/** `signalRepository.lidMapping` of an open connection. */
export type LidMapping = {
  getLIDForPN(number: string): Promise<string | null>;
  getPNForLID(lid: string): Promise<string | null>;
};

export type LidDirectoryDeps = {
  keys(): Pick<SignalKeyStore, 'get'>;
  /** Undefined while there is no connection. */
  mapping(): LidMapping | undefined;
  readonly clock: Clock;
  readonly log: Logger;
};

/** A message waits no longer than this for an answer. */
const LOOKUP_DEADLINE_MS = 1500;
/** After an answer that did not come in time nothing is asked. */
const REST_MS = 60_000;
/** Somebody of whom nothing was known is asked for again. */
const ASK_AGAIN_MS = 600_000;
const MAX_REMEMBERED = 1000;

export function createLidDirectory(deps: LidDirectoryDeps): LidDirectory {
  const { clock, log } = deps;
  const askedAt = new Map<string, number>();
  let restingUntil = 0;

  async function stored(person: PersonJid): Promise<PersonJid | undefined> {
    const key = person.kind === 'number' ? person.user : `${person.user}_reverse`;
    const rows = await deps.keys().get('lid-mapping', [key]);
    const user = rows[key];
    return user === undefined ? undefined : otherJid(person, `${user}@${otherServer(person)}`);
  }

  async function asked(person: PersonJid): Promise<PersonJid | undefined> {
    const mapping = deps.mapping();
    const name = `${person.kind} ${person.user}`;
    const now = clock.monotonic();
    const isAskedAlready = now < (askedAt.get(name) ?? Number.NEGATIVE_INFINITY) + ASK_AGAIN_MS;
    if (mapping === undefined || now < restingUntil || isAskedAlready) return undefined;
    remember(name, now);
    const answer = await inTime(clock, LOOKUP_DEADLINE_MS, ask(mapping, person));
    if (answer === 'late') {
      restingUntil = clock.monotonic() + REST_MS;
      log.info('whatsapp identity lookup took too long');
      return undefined;
    }
    return otherJid(person, answer);
  }

  function remember(name: string, now: number) {
    askedAt.delete(name);
    askedAt.set(name, now);
    const [oldest] = askedAt.keys();
    if (askedAt.size > MAX_REMEMBERED && oldest !== undefined) askedAt.delete(oldest);
  }

  /** A connection that closes meanwhile means the same as nothing known. */
  async function ask(mapping: LidMapping, person: PersonJid): Promise<string | undefined> {
    try {
      const answer =
        person.kind === 'number'
          ? await mapping.getLIDForPN(`${person.user}@s.whatsapp.net`)
          : await mapping.getPNForLID(`${person.user}@lid`);
      return answer ?? undefined;
    } catch (error) {
      log.info('whatsapp identity lookup failed', { error });
      return undefined;
    }
  }

  return { otherOf: async (person) => (await stored(person)) ?? (await asked(person)) };
}

const otherServer = ({ kind }: PersonJid) => (kind === 'number' ? 'lid' : 's.whatsapp.net');

function otherJid(person: PersonJid, text: string | undefined): PersonJid | undefined {
  const jid = parseJid(text);
  return isPerson(jid) && jid.kind !== person.kind ? jid : undefined;
}

// Asks WhatsApp which LID belongs to a phone number, in bounded time: a session call waits for the
// answer, and behind it every chat. Known pairs are kept by Baileys' own mapping store.

type Ask = NonNullable<Parameters<SocketConfig['makeSignalRepository']>[2]>;

export type LidLookupDeps = {
  readonly ask: Ask | undefined;
  readonly clock: Clock;
  readonly log: Logger;
};

const ANSWER_DEADLINE_MS = 5_000;
/** So long a number without an answer counts as one without a LID: it is addressed by number. */
const UNKNOWN_FOR_MS = 60_000;
const MAX_UNKNOWN = 1_000;

/** Never rejects: who cannot be found, or not in time, is left out. */
export function createLidLookup({ ask, clock, log }: LidLookupDeps): Ask {
  const unknownUntil = new Map<string, number>();

  function remember(numbers: readonly string[]): void {
    if (unknownUntil.size + numbers.length > MAX_UNKNOWN) unknownUntil.clear();
    for (const number of numbers) unknownUntil.set(number, clock.monotonic() + UNKNOWN_FOR_MS);
  }

  return async (numbers) => {
    const now = clock.monotonic();
    const asked = numbers.filter((number) => (unknownUntil.get(number) ?? 0) <= now);
    if (ask === undefined || asked.length === 0) return [];
    const answer = await inTime(clock, ANSWER_DEADLINE_MS, ask(asked)).catch(() => 'late' as const);
    if (answer === 'late') log.warn('WhatsApp did not say whose number it is');
    const found = answer === 'late' ? [] : (answer ?? []);
    remember(asked.filter((number) => !found.some(({ pn }) => pn === number)));
    return found;
  };
}

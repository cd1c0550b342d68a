// Which phone number belongs to a LID, as the vendor's library knows it: from the rows it stored, and
// through the open connection. An answer may be late or never come, and is not waited for long.

import type { SignalKeyStore } from '@whiskeysockets/baileys';
import { isPerson, type PersonJid, parseJid } from '../../core/whatsapp/jid.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/logger.ts';
import { inTime } from './deadline.ts';

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

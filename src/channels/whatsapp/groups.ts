// Whether a message in a group is for the account: it names it, or answers what the agent sent. Pure.

import type { SocketConfig, WASocket } from '@whiskeysockets/baileys';
import type { InboundMessage } from '../../kernel/message/message.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { isOwnAddress, type LinkedAccount, ownIds } from './linked-account.ts';
import type { WhatsAppReading } from './rules/content.ts';
import { isPerson, parseJid } from './rules/jid.ts';

/** `isQuoteOurs`: the agent sent the message of the quoted id; its author is checked here. */
export function groupAddressing(
  reading: WhatsAppReading | undefined,
  isQuoteOurs: boolean,
  own: LinkedAccount | undefined,
): InboundMessage['addressing'] {
  if (reading?.mentioned?.some((jid) => isOwnAddress(jid, own))) return 'mention';
  const author = parseJid(reading?.quoted?.authorJid);
  const isOurs = isQuoteOurs && isPerson(author) && isOwnAddress(author, own);
  return isOurs ? 'reply' : 'ambient';
}

/** The text without our own name in front, so that a command behind it is one. */
export function withoutOwnName(text: string, own: LinkedAccount | undefined): string {
  const trimmed = text.trimStart();
  const name = ownIds(own).find((id) => trimmed.startsWith(`@${id}`));
  if (name === undefined) return text;
  const rest = trimmed.slice(name.length + 1).replace(/^[\s,:]+/, '');
  return rest === '' ? text : rest;
}

// Who is in a group, remembered so that not every message asks the server first. Forgotten as soon as
// the server says that something in the group changed, and with each connection.

type Metadata = Awaited<ReturnType<WASocket['groupMetadata']>>;

export type GroupSource = {
  readonly ws: Pick<WASocket['ws'], 'on' | 'off'>;
  groupMetadata(jid: string): Promise<Metadata>;
};

export interface GroupMembers {
  /** For the library, which asks before each message to a group. */
  readonly of: SocketConfig['cachedGroupMetadata'];
  /** To be called with each new socket; disposed when its connection is over. */
  attach(socket: GroupSource): Disposable;
}

/** A notice that was lost must not count for ever. */
const LIFETIME_MS = 600_000;
const MAX_GROUPS = 200;
const CHANGED = 'CB:notification,type:w:gp2';

export function createGroupMembers(clock: Clock): GroupMembers {
  const known = new Map<string, { readonly at: number; readonly metadata: Promise<Metadata> }>();
  let socket: GroupSource | undefined;

  function ask(source: GroupSource, jid: string): Promise<Metadata> {
    const metadata = source.groupMetadata(jid);
    known.delete(jid);
    known.set(jid, { at: clock.monotonic(), metadata });
    metadata.catch(() => known.delete(jid));
    const [oldest] = known.keys();
    if (known.size > MAX_GROUPS && oldest !== undefined) known.delete(oldest);
    return metadata;
  }

  return {
    async of(jid) {
      const remembered = known.get(jid);
      if (remembered !== undefined && clock.monotonic() - remembered.at < LIFETIME_MS) {
        return remembered.metadata;
      }
      return socket === undefined ? undefined : ask(socket, jid);
    },

    attach(fresh) {
      const changed = ({ attrs }: { readonly attrs: Readonly<Record<string, string>> }) => {
        known.delete(attrs['from'] ?? '');
      };
      known.clear();
      socket = fresh;
      fresh.ws.on(CHANGED, changed);
      return {
        [Symbol.dispose]() {
          fresh.ws.off(CHANGED, changed);
          if (socket === fresh) socket = undefined;
        },
      };
    },
  };
}

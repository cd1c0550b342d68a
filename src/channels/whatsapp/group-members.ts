// Who is in a group, remembered so that not every message asks the server first. Forgotten as soon as
// the server says that something in the group changed, and with each connection.

import type { SocketConfig, WASocket } from '@whiskeysockets/baileys';
import type { Clock } from '../../lib/clock.ts';

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

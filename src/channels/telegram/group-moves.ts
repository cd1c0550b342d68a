// Groups that became supergroups: Telegram gives them a new id, while our conversation, its listing and
// all else keep the name they had. Durable, and told to the owner.

import { plain } from '../../core/group-texts.ts';
import type { ChatRef } from '../../core/message.ts';
import type { ChannelHost } from '../channel.ts';

const MOVED = 'moved:';
/** A group moves once; a longer chain is a loop. */
const MAX_STEPS = 8;

export type Move = { readonly from: number; readonly to: number; readonly title?: string };

export interface GroupMoves {
  /** Reads the moves known of old; until then only those noted since are known. */
  load(host: ChannelHost): Promise<void>;
  /** Durable once resolved, where `load` was called before. */
  note(move: Move): Promise<void>;
  /** Telegram's id of the chat today. */
  address(chat: ChatRef): number;
  /** All ids of the chat, the one our conversation is named by first. */
  names(chat: number): readonly [number, ...number[]];
}

export function createGroupMoves(): GroupMoves {
  const moves = new Map<number, number>();
  let host: ChannelHost | undefined;

  /** The chat and what it became, in order. */
  function onwards(chat: number): readonly number[] {
    const ids = [chat];
    for (let step = 0; step < MAX_STEPS; step += 1) {
      const next = moves.get(ids.at(-1) ?? chat);
      if (next === undefined || ids.includes(next)) break;
      ids.push(next);
    }
    return ids;
  }

  function firstName(chat: number): number {
    let name = chat;
    for (let step = 0; step < MAX_STEPS; step += 1) {
      const earlier = [...moves].find(([, to]) => to === name)?.[0];
      if (earlier === undefined || earlier === chat) break;
      name = earlier;
    }
    return name;
  }

  return {
    async load(givenHost) {
      host = givenHost;
      for (const { key, value } of await host.state.list(MOVED)) {
        moves.set(Number(key.slice(MOVED.length)), Number(value));
      }
    },

    async note({ from, to, title }) {
      if (from === to || moves.get(from) === to) return;
      moves.set(from, to);
      await host?.state.set(`${MOVED}${from}`, String(to));
      host?.log.info('telegram group has a new id', { from, to });
      const name = title === undefined ? '' : ` (${plain(title)})`;
      host?.tell(
        `The Telegram group ${from}${name} became a supergroup, and its id is now ${to}. Its ` +
          'conversation goes on, and it counts as listed under both ids.',
      );
    },

    address: (chat) => onwards(Number(chat.chat)).at(-1) ?? Number(chat.chat),

    names(chat) {
      const [first = chat, ...others] = onwards(firstName(chat));
      return [first, ...others];
    },
  };
}

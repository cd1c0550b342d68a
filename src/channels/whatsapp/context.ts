// What a message carries beside its content: in a group the message it answers, and the timer of a
// chat with disappearing messages, as the last message of the chat had it.

import type { proto } from '@whiskeysockets/baileys';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import type { ChatId, MessageId } from '../../kernel/message/ids.ts';
import type { InboundMessage } from '../../kernel/message/message.ts';
import { RecentMap, readOnce } from '../../lib/async.ts';
import { headOf } from '../../lib/text/cut.ts';
import { saidIn } from '../inbound-message.ts';
import { addressOf, isPerson, parseJid } from './rules/jid.ts';

const TIMERS = 'timer/';
const MAX_QUESTIONS = 500;
const MAX_QUOTED_CHARS = 300;

export type Contexts = ReturnType<typeof createContexts>;

export function createContexts(state: KeyValueStore) {
  /** In memory only: what a restart interrupts is answered without a quote. */
  const questions = new RecentMap<MessageId, proto.IContextInfo>(MAX_QUESTIONS);
  const loaded = readOnce(async () => {
    const rows = await state.list(TIMERS);
    return new Map(rows.map(({ key, value }) => [key.slice(TIMERS.length), Number(value)]));
  });

  return {
    /** `seconds`: until the message disappears, 0 if it stays. */
    async heard(
      { chat: { chat }, id, group, text, attachments = [] }: InboundMessage,
      key: { readonly id: string; readonly participant?: string | undefined },
      seconds = 0,
    ): Promise<void> {
      const author = parseJid(key.participant);
      if (group !== undefined && isPerson(author)) {
        const conversation = headOf(saidIn(text, attachments) ?? '', MAX_QUOTED_CHARS);
        questions.set(id, {
          stanzaId: key.id,
          participant: addressOf(author),
          quotedMessage: { conversation },
        });
      }
      const timers = await loaded();
      if ((timers.get(chat) ?? 0) === seconds) return;
      timers.set(chat, seconds);
      if (seconds === 0) await state.delete(TIMERS + chat);
      else await state.set(TIMERS + chat, `${seconds}`);
    },
    /** Of a message to this chat; `replyTo`: of the first part of an answer. */
    async of(chat: ChatId, replyTo?: MessageId): Promise<proto.IContextInfo | undefined> {
      const quote = replyTo && questions.get(replyTo);
      const expiration = (await loaded()).get(chat);
      return expiration ? { ...quote, expiration } : quote;
    },
  };
}

// Groups at the simulated Telegram: what a member's message looks like there, topics, the bot's
// arrival and the move to a supergroup.

import type { Chat, Person } from './bot-api-ledger.ts';

/** A group as Telegram's Chat object names it. */
export type GroupInfo = {
  readonly type: 'group' | 'supergroup';
  readonly title: string;
  readonly isForum: boolean;
};

export const chatObject = (chat: Chat, person?: Person) => {
  const { group } = chat;
  if (group === undefined) return { id: chat.id, type: 'private', first_name: person?.first_name };
  const forum = group.isForum ? { is_forum: true } : {};
  return { id: chat.id, type: group.type, title: group.title, ...forum };
};

/** Mentions and commands, which the server finds in every text. */
export function entitiesOf(text: string): readonly object[] {
  const found: object[] = [];
  for (const match of text.matchAll(/(?<![\w@/])@[a-z]\w{3,31}/gi)) {
    found.push({ type: 'mention', offset: match.index, length: match[0].length });
  }
  for (const match of text.matchAll(/(?<![\w@/])\/\w{1,32}(?:@\w{3,32})?/g)) {
    found.push({ type: 'bot_command', offset: match.index, length: match[0].length });
  }
  return found;
}

/** Fields of a message in a topic: it seems to answer the message that made the topic. */
export function topicFields(chat: Chat, thread: number, hasReply: boolean) {
  if (!chat.topics.includes(thread)) throw new Error(`chat ${chat.id} has no topic ${thread}`);
  const first = { message_id: thread, chat: chatObject(chat), forum_topic_created: { name: 'T' } };
  return {
    message_thread_id: thread,
    is_topic_message: true,
    ...(hasReply ? {} : { reply_to_message: { date: 1, ...first } }),
  };
}

/** The update that tells the bot it was made a member. */
export function botJoined(chat: Chat, bot: Person, by: Person) {
  const user = { ...bot, is_bot: true };
  return {
    my_chat_member: {
      chat: chatObject(chat),
      from: { is_bot: false, ...by },
      date: Math.floor(Date.now() / 1000),
      old_chat_member: { user, status: 'left' },
      new_chat_member: { user, status: 'member' },
    },
  };
}

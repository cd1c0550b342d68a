import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  accountId,
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  threadId,
} from '../../src/kernel/message/ids.ts';
import { chatRefOf, sessionKeyOf } from '../../src/kernel/message/message.ts';

const part = fc.string({ minLength: 1, unit: 'grapheme' });
const chatRefs = fc
  .record({ chat: part, thread: fc.option(part, { nil: undefined }) })
  .map(({ chat, thread }) => ({
    channel: channelName('mail'),
    account: DEFAULT_ACCOUNT,
    chat: chatId(chat),
    ...(thread === undefined ? {} : { thread: threadId(thread) }),
  }));

describe('the key of a conversation', () => {
  it('is readable', () => {
    const chat = { channel: channelName('telegram'), account: DEFAULT_ACCOUNT, chat: chatId('42') };
    expect(sessionKeyOf(chat)).toBe('telegram:42');
    const work = { ...chat, account: accountId('work'), thread: threadId('7') };
    expect(sessionKeyOf(work)).toBe('telegram@work:42#7');
  });

  it('leads back to its chat, whatever characters are in it', () => {
    const chat = { channel: channelName('mail'), account: DEFAULT_ACCOUNT, chat: chatId('\u2028') };
    const inThread = { ...chat, thread: threadId('a\u2028\u2029\n\r') };
    expect(chatRefOf(sessionKeyOf(inThread))).toEqual(inThread);
    fc.assert(
      fc.property(chatRefs, (chat) => {
        expect(chatRefOf(sessionKeyOf(chat))).toEqual(chat);
      }),
    );
  });

  it('is never shared by two chats', () => {
    fc.assert(
      fc.property(chatRefs, chatRefs, (left, right) => {
        const isSameChat = left.chat === right.chat && left.thread === right.thread;
        expect(sessionKeyOf(left) === sessionKeyOf(right)).toBe(isSameChat);
      }),
    );
  });
});

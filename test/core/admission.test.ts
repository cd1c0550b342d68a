import { describe, expect, it } from 'vitest';
import { type AdmissionPolicy, admit } from '../../src/kernel/access/admission.ts';
import {
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  messageId,
  userId,
} from '../../src/kernel/message/ids.ts';
import type { InboundMessage } from '../../src/kernel/message/message.ts';

const closed: AdmissionPolicy = {
  allowFrom: [],
  owners: [],
  role: undefined,
  acceptUnverified: false,
  strangers: 'closed',
};

function message(overrides: Partial<InboundMessage> = {}): InboundMessage {
  return {
    id: messageId('chat:default:1'),
    chat: { channel: channelName('chat'), account: DEFAULT_ACCOUNT, chat: chatId('1') },
    sender: { kind: 'person', id: userId('123'), name: 'Ann', verified: 'verified' },
    addressing: 'direct',
    text: 'hello',
    sentAt: 0,
    receivedAt: 0,
    ...overrides,
  };
}

const from = (id: string, verified: 'verified' | 'asserted' | 'unverified' = 'verified') =>
  message({ sender: { kind: 'person', id: userId(id), name: '999', verified } });

describe('the gate', () => {
  it.each([
    ['an empty list lets nobody in', from('123'), closed, 'refuse'],
    ['a listed id is let in', from('123'), { ...closed, allowFrom: ['123'] }, 'admit'],
    [
      'a longer id that begins alike is not',
      from('1234'),
      { ...closed, allowFrom: ['123'] },
      'refuse',
    ],
    ['a display name is no id', from('123'), { ...closed, allowFrom: ['999'] }, 'refuse'],
    [
      'a composite of id and name is no id',
      from('123|owner'),
      { ...closed, allowFrom: ['123'] },
      'refuse',
    ],
    ['an empty entry lets nobody in', from('123'), { ...closed, allowFrom: [''] }, 'refuse'],
    ['a star lets everybody in', from('123'), { ...closed, allowFrom: ['*'] }, 'admit'],
    ['an approved sender is let in', from('123'), { ...closed, role: 'guest' }, 'admit'],
    [
      'a blocked sender is not, though listed',
      from('123'),
      { ...closed, role: 'blocked', allowFrom: ['*', '123'], owners: ['123'] },
      'refuse',
    ],
    [
      'an asserted sender is let in',
      from('123', 'asserted'),
      { ...closed, allowFrom: ['123'] },
      'admit',
    ],
    [
      'an unverified one is not, though listed',
      from('123', 'unverified'),
      { ...closed, allowFrom: ['123'] },
      'refuse',
    ],
    ['nor by a star', from('123', 'unverified'), { ...closed, allowFrom: ['*'] }, 'refuse'],
    [
      'unless that is asked for',
      from('123', 'unverified'),
      { ...closed, allowFrom: ['123'], acceptUnverified: true },
      'admit',
    ],
    [
      'which lets no stranger in',
      from('5', 'unverified'),
      { ...closed, allowFrom: ['123'], acceptUnverified: true },
      'refuse',
    ],
  ] as const)('%s', (_name, candidate, policy, expected) => {
    expect(admit(candidate, policy).kind).toBe(expected);
  });

  it('takes a pairing code from a stranger, but not from an unverified one', () => {
    const text = '/start ABCD2345';
    const { sender } = from('5', 'unverified');
    const policy: AdmissionPolicy = { ...closed, strangers: 'silent' };
    expect(admit(message({ text }), policy)).toMatchObject({
      kind: 'redeem',
      code: 'ABCD2345',
      otherwise: { kind: 'knock' },
    });
    expect(admit(message({ text, sender }), policy).kind).toBe('refuse');
    expect(admit(message({ text: '/start' }), policy).kind).toBe('knock');
    expect(admit(message({ text }), { ...policy, role: 'blocked' }).kind).toBe('refuse');
  });

  it.each([
    ['silent', { kind: 'knock', policy: 'silent' }],
    ['pairing', { kind: 'knock', policy: 'pairing' }],
    ['closed', { kind: 'refuse' }],
    ['open', { kind: 'admit', role: 'guest' }],
  ] as const)('does with a stranger what "%s" says', (strangers, expected) => {
    expect(admit(message(), { ...closed, strangers })).toMatchObject(expected);
    expect(admit(from('5', 'unverified'), { ...closed, strangers }).kind).toBe('refuse');
    expect(admit(message(), { ...closed, strangers, role: 'blocked' }).kind).toBe('refuse');
  });

  it('keeps groups out, whoever writes there', () => {
    for (const addressing of ['mention', 'reply', 'ambient'] as const) {
      expect(admit(message({ addressing }), { ...closed, allowFrom: ['*'] }).kind).toBe('refuse');
    }
  });
});

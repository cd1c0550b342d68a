// Conversations on disk without the values of secrets, whatever a secret looks like.

import { expect, it } from 'vitest';
import { watchedSessions } from '../../src/kernel/kernel.ts';
import { callId, messageId, sessionKey, turnId } from '../../src/kernel/message/ids.ts';
import { createRedactor } from '../../src/lib/text/redact.ts';
import { createSessionFolder } from '../sessions/session-folder.ts';

const SESSION = sessionKey('telegram:700');

it('masks what was said, and nothing that only looks like it in what we note beside', async () => {
  const { open, clock } = await createSessionFolder();
  const at = clock.now();
  const secrets = [String(at).slice(2, 9), 'assistant', 'telegram', 'a "quoted" key'];
  await using store = watchedSessions(open(), createRedactor(secrets), () => []);
  const common = { turnId: turnId('telegram:700#1'), at } as const;
  const call = { id: callId('c1'), name: 'message', arguments: '{"text":"a \\"quoted\\" key"}' };
  const user = { ...common, role: 'user', messageId: messageId('telegram:1'), seq: 1 } as const;
  const answer = { ...common, role: 'assistant', thinking: [], model: 'test/telegram' } as const;
  await store.append(
    SESSION,
    [
      { ...user, text: `my pin ${secrets[0]} is an assistant` },
      { ...answer, text: 'a "quoted" key', toolCalls: [call] },
    ],
    { durable: true },
  );
  expect(await store.load(SESSION)).toEqual([
    { ...user, text: 'my pin [redacted] is an [redacted]' },
    {
      ...answer,
      text: '[redacted]',
      toolCalls: [{ ...call, arguments: '{"text":"[redacted]"}' }],
    },
  ]);
});

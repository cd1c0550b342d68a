// A changed key counts as soon as it can, and disturbs no more than it must.

import { describe, expect, test } from 'vitest';
import { configSchema } from '../../../src/kernel/config/config.ts';
import { configChange, isUnchanged } from '../../../src/kernel/config/diff.ts';

const NOTHING = { nextTurn: [], channels: [], gateway: [] };

function changeTo(part: object) {
  return configChange(configSchema.parse({}), configSchema.parse(part));
}

describe('what a change asks for', () => {
  test.each([
    [
      'the model',
      { agents: { defaults: { model: 'a/b' } } },
      { nextTurn: ['agents.defaults.model'] },
    ],
    ['a key', { providers: { groq: { apiKey: 'k' } } }, { nextTurn: ['providers.groq.apiKey'] }],
    [
      'an allow list',
      { channels: { telegram: { allowFrom: ['5'] } } },
      {
        nextTurn: ['channels.telegram.allowFrom'],
      },
    ],
    ['a token', { channels: { telegram: { token: '5:a' } } }, { channels: ['telegram'] }],
    [
      'two keys of a channel',
      { channels: { email: { enabled: true, imapHost: 'h' } } },
      {
        channels: ['email'],
      },
    ],
    ['the port', { gateway: { port: 1 } }, { gateway: ['gateway.port'] }],
    ['session files', { sessions: { carry: 'nothing' } }, { nextTurn: ['sessions.carry'] }],
  ])('%s', (_name, part, expected) => {
    expect(changeTo(part)).toEqual({ ...NOTHING, ...expected });
  });

  test('nothing, where only the note for editors differs', () => {
    expect(isUnchanged(changeTo({ $schema: './config.schema.json' }))).toBe(true);
  });
});

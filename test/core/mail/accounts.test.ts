// Several mailboxes in one configuration: what each takes from the first, what is its own, and what
// is no configuration.

import { describe, expect, test } from 'vitest';
import { mailboxesOf } from '../../../src/channels/email/settings.ts';
import { checkConfig } from '../../../src/kernel/config/check.ts';
import { type ConfigInput, configSchema } from '../../../src/kernel/config/config.ts';
import { configChange } from '../../../src/kernel/config/diff.ts';
import { literalSecrets, maskSecrets, secretValues } from '../../../src/kernel/config/secrets.ts';
import { findKey } from '../../../src/kernel/config/value.ts';
import { ConfigError } from '../../../src/kernel/message/errors.ts';
import { accountId } from '../../../src/kernel/message/ids.ts';

const FIRST = {
  ...{ enabled: true, imapHost: 'mail.a.test', imapPort: 143, imapSecurity: 'starttls' },
  ...{ smtpHost: 'smtp.a.test', username: 'me@a.test', password: 'first-secret' },
  ...{ allowFrom: ['ann@p.test'], authservId: 'mx.a.test', pollSecs: 20, bridge: 'all' },
} as const;
const WORK = { username: 'me@work.test', password: 'work-secret' };

const written = (work: object) => ({
  channels: { email: { ...FIRST, accounts: { work: { ...WORK, ...work } } } },
});
const configOf = (work: object) => configSchema.parse(written(work) as ConfigInput);
const workOf = (work: object) => mailboxesOf(configOf(work).channels.email).get(accountId('work'));

function problemsOf(config: object) {
  try {
    checkConfig(JSON.stringify(config), {});
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map(({ path, problem }) => `${path}: ${problem}`);
  }
}

describe('a further mailbox', () => {
  test('has the servers and habits of the first, and its own people and credentials', () => {
    expect(workOf({})).toMatchObject({
      ...{ enabled: true, imapHost: 'mail.a.test', imapPort: 143, pollSecs: 20, bridge: 'all' },
      ...{ authservId: 'mx.a.test', ...WORK, from: '', aliases: [], allowFrom: [] },
    });
  });

  test('takes nothing of a server that is not its own', () => {
    expect(workOf({ imapHost: 'mail.b.test' })).toMatchObject({
      ...{ imapPort: 993, imapSecurity: 'tls', authservId: '', smtpHost: 'smtp.a.test' },
    });
  });

  test('has secrets that are masked, known to the log and called written out', () => {
    const masked = JSON.stringify(maskSecrets(written({})));
    expect(masked).not.toContain('work-secret');
    expect(secretValues(configOf({}))).toContain('work-secret');
    expect(literalSecrets(written({}))).toContain('channels.email.accounts.work.password');
  });

  test('takes numbers and secrets from the environment', () => {
    const text = JSON.stringify(written({ imapPort: `\${PORT}`, password: `\${WORK_PASSWORD}` }));
    const env = { PORT: '1993', WORK_PASSWORD: 'from-env' };
    const { config } = checkConfig(text, env);
    expect(config.channels.email.accounts['work']).toMatchObject({
      ...{ imapPort: 1993, password: 'from-env' },
    });
  });

  test('can be named key by key', () => {
    expect(findKey('channels.email.accounts.work.imapPort')).toMatchObject({
      ...{ kind: 'found', key: { path: 'channels.email.accounts.work.imapPort', type: 'number' } },
    });
  });

  test.each([
    [
      'an address of the first',
      { aliases: ['ME+x@a.test'] },
      'channels.email.accounts.work: "me+x@a.test" also belongs to channels.email',
    ],
    [
      'no password',
      { password: '' },
      'channels.email.accounts.work.password: required while channels.email.accounts.work.enabled is true',
    ],
    ['a key that is none', { imapHots: 'x' }, 'channels.email.accounts.work.imapHots: unknown key'],
  ])('is refused with %s', (_name, work, problem) => {
    expect(problemsOf(written(work))).toEqual([problem]);
  });

  test.each(['Work', 'default', 'a b'])('is not called %s', (name) => {
    const config = { channels: { email: { ...FIRST, accounts: { [name]: WORK } } } };
    expect(problemsOf(config)).toEqual([`channels.email.accounts.${name}: invalid name`]);
  });

  test.each([
    ['its own password', {}, { password: 'new' }, ['email@work']],
    ['who may write to it', {}, { allowFrom: ['x@y.test'] }, []],
  ])('starts again alone for %s', (_name, before, after, channels) => {
    expect(configChange(configOf(before), configOf(after)).channels).toEqual(channels);
  });

  test('starts again for what it takes from the first, and stops when it is gone', () => {
    const before = configOf({});
    const { accounts, ...first } = before.channels.email;
    const slower = {
      ...before,
      channels: { ...before.channels, email: { ...first, accounts, pollSecs: 30 } },
    };
    expect(configChange(before, slower).channels).toEqual(['email', 'email@work']);
    const alone = {
      ...before,
      channels: { ...before.channels, email: { ...first, accounts: {} } },
    };
    expect(configChange(before, alone).channels).toEqual(['email@work']);
  });
});

// Addresses and subjects made to reach somebody else than they seem to, or to write a header of their
// own: none of them leaves the tool, and the model is told why. Case E28.

import { describe, expect, test } from 'vitest';
import type { Letter } from '../../src/kernel/message/message.ts';
import { createWorkspace } from '../tools/workspace-fixture.ts';

const GOOD = { to: 'ann@example.org', subject: 'Lunch', body: 'Today?' };
const CONTROLS = [...Array.from({ length: 32 }, (_, code) => code), 127, 128, 133, 144, 159];
const UNSEEN = [
  0xad, 0x34f, 0x61c, 0x115f, 0x17b4, 0x180e, 0x200b, 0x200c, 0x200d, 0x200e, 0x200f, 0x2028,
  0x2029, 0x202a, 0x202e, 0x2060, 0x2066, 0x2069, 0x3164, 0xfe0f, 0xfeff, 0xffa0, 0xfff9, 0xe0001,
  0xe0041,
];
const VICTIM = 'bob@victim.test';

const addresses: readonly string[] = [
  ...CONTROLS.flatMap((code) => {
    const sign = String.fromCodePoint(code);
    return [`ann${sign}@example.org`, `ann@exam${sign}ple.org`, `ann@example.org${sign}`];
  }),
  ...UNSEEN.flatMap((code) => {
    const sign = String.fromCodePoint(code);
    return [`a${sign}nn@example.org`, `ann@exa${sign}mple.org`];
  }),
  ...['\r\n', '\n', '\r', '%0d%0a', '\u2028'].flatMap((end) => [
    `ann@example.org${end}Bcc: ${VICTIM}`,
    `ann@example.org>${end}RCPT TO:<${VICTIM}>`,
    `${end}${VICTIM}`,
  ]),
  ...[',', ';', ' ', '\t', ', ', ' ; ', '|', '>,<'].map(
    (mark) => `ann@example.org${mark}${VICTIM}`,
  ),
  ...['"', '"x y"', '"xclow3n@gmail.com x"', '"a\\"b"', '"@"', '"\r\n"'].map(
    (local) => `${local}@internal.test`,
  ),
  ...['(x)', '(', ')', '(a(b)c)', `(${VICTIM})`].flatMap((comment) => [
    `ann${comment}@example.org`,
    `ann@example.org${comment}`,
    `${comment}ann@example.org`,
  ]),
  `Ann <${VICTIM}>`,
  `<${VICTIM}>`,
  `"Ann" <ann@example.org>`,
  'friends:ann@example.org;',
  `friends: ann@example.org, ${VICTIM};`,
  'undisclosed-recipients:;',
  ':ann@example.org',
  `mailto:${VICTIM}`,
  `mailto:${VICTIM}?cc=eve@evil.test`,
  `@relay.test:${VICTIM}`,
  `@relay.test,@other.test:${VICTIM}`,
  'ann%victim.test@relay.test@example.org',
  'victim.test!ann@example.org@x.test',
  'ann@@example.org',
  'ann@example.org@evil.test',
  'ann\\@evil.test@example.org',
  'ann＠example.org',
  'ann﹫example.org',
  'ann@[127.0.0.1]',
  'ann@[IPv6:::1]',
  'ann@127.0.0.1',
  'ann@2130706433',
  'ann@0x7f000001',
  'ann@0177.0.0.1',
  'ann@localhost',
  'ann@example',
  'ann@.example.org',
  'ann@example..org',
  'ann@-example.org',
  'ann@example-.org',
  'ann@exam_ple.org',
  'ann@exam!ple.org',
  'ann@example.org:25',
  'ann@example.org/path',
  'ann@example.org?x=1',
  'ann@example.org#x',
  'ann@user:pass@example.org',
  '.ann@example.org',
  'ann.@example.org',
  'an..n@example.org',
  'änn@example.org',
  'аnn@example.org',
  'ann',
  '@example.org',
  'ann@',
  '@',
  '',
  ' ',
  'ann example.org',
  '{to}@@example.org',
  '../../etc/passwd',
  '|/bin/sh',
  '`id`@@x',
  `${'a'.repeat(65)}@example.org`,
  `ann@${'a'.repeat(64)}.org`,
  `ann@${'a.'.repeat(130)}org`,
  `${'<'.repeat(200)}${VICTIM}`,
  `${'('.repeat(240)}`,
  `${'"\\'.repeat(100)}@x.test`,
  `${'a@'.repeat(120)}x.test`,
  `${'x'.repeat(100_000)}@example.org`,
];
const subjects: readonly string[] = [
  ...CONTROLS.map((code) => `Lunch${String.fromCodePoint(code)}today`),
  ...UNSEEN.filter((code) => /[\p{C}\p{Zl}\p{Zp}]/u.test(String.fromCodePoint(code))).map(
    (code) => `Lunch${String.fromCodePoint(code)}today`,
  ),
  ...['\r\n', '\n', '\r', '\u2028', '\u0085'].flatMap((end) => [
    `Lunch${end}Bcc: ${VICTIM}`,
    `Lunch${end}${end}<script>`,
    `${end}From: boss@example.org`,
  ]),
  'Lunch\ud800',
  '\udc00Lunch',
  '',
  ' ',
  '\u3000',
  'x'.repeat(201),
  'x'.repeat(100_000),
];

async function outbox() {
  const { toolbox, context } = await createWorkspace();
  const posted: Letter[] = [];
  const post = async (letter: Letter) => {
    posted.push(letter);
    return 'Sent.';
  };
  async function call(input: unknown) {
    const bound = toolbox.bind('send_email', JSON.stringify(input));
    return bound.kind === 'refused' ? bound.outcome : bound.run({ ...context, post });
  }
  return { posted, call };
}

describe('send_email', () => {
  test('is tried with 300 hostile addresses and subjects', () => {
    expect(addresses.length + subjects.length).toBeGreaterThanOrEqual(300);
  });

  test('sends nothing to an address that is not exactly one plain one, and says why', async () => {
    const { posted, call } = await outbox();
    for (const to of addresses) {
      const { status, text } = await call({ ...GOOD, to });
      expect({ to, status }).toEqual({ to, status: 'failed' });
      expect(text).toMatch(/invalid_arguments\): [\s\S]*(not one plain mail address|<=254)/);
    }
    expect(posted).toEqual([]);
  });

  test('sends nothing under a subject that is more than a line, and says why', async () => {
    const { posted, call } = await outbox();
    for (const subject of subjects) {
      const { status, text } = await call({ ...GOOD, subject });
      expect({ subject, status }).toEqual({ subject, status: 'failed' });
      expect(text).toMatch(/invalid_arguments\): [\s\S]*(one line without|<=200|>=1)/);
    }
    expect(posted).toEqual([]);
  });

  test.each([[[GOOD.to, VICTIM]], [{ address: VICTIM }], [null], [42], [[[VICTIM]]]])(
    'sends nothing to %j',
    async (to) => {
      const { posted, call } = await outbox();
      expect((await call({ ...GOOD, to })).status).toBe('failed');
      expect(posted).toEqual([]);
    },
  );

  test('copies nobody who is not one plain address, and everybody once', async () => {
    const { posted, call } = await outbox();
    for (const address of addresses) {
      const { status } = await call({ ...GOOD, cc: ['eve@example.org', address] });
      expect({ address, status }).toEqual({ address, status: 'failed' });
    }
    expect((await call({ ...GOOD, cc: VICTIM.repeat(2) })).status).toBe('failed');
    expect((await call({ ...GOOD, cc: Array(11).fill(VICTIM) })).status).toBe('failed');
    expect(posted).toEqual([]);
    await call({ ...GOOD, cc: ['Bob@Example.org', 'bob@example.org', 'ann@example.org'] });
    expect(posted).toMatchObject([{ to: 'ann@example.org', cc: ['bob@example.org'] }]);
  });

  test.each([
    ['ann@example.org', 'ann@example.org'],
    ['Ann.Smith+x@Example.ORG', 'ann.smith+x@example.org'],
    ['ann@bücher.example', 'ann@xn--bcher-kva.example'],
  ])('hands over %s as %s', async (to, address) => {
    const { posted, call } = await outbox();
    const more = { cc: [], bcc: VICTIM };
    expect((await call({ ...GOOD, ...more, to, subject: 'Grüße ❤' })).status).toBe('ok');
    expect(posted).toEqual([
      { kind: 'mail', to: address, subject: 'Grüße ❤', markdown: GOOD.body },
    ]);
  });
});

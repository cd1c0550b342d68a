// The parsing thread against hostile bytes: it never throws, shows only what a person sees, and knows
// what a signature covers.

import { generateKeyPairSync } from 'node:crypto';
import { open } from 'node:fs/promises';
import { dkimSign } from 'mailauth/lib/dkim/sign.js';
import { afterAll, describe, expect, it } from 'vitest';
import { extractFiles } from '../../../src/channels/email/mail-files.ts';
import { type DnsLookup, MailReader } from '../../../src/channels/email/mail-reader.ts';
import { systemClock } from '../../../src/lib/time/clock.ts';

const { publicKey, privateKey } = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'der' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
});

const lookup: DnsLookup = async (domain) => {
  if (domain === 'k1._domainkey.person.test') {
    return [[`v=DKIM1; k=rsa; p=${publicKey.toString('base64')}`]];
  }
  if (domain === 'k1._domainkey.down.test') {
    throw Object.assign(new Error('no answer'), { code: 'ETIMEOUT' });
  }
  throw Object.assign(new Error('no such name'), { code: 'ENOTFOUND' });
};

const reader = new MailReader({ clock: systemClock, lookup });
afterAll(() => reader[Symbol.asyncDispose]());

const HEAD =
  'From: anna@person.test\r\nTo: agent@nanobot.test\r\nSubject: test\r\nDate: Thu, 15 Jan 2026 12:00:00 +0000\r\n';

async function textOf(rest: string, encoding: BufferEncoding = 'latin1'): Promise<string> {
  const { result } = await reader.read(Buffer.from(HEAD + rest, encoding));
  return result.kind === 'parsed' ? result.mail.text.trim() : `unreadable: ${result.gate}`;
}

const html = (body: string) => `Content-Type: text/html; charset=utf-8\r\n\r\n${body}`;
const plain = (type: string, body: string) => `Content-Type: text/plain${type}\r\n\r\n${body}`;

describe('text in any charset', () => {
  it.each([
    ['UTF-8', plain('; charset=utf-8', 'Gr\u00c3\u00bc\u00c3\u009fe'), 'Grüße'],
    ['Latin-1', plain('; charset=iso-8859-1', 'Gr\u00fc\u00dfe'), 'Grüße'],
    ['an unknown charset', plain('; charset=x-klingon', 'hello'), 'hello'],
    [
      'quoted-printable',
      `Content-Transfer-Encoding: quoted-printable\r\n${plain('; charset=utf-8', 'Gr=C3=BC=\r\n=C3=9Fe')}`,
      'Grüße',
    ],
    [
      'broken quoted-printable',
      `Content-Transfer-Encoding: quoted-printable\r\n${plain('', 'a =ZZ b =')}`,
      'a =ZZ b',
    ],
    [
      'base64',
      `Content-Transfer-Encoding: base64\r\n${plain('; charset=utf-8', 'R3LDvMOfZQ==')}`,
      'Grüße',
    ],
    ['NUL and other controls', plain('', 'a\u0000b\u0008c'), 'abc'],
    ['lone line ends', plain('', 'a\rb\nc'), 'a\nb\nc'],
    [
      'an unknown transfer encoding',
      `Content-Transfer-Encoding: x-odd\r\n${plain('', 'hello')}`,
      'hello',
    ],
    ['no header at all', '\r\nhello', 'hello'],
  ])('%s', async (_, rest, expected) => {
    expect(await textOf(rest)).toBe(expected);
  });

  it.each([
    ['broken base64', `Content-Transfer-Encoding: base64\r\n${plain('', '!!!=A=B=')}`],
    ['a wrong label', plain('; charset=utf-8', '\u00ff\u00fe\u00fd')],
    ['UTF-7', plain('; charset=utf-7', '+ADw-script+AD4-')],
    ['a multipart without its boundary', 'Content-Type: multipart/mixed\r\n\r\n--x\r\n\r\nhi'],
    ['a boundary that never comes', 'Content-Type: multipart/mixed; boundary=zz\r\n\r\nhi'],
    ['encoded words gone wrong', 'X-A: =?utf-8?b?!!!?= =?x?y?z?=\r\n\r\nhi'],
    ['a line of a megabyte', plain('', 'x'.repeat(1_000_000))],
    [
      'names by RFC 2231 gone wrong',
      "Content-Type: text/plain; name*0*=utf-9''%ZZ; name*9=x\r\n\r\nhi",
    ],
    ['nothing', ''],
  ])('never breaks on %s', async (_, rest) => {
    expect(await textOf(rest)).not.toMatch(/^unreadable/);
  });
});

describe('an HTML mail is read as a person sees it', () => {
  it.each([
    '<p style="display:none">secret</p>',
    '<p style="DISPLAY : none !important">secret</p>',
    '<div style="color:red;visibility: hidden"><p>secret</p></div>',
    '<span style="font-size:0px">secret</span>',
    '<div style="max-height:0px;overflow:hidden">secret</div>',
    '<p hidden>secret</p>',
    '<!-- secret -->',
    '<img src="https://x.test/p.png" alt="secret">',
    '<style>secret</style>',
    '<script>secret()</script>',
    '<title>secret</title>',
  ])('without %s', async (hidden) => {
    const text = await textOf(html(`<p>Hello</p>${hidden}<p>world</p>`));
    expect(text).toContain('Hello');
    expect(text).toContain('world');
    expect(text).not.toContain('secret');
  });

  it('with its quotes marked', async () => {
    const text = await textOf(html('<p>Yes</p><blockquote>No?</blockquote>'));
    expect(text).toMatch(/^Yes\n+> No\?$/);
  });

  it('keeps small but visible text', async () => {
    expect(await textOf(html('<p style="font-size:0.9em">fine print</p>'))).toBe('fine print');
  });
});

describe('a mail with an invitation and pictures', () => {
  const invitation = (method: string) =>
    [
      'BEGIN:VCALENDAR',
      `METHOD:${method}`,
      'BEGIN:VEVENT',
      'SUMMARY:Gr\u00fc\u00dfe',
      'DTSTART:20260115T110000Z',
      'END:VEVENT',
      'END:VCALENDAR',
    ].join('\r\n');
  const mailWith = async (method: string) => {
    const part = (type: string, body: string, ...fields: readonly string[]) =>
      [`--b`, `Content-Type: ${type}`, ...fields, '', body].join('\r\n');
    const base64 = Buffer.from(invitation(method)).toString('base64');
    const raw = [
      `${HEAD}MIME-Version: 1.0`,
      'Content-Type: multipart/related; boundary=b',
      '',
      part('text/html', '<p>Come <img src="cid:logo"></p>'),
      part('text/calendar; charset=utf-8', base64, 'Content-Transfer-Encoding: base64'),
      part(
        'application/ics; name=invite.ics',
        base64,
        'Content-Transfer-Encoding: base64',
        'Content-Disposition: attachment; filename=invite.ics',
      ),
      part('image/png; name=logo.png', 'AAAA', 'Content-ID: <logo>', 'Content-Disposition: inline'),
      '--b--',
    ].join('\r\n');
    const { result } = await reader.read(Buffer.from(raw));
    if (result.kind !== 'parsed') throw new Error(result.gate);
    return result.mail;
  };

  it('has the entry once and in words, and its picture by name', async () => {
    const mail = await mailWith('REQUEST');
    expect(mail.calendars).toEqual([
      '[calendar invitation in this mail; it was not added to a calendar]\nWhat: Grüße\nWhen: Thursday 2026-01-15 11:00 (UTC)',
    ]);
    expect(mail.attachments).toMatchObject([
      { name: 'logo.png', type: 'image/png', isInline: true },
    ]);
    expect(mail.calendarMethod).toBe('request');
  });

  it('is known as a calendar answer although only the entry itself says so', async () => {
    expect((await mailWith('REPLY')).calendarMethod).toBe('reply');
  });
});

describe('what a signature proves', () => {
  const body = 'Pay the bill.\r\n';
  const sign = async (options: { domain?: string; maxBodyLength?: number } = {}) => {
    const { domain = 'person.test', ...rest } = options;
    const key = { signingDomain: domain, selector: 'k1', privateKey };
    const signed = await dkimSign(`${HEAD}\r\n${body}`, {
      ...key,
      signatureData: [{ ...key, ...rest }],
    });
    return `${signed.signatures}${HEAD}\r\n${body}`;
  };
  const check = async (raw: string) => (await reader.read(Buffer.from(raw))).report.signatures[0];

  it('that it passes and which fields it covers', async () => {
    const signature = await check(await sign());
    expect(signature).toMatchObject({
      domain: 'person.test',
      result: 'pass',
      aligned: true,
      weak: false,
    });
    expect(signature?.signedFields).toEqual(expect.arrayContaining(['from', 'subject', 'date']));
  });

  it('nothing once the body was changed', async () => {
    const signature = await check((await sign()).replace('Pay', 'Do not pay'));
    expect(signature?.result).not.toBe('pass');
  });

  it('little when it covers only the beginning of the body', async () => {
    const signature = await check(`${await sign({ maxBodyLength: body.length })}And more.\r\n`);
    expect(signature?.weak).toBe(true);
  });

  it('nothing when the key cannot be asked for', async () => {
    expect(await check(await sign({ domain: 'down.test' }))).toMatchObject({ result: 'temperror' });
    expect(await check(await sign({ domain: 'nokey.test' }))).toMatchObject({ result: 'neutral' });
  });
});

it('is not slowed down by text made to be slow', async () => {
  const slow = [
    `${'wrote '.repeat(40)}${'1'.repeat(150)}:\n`.repeat(2000),
    `x${' '.repeat(500_000)}x`,
    `"${'\\"'.repeat(100_000)}`,
    `${'>'.repeat(200_000)}`,
    `${'a@'.repeat(100_000)}`,
  ];
  for (const text of slow) expect((await textOf(`\r\n${text}`)).length).toBeGreaterThan(0);
});

it('gives up a mail that takes too long, and reads the next', async () => {
  const hurried = {
    ...systemClock,
    timer: (ms: number, fn: () => void) => systemClock.timer(ms === 10_000 ? 0 : ms, fn),
  };
  await using impatient = new MailReader({ clock: hurried, lookup });
  const { result } = await impatient.read(Buffer.from(`${HEAD}\r\nhi`));
  expect(result).toEqual({ kind: 'unreadable', gate: 'mail took too long to read' });
  expect(await textOf('\r\nstill here')).toBe('still here');
});

it('a mail’s files that the temporary folder has no room for are fetched again later', async () => {
  const raw = Buffer.from(
    'Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n' +
      'Content-Disposition: attachment; filename=a.txt\r\n\r\nhello\r\n--b--\r\n',
  );
  await using full = await open('/dev/full', 'r+');
  const given = extractFiles(raw, systemClock, AbortSignal.timeout(45_000), async () => full);
  await expect(given).rejects.toMatchObject({ code: 'attachment_no_room', isFinal: false });
});

import { describe, expect, it } from 'vitest';
import {
  normalizeAddress,
  parseHeaderBlock,
  readFrom,
} from '../../../src/channels/email/rules/address.ts';
import {
  mailDate,
  parseAuthResults,
  type SenderEvidence,
  type SignatureEvidence,
  trustedAuthResults,
  verifySender,
} from '../../../src/channels/email/rules/sender.ts';

const NOW = Date.UTC(2026, 0, 15, 12);
const HOUR_MS = 3_600_000;

const goodSignature: SignatureEvidence = {
  domain: 'person.test',
  result: 'pass',
  aligned: true,
  signedFields: ['from', 'to', 'subject', 'date', 'message-id'],
  weak: false,
};

const AUTHOR = [
  'From: Anna <anna@person.test>',
  'To: agent@nanobot.test',
  'Subject: Hi',
  'Date: x',
];

function judge(
  changes: Partial<Omit<SenderEvidence, 'headers'>> = {},
  above: string[] = [],
  below: string[] = [],
) {
  return verifySender({
    headers: parseHeaderBlock([...above, ...AUTHOR, ...below].join('\r\n')),
    address: 'anna@person.test',
    signatures: [],
    dmarc: { result: 'none', strict: false },
    dateMs: NOW,
    arrivedAtMs: NOW,
    authservId: 'mx.trusted.test',
    ...changes,
  }).level;
}

describe('a signature we checked ourselves', () => {
  it('verifies the sender when it is aligned and covers what is read', () => {
    expect(judge({ signatures: [goodSignature] })).toBe('verified');
  });

  it.each<[string, Partial<SignatureEvidence>]>([
    ['fails', { result: 'fail' }],
    ['meets no name service', { result: 'temperror' }],
    ['is neutral', { result: 'neutral' }],
    ['is of another domain', { domain: 'evil.test', aligned: false }],
    ['covers only the first octets of the body', { weak: true }],
    ['does not cover From', { signedFields: ['to', 'subject', 'date'] }],
    ['does not cover the date', { signedFields: ['from', 'to', 'subject'] }],
    ['does not cover the subject that the mail has', { signedFields: ['from', 'to', 'date'] }],
  ])('proves nothing when it %s', (_, change) => {
    expect(judge({ signatures: [{ ...goodSignature, ...change }] })).toBe('unverified');
  });

  it('of the parent domain is enough, unless the policy asks for the very domain', () => {
    const signatures = [{ ...goodSignature, domain: 'person.test' }];
    const address = 'anna@mail.person.test';
    expect(judge({ address, signatures, dmarc: { result: 'pass', strict: false } })).toBe(
      'verified',
    );
    expect(judge({ address, signatures, dmarc: { result: 'pass', strict: true } })).toBe(
      'unverified',
    );
    const unknownPolicy = { result: 'temperror', strict: false };
    expect(judge({ address, signatures, dmarc: unknownPolicy })).toBe('unverified');
  });

  it.each(['From: b@evil.test', 'Subject: another', 'Date: y', 'To: c@d.test'])(
    'proves nothing beside a second "%s"',
    (line) => {
      expect(judge({ signatures: [goodSignature] }, [], [line])).toBe('unverified');
    },
  );

  it('proves nothing on a mail that was written long before it arrived: a replay', () => {
    expect(judge({ signatures: [goodSignature], dateMs: NOW - 49 * HOUR_MS })).toBe('unverified');
    expect(judge({ signatures: [goodSignature], dateMs: NOW + 49 * HOUR_MS })).toBe('unverified');
    expect(judge({ signatures: [goodSignature], dateMs: undefined })).toBe('unverified');
    expect(judge({ signatures: [goodSignature], dateMs: NOW - 40 * HOUR_MS })).toBe('verified');
  });

  it('that the name service kept us from checking is worth another look', () => {
    const verdict = verifySender({
      headers: parseHeaderBlock(AUTHOR.join('\n')),
      address: 'anna@person.test',
      signatures: [{ ...goodSignature, result: 'temperror' }],
      dmarc: { result: 'temperror', strict: false },
      dateMs: NOW,
      arrivedAtMs: NOW,
      authservId: '',
    });
    expect(verdict).toMatchObject({ level: 'unverified', isTemporary: true });
  });
});

const TRUSTED = 'Authentication-Results: mx.trusted.test';

describe('the date of a mail', () => {
  it.each([undefined, NOW - 5_000 * HOUR_MS, NOW + 5_000 * HOUR_MS])(
    'does not weaken what the receiving server asserts: %s',
    (dateMs) => {
      const line = `${TRUSTED}; dmarc=pass header.from=person.test`;
      expect(judge({ dateMs }, [line])).toBe('asserted');
      expect(judge({ dateMs }, ['Date: another', line])).toBe('unverified');
      expect(judge({ dateMs }, [line], ['Date: another'])).toBe('asserted');
    },
  );

  it.each([
    ['Thu, 15 Jan 2026 12:00:00 +0000', NOW],
    ['Thu, 15 Jan 2026 12:00:00 +0000 (UTC)', NOW],
    ['Thu, 15 Jan 2026 12:00:00 CEST', NOW],
    ['Thu, 15 Jan 2026 07:00:00 EST', NOW],
    ['yesterday', undefined],
    ['', undefined],
  ])('%j is read', (value, expected) => {
    expect(mailDate(parseHeaderBlock(`Date: ${value}`))).toBe(expected);
  });
});

describe('what the receiving server asserts', () => {
  it.each([
    ['dmarc', `${TRUSTED}; dmarc=pass header.from=person.test`],
    ['dmarc with comments', `${TRUSTED} (us) 1; dmarc=pass (p=none) header.from=PERSON.test`],
    ['aligned dkim', `${TRUSTED}; dkim=pass header.d=person.test header.s=k1`],
    ['dkim by identity', `${TRUSTED}; spf=fail; dkim=pass header.i=@person.test`],
    [
      'an id in another case',
      'Authentication-Results: MX.Trusted.TEST; dmarc=pass header.from=person.test',
    ],
  ])('is believed: %s', (_, line) => {
    expect(judge({}, [line])).toBe('asserted');
  });

  it.each([
    ['nothing at all', []],
    [
      'another server',
      ['Authentication-Results: mx.evil.test; dmarc=pass header.from=person.test'],
    ],
    [
      'an id in a comment',
      ['Authentication-Results: (mx.trusted.test) evil; dmarc=pass header.from=person.test'],
    ],
    [
      'an id with a tail',
      ['Authentication-Results: mx.trusted.test.evil; dmarc=pass header.from=person.test'],
    ],
    ['spf alone', [`${TRUSTED}; spf=pass smtp.mailfrom=anna@person.test`]],
    ['arc alone', [`${TRUSTED}; arc=pass header.d=person.test`]],
    ['arc lending its domain', [`${TRUSTED}; dkim=pass; arc=pass header.d=person.test`]],
    ['dkim of another domain', [`${TRUSTED}; dkim=pass header.d=evil.test`]],
    ['header.from as the signer', [`${TRUSTED}; dkim=pass header.from=person.test`]],
    ['dmarc for another From', [`${TRUSTED}; dmarc=pass header.from=evil.test`]],
    ['dmarc=none', [`${TRUSTED}; dmarc=none header.from=person.test`]],
    [
      'dkim=pass beside dmarc=fail',
      [`${TRUSTED}; dkim=pass header.d=person.test; dmarc=fail header.from=person.test`],
    ],
    [
      'a pass inside a comment',
      [`${TRUSTED}; dmarc=fail (dmarc=pass header.from=person.test) header.from=person.test`],
    ],
    [
      'a pass inside MAIL FROM',
      [`${TRUSTED}; spf=pass smtp.mailfrom="dkim=pass header.d=person.test"@evil.test`],
    ],
    ['a temporary error', [`${TRUSTED}; dkim=temperror header.d=person.test`]],
    ['an unknown version', [`${TRUSTED} 2; dmarc=pass header.from=person.test`]],
    ['a property given twice', [`${TRUSTED}; dkim=pass header.d=person.test header.d=evil.test`]],
    [
      'a real failure above a forged pass',
      [
        `${TRUSTED}; dmarc=fail header.from=person.test`,
        `${TRUSTED}; dmarc=pass header.from=person.test`,
      ],
    ],
    [
      'a real result without proof above a forged pass',
      [`${TRUSTED}; spf=none`, `${TRUSTED}; dmarc=pass header.from=person.test`],
    ],
  ])('is not believed: %s', (_, lines) => {
    expect(judge({}, lines)).toBe('unverified');
  });

  it('is not looked for below what the sender wrote', () => {
    expect(judge({}, [], [`${TRUSTED}; dmarc=pass header.from=person.test`])).toBe('unverified');
  });

  it('is not looked for at all unless a server is configured', () => {
    const line = 'Authentication-Results: ; dmarc=pass header.from=person.test';
    expect(judge({ authservId: '' }, [line])).toBe('unverified');
    expect(trustedAuthResults(parseHeaderBlock(line), '')).toBeUndefined();
  });

  it('is worthless as a whole when one piece cannot be read', () => {
    expect(parseAuthResults('mx.test; dmarc=pass header.from=a.test; ???')).toBeUndefined();
    expect(parseAuthResults('mx.test 1 extra; dmarc=pass')).toBeUndefined();
    expect(parseAuthResults('mx.test; none')).toEqual({ authservId: 'mx.test', results: [] });
  });
});

describe('the From line', () => {
  it.each([
    ['anna@person.test', 'anna@person.test'],
    ['<Anna@Person.Test>', 'anna@person.test'],
    ['Anna <anna@person.test>', 'anna@person.test'],
    ['"Muster, Anna" <anna@person.test>', 'anna@person.test'],
    ['"owner@nanobot.test" <anna@person.test>', 'anna@person.test'],
    ['Anna (at work) <anna@person.test> (really)', 'anna@person.test'],
    ['=?utf-8?q?J=C3=BCrgen?= <j@bücher.test>', 'j@xn--bcher-kva.test'],
    ['a+tag@person.test', 'a+tag@person.test'],
  ])('%s is %s', (line, address) => {
    expect(readFrom([{ name: 'from', value: line }])).toMatchObject({ from: { address } });
  });

  it.each([
    'a@x.test, b@y.test',
    'A <a@x.test>, B <b@y.test>',
    'Friends: a@x.test, b@y.test;',
    'undisclosed-recipients:;',
    'a@x.test <b@y.test> <c@z.test>',
    '<a@x.test> b@y.test',
    '"a@x.test"@evil.test',
    'a@b@c.test',
    'a@[127.0.0.1]',
    'a@127.0.0.1',
    'a@ex%61mple.test',
    'a@x.test/path',
    'a b@x.test',
    '.a@x.test',
    'a..b@x.test',
    'owner@nanobot.test\u0000@evil.test',
    '@x.test',
    'nobody',
    '',
  ])('"%s" is refused', (line) => {
    expect(readFrom([{ name: 'from', value: line }]).kind).toBe('refused');
  });

  it('standing twice or not at all is refused', () => {
    const one = { name: 'from', value: 'a@x.test' };
    expect(readFrom([one, one]).kind).toBe('refused');
    expect(readFrom([]).kind).toBe('refused');
  });

  it('with a look-alike domain stays another address', () => {
    expect(normalizeAddress('a@pеrson.test')).not.toBe('a@person.test');
    expect(normalizeAddress('a@pеrson.test')).toMatch(/^a@xn--/);
  });
});

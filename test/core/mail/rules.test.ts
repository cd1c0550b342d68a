import { describe, expect, it } from 'vitest';
import { parseHeaderBlock } from '../../../src/channels/email/rules/address.ts';
import { judgeMail, type MailFacts } from '../../../src/channels/email/rules/machine-mail.ts';

const PERSON = [
  'Return-Path: <anna@person.test>',
  'Delivered-To: agent@nanobot.test',
  'Received: from a by b',
  'From: Anna <anna@person.test>',
  'To: agent@nanobot.test',
  'Subject: Lunch?',
  'Message-ID: <1@person.test>',
];

function factsOf(lines: readonly string[], changes: Partial<MailFacts> = {}): MailFacts {
  return {
    headers: parseHeaderBlock([...PERSON, ...lines].join('\r\n')),
    sender: 'anna@person.test',
    own: ['agent@nanobot.test', 'helper@nanobot.test'],
    ours: ['agent@nanobot.test', 'helper@nanobot.test', 'work@nanobot.test'],
    contentTypes: ['text/plain'],
    isOurs: false,
    isAuthenticated: true,
    standing: 'unknown',
    ...changes,
  };
}

const gateOf = (facts: MailFacts) => {
  const verdict = judgeMail(facts);
  return verdict.kind === 'answer' ? 'answer' : `${verdict.kind}: ${verdict.gate}`;
};

describe('mail that a person wrote', () => {
  it.each([
    ['a plain mail', []],
    ['Auto-Submitted: no', ['Auto-Submitted: no']],
    ['Auto-Submitted: no with a comment', ['Auto-Submitted: (by hand) No']],
    ['a subject that only looks automatic', ['X-Note: Out of office']],
    ['reply suppression of nothing', ['X-Auto-Response-Suppress: None']],
    ['an ordinary precedence', ['Precedence: first-class']],
    ['no delivery or read receipts wanted', ['X-Auto-Response-Suppress: DR, RN, NRN']],
  ])('is answered: %s', (_, lines) => {
    expect(gateOf(factsOf(lines))).toBe('answer');
  });

  it('is answered when it came to an alias or a plus address', () => {
    for (const to of ['helper@nanobot.test', 'agent+work@nanobot.test', 'AGENT@NANOBOT.TEST']) {
      const headers = parseHeaderBlock(`From: anna@person.test\r\nTo: ${to}`);
      expect(gateOf(factsOf([], { headers }))).toBe('answer');
    }
  });

  it('is answered although its subject says "Automatic reply", when the sender is proven', () => {
    const headers = parseHeaderBlock(
      'From: anna@person.test\r\nTo: agent@nanobot.test\r\nSubject: Automatic reply: what is it?',
    );
    expect(gateOf(factsOf([], { headers }))).toBe('answer');
  });
});

describe('machine mail is never answered', () => {
  it.each([
    ['Auto-Submitted: auto-replied', 'auto-submitted'],
    ['Auto-Submitted: auto-generated; owner-email="a@b.test"', 'auto-submitted'],
    ['AUTO-SUBMITTED: Auto-Notified', 'auto-submitted'],
    ['List-Id: <news.example.test>', 'mailing list'],
    ['List-Unsubscribe: <https://x.test/u>', 'mailing list'],
    ['List-Post: NO', 'mailing list'],
    ['List-Help: <mailto:help@x.test>', 'mailing list'],
    ['Precedence: list', 'mailing list'],
    ['X-Auto-Response-Suppress: All', 'auto-response suppressed'],
    ['X-Auto-Response-Suppress: DR, RN, NRN, OOF, AutoReply', 'auto-response suppressed'],
    ['X-Autoreply: yes', 'machine header'],
    ['X-Autorespond: vacation', 'machine header'],
    ['X-Auto-Reply-From: a@b.test', 'machine header'],
    ['X-Mail-Autoreply: 1', 'machine header'],
    ['X-Auto-Generated: true', 'machine header'],
    ['X-Loop: anything', 'machine header'],
    ['Feedback-ID: 1:2:3:esp', 'machine header'],
    ['X-Failed-Recipients: b@c.test', 'machine header'],
    ['X-Nanobot-Id: 0123', 'a mail of nanobot'],
    ['Sender: agent@nanobot.test', 'answers would come to ourselves'],
    ['Reply-To: Agent <agent+loop@nanobot.test>', 'answers would come to ourselves'],
    ['Return-Path: <>', 'empty return path'],
    ['Return-Path: <MAILER-DAEMON@mx.test>', 'mail system sender'],
  ])('%s', (line, gate) => {
    expect(gateOf(factsOf([line]))).toBe(`refuse: ${gate}`);
  });

  it.each([
    'no-reply',
    'noreply',
    'no_reply',
    'donotreply',
    'do-not-reply',
    'bounce',
    'bounces',
    'bounce+123',
    'owner-list',
    'list-request',
    'list-owner',
    'listserv',
    'majordomo',
    'notifications',
    'auto-confirm',
  ])('from %s', (local) => {
    expect(gateOf(factsOf([], { sender: `${local}@x.test` }))).toBe('refuse: machine sender');
  });

  it.each(['mailer-daemon', 'postmaster', 'double-bounce'])('from %s', (local) => {
    expect(gateOf(factsOf([], { sender: `${local}@x.test` }))).toBe('refuse: mail system sender');
  });

  it.each([
    [['multipart/report'], 'delivery report'],
    [['multipart/mixed', 'message/delivery-status'], 'delivery report'],
    [['multipart/report', 'text/plain', 'message/disposition-notification'], 'delivery report'],
    [['multipart/encrypted'], 'encrypted'],
    [['application/pkcs7-mime'], 'encrypted'],
  ])('of type %s', (contentTypes, gate) => {
    expect(gateOf(factsOf([], { contentTypes }))).toBe(`refuse: ${gate}`);
  });

  it.each(['reply', 'cancel'])('a calendar %s', (calendarMethod) => {
    expect(gateOf(factsOf([], { calendarMethod }))).toBe('refuse: calendar answer');
  });

  it.each([
    'Automatic reply: Lunch?',
    'Out of Office: back on Monday',
    'Abwesenheitsnotiz',
    'Automatische Antwort: Frage',
    'Réponse automatique : absent',
    '自動返信：不在',
    'Respuesta automática: hola',
  ])('an unproven sender whose subject is "%s"', (subject) => {
    const headers = parseHeaderBlock(
      `From: x@y.test\r\nTo: agent@nanobot.test\r\nSubject: ${subject}`,
    );
    const facts = factsOf([], { headers, isAuthenticated: false });
    expect(gateOf(facts)).toBe('refuse: automatic subject');
  });

  it('mail that names us nowhere, as a blind copy to many does', () => {
    const headers = parseHeaderBlock('From: anna@person.test\r\nTo: undisclosed-recipients:;');
    expect(gateOf(factsOf([], { headers }))).toBe('refuse: not addressed to us');
  });

  it('mail that went round in circles', () => {
    const hops = Array.from({ length: 60 }, (_, n) => `Received: from h${n} by h${n + 1}`);
    expect(gateOf(factsOf(hops))).toBe('refuse: too many hops');
  });

  it('our own mail that comes back', () => {
    expect(gateOf(factsOf([], { isOurs: true }))).toBe('refuse: our own mail');
  });
});

describe('the mail of a proven person', () => {
  const named = (lines: readonly string[], changes: Partial<MailFacts> = {}) =>
    gateOf(factsOf(lines, { standing: 'named', ...changes }));
  const anybody = (lines: readonly string[]) => named(lines, { standing: 'anybody' });

  it.each(['bulk', 'junk', 'auto_reply'])('with Precedence: %s is held', (value) => {
    expect(named([`Precedence: ${value}`])).toBe('hold: bulk precedence');
    expect(anybody([`Precedence: ${value}`])).toBe('hold: bulk precedence');
  });

  it('is held, not refused, whatever rule stops it', () => {
    expect(named(['List-Id: <team.person.test>'])).toBe('hold: mailing list');
    expect(named(['Auto-Submitted: auto-replied'])).toBe('hold: auto-submitted');
    expect(named(['X-Loop: x'])).toBe('hold: machine header');
    expect(named(['Reply-To: agent@nanobot.test'])).toBe('hold: answers would come to ourselves');
    const blindCopy = parseHeaderBlock('From: anna@person.test\r\nTo: somebody@else.test');
    expect(named([], { headers: blindCopy })).toBe('hold: not addressed to us');
  });

  it('is refused where everybody is let in and it says itself that it is a machine’s', () => {
    expect(anybody(['List-Id: <news.shop.test>'])).toBe('refuse: mailing list');
    expect(anybody(['X-Loop: x'])).toBe('hold: machine header');
  });

  it('is answered where its provider counts feedback, or where it is encrypted', () => {
    expect(named(['Feedback-ID: i1:provider'])).toBe('answer');
    expect(named([], { contentTypes: ['application/pkcs7-mime'] })).toBe('answer');
  });

  it('is refused as long as nothing proves it', () => {
    for (const line of ['Precedence: bulk', 'List-Id: <x.test>', 'Feedback-ID: 1']) {
      expect(named([line], { isAuthenticated: false })).toMatch(/^refuse: /);
    }
  });

  it('is silent where it is our own', () => {
    expect(named([], { isOurs: true })).toBe('refuse: our own mail');
  });
});

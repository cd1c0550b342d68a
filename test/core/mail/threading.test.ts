import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  baseSubject,
  chooseThread,
  formatOwnMessageId,
  parentIds,
  parseOwnMessageId,
  replyParent,
  replyReferences,
  replySubject,
} from '../../../src/channels/email/rules/threading.ts';

describe('References of an answer', () => {
  it('are the parent’s and the parent', () => {
    const parent = { messageId: '<c@x>', references: '<a@x> <b@x>', subject: '' };
    expect(replyReferences(parent)).toEqual(['<a@x>', '<b@x>', '<c@x>']);
  });

  it('begin with the parent’s In-Reply-To where it has no References', () => {
    const parent = { messageId: '<b@x>', inReplyTo: '<a@x>', subject: '' };
    expect(replyReferences(parent)).toEqual(['<a@x>', '<b@x>']);
    const ambiguous = { messageId: '<b@x>', inReplyTo: '<a@x> <z@x>', subject: '' };
    expect(replyReferences(ambiguous)).toEqual(['<b@x>']);
  });

  it('are empty for a parent without ids', () => {
    expect(replyReferences({ subject: 'x' })).toEqual([]);
  });

  it('leave out ids that do not fit into an ASCII header', () => {
    const parent = { messageId: '<größe@x>', references: '<a@x> <ä@x>', subject: '' };
    expect(replyReferences(parent)).toEqual(['<a@x>']);
    expect(replyParent(parent)).toBeUndefined();
  });

  it('keep the first and the newest, within header limits, for any history', () => {
    const id = fc.integer({ min: 0, max: 10_000 }).map((n) => `<${n}.${'x'.repeat(n % 60)}@h>`);
    fc.assert(
      fc.property(fc.array(id, { minLength: 1, maxLength: 80 }), (ids) => {
        const unique = [...new Set(ids)].filter((one) => one !== '<p@h>');
        const parent = { messageId: '<p@h>', references: unique.join('\r\n '), subject: '' };
        const references = replyReferences(parent);
        expect(references.length).toBeLessThanOrEqual(20);
        expect(references.join(' ').length).toBeLessThanOrEqual(900);
        expect(references[0]).toBe(unique[0]);
        expect(references.at(-1)).toBe('<p@h>');
      }),
      { numRuns: 100 },
    );
  });
});

describe('the subject of an answer', () => {
  it.each([
    ['Lunch', 'Re: Lunch'],
    ['Re: Lunch', 'Re: Lunch'],
    ['RE: RE: Lunch', 'RE: Lunch'],
    ['AW: Mittag', 'AW: Mittag'],
    ['Antw: Re: Mittag', 'Antw: Mittag'],
    ['SV: Re[2]: Lunch', 'SV: Lunch'],
    ['回复：午饭', '回复： 午饭'],
    ['Rechnung: März', 'Re: Rechnung: März'],
    ['Fwd: Lunch', 'Re: Fwd: Lunch'],
    ['', 'Re:'],
    ['two\r\nBcc: evil@x.test', 'Re: two Bcc: evil@x.test'],
    ['👩‍👩‍👧 family', 'Re: 👩‍👩‍👧 family'],
    ['می‌خواهم', 'Re: می‌خواهم'],
    ['क्‍ष', 'Re: क्‍ष'],
    ['Donau\u00addampf', 'Re: Donau\u00addampf'],
    ['up\u202eside\u200b down', 'Re: upside down'],
    ['x'.repeat(600), `Re: ${'x'.repeat(600)}`],
    ['x'.repeat(2000), `Re: ${'x'.repeat(899)}…`],
  ])('%j becomes %j', (subject, expected) => {
    expect(replySubject(subject)).toBe(expected);
  });

  it('has one base whatever the programs in between added', () => {
    expect(baseSubject('Re: AW: Re[3]: SV: Lunch ')).toBe('Lunch');
  });
});

describe('our Message-IDs', () => {
  it('carry send, thread and tag', () => {
    const id = { send: 'a'.repeat(32), thread: 'b'.repeat(16), tag: 'c'.repeat(24) };
    const text = formatOwnMessageId(id, 'agent@nanobot.test');
    expect(text).toBe(`<nb.${id.send}.${id.thread}.${id.tag}@nanobot.test>`);
    expect(parseOwnMessageId(text)).toEqual(id);
    expect(parseOwnMessageId('<nb.zz@nanobot.test>')).toBeUndefined();
  });
});

describe('which thread a mail continues', () => {
  const ours = { thread: 't1', sender: 'anna@person.test', level: 'verified' } as const;

  it('is that of a parent we share with this sender', () => {
    expect(chooseThread([ours], 'anna@person.test', 'verified')).toBe('t1');
  });

  it('is a new one for a stranger who quotes our Message-ID', () => {
    expect(chooseThread([ours], 'eve@evil.test', 'verified')).toBeUndefined();
  });

  it('is a new one for an unproven mail under the name of a proven person', () => {
    expect(chooseThread([ours], 'anna@person.test', 'unverified')).toBeUndefined();
    expect(chooseThread([ours], 'anna@person.test', 'asserted')).toBe('t1');
  });

  it('is a new one without known parents', () => {
    expect(chooseThread([], 'anna@person.test', 'verified')).toBeUndefined();
  });

  it('is looked for from the nearest parent backwards', () => {
    const frame = { inReplyTo: '<c@x>', references: '<a@x> <b@x> <c@x>' };
    expect(parentIds(frame)).toEqual(['<c@x>', '<b@x>', '<a@x>']);
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  addressOf,
  idOfPerson,
  isAllowEntry,
  isPerson,
  normaliseAllowed,
  parseJid,
  personOfId,
} from '../../../src/channels/whatsapp/rules/jid.ts';

describe('an address of WhatsApp', () => {
  it.each([
    ['491511234567@s.whatsapp.net', { kind: 'number', user: '491511234567', device: 0 }],
    ['491511234567:12@s.whatsapp.net', { kind: 'number', user: '491511234567', device: 12 }],
    ['491511234567_1:12@s.whatsapp.net', { kind: 'number', user: '491511234567', device: 12 }],
    ['491511234567@c.us', { kind: 'number', user: '491511234567', device: 0 }],
    ['491511234567:99@hosted', { kind: 'number', user: '491511234567', device: 99 }],
    ['15552:0@s.whatsapp.net', { kind: 'number', user: '15552', device: 0 }],
    ['123456789012345@lid', { kind: 'lid', user: '123456789012345', device: 0 }],
    ['123456789012345:7@lid', { kind: 'lid', user: '123456789012345', device: 7 }],
    ['123456789012345:99@hosted.lid', { kind: 'lid', user: '123456789012345', device: 99 }],
    ['120363041234567890@g.us', { kind: 'group', jid: '120363041234567890@g.us' }],
    ['491511234567-1600000000@g.us', { kind: 'group', jid: '491511234567-1600000000@g.us' }],
    ['status@broadcast', { kind: 'status' }],
    ['1600000000@broadcast', { kind: 'broadcast', jid: '1600000000@broadcast' }],
    ['120363041234567890@newsletter', { kind: 'newsletter', jid: '120363041234567890@newsletter' }],
  ])('%s is taken apart', (text, jid) => {
    expect(parseJid(text)).toEqual(jid);
  });

  it.each([
    'x@lid@s.whatsapp.net',
    '123@lid@s.whatsapp.net',
    '@s.whatsapp.net',
    '0@s.whatsapp.net',
    'abc@lid',
    '0123@lid',
    '491511234567',
    '491511234567@',
    '491511234567:@s.whatsapp.net',
    '49:1:2@s.whatsapp.net',
    '491511234567@s.whatsapp.net ',
    '491511234567@S.WHATSAPP.NET',
    '491511234567890123@s.whatsapp.net',
    '../1@g.us',
    'status@g.us',
    '13135550002@bot',
    '',
    undefined,
    null,
  ])('%j names nobody', (text) => {
    expect(parseJid(text)).toEqual({ kind: 'unreadable' });
  });

  it('never throws and never finds a person in a text with two @', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.string(), (a, b, c) => {
        parseJid(a);
        expect(isPerson(parseJid(`${a}@${b}@${c}`))).toBe(false);
      }),
    );
  });

  it('gives one id whatever the device, and the id gives the address back', () => {
    const user = fc.stringMatching(/^[1-9]\d{4,14}$/);
    const device = fc.integer({ min: 0, max: 99_999 });
    fc.assert(
      fc.property(user, device, fc.constantFrom('s.whatsapp.net', 'lid'), (digits, nth, server) => {
        const bare = parseJid(`${digits}@${server}`);
        const ofDevice = parseJid(`${digits}:${nth}@${server}`);
        if (!isPerson(bare) || !isPerson(ofDevice)) throw new Error('not a person');
        expect(idOfPerson(ofDevice)).toBe(idOfPerson(bare));
        expect(personOfId(idOfPerson(bare))).toEqual(bare);
        expect(addressOf(ofDevice)).toBe(`${digits}@${server}`);
      }),
    );
  });

  it.each(['self', '491511234567', '1:2@lid', '+1@lid', '120363041234567890@g.us', '+', ''])(
    '%j is no id of a person',
    (id) => {
      expect(personOfId(id)).toBeUndefined();
    },
  );
});

describe('an entry of the allow list', () => {
  it.each([
    ['*', '*'],
    [' * ', '*'],
    ['+491511234567', '+491511234567'],
    ['+49 151/123-45 67', '+491511234567'],
    ['0049 151 1234567', '+491511234567'],
    ['+49 (0) 151 1234567', '+491511234567'],
    ['\u202a+49\u00a0151 1234567\u202c', '+491511234567'],
    ['+1 (555) 123-4567', '+15551234567'],
    ['491511234567@s.whatsapp.net', '+491511234567'],
    ['491511234567:3@c.us', '+491511234567'],
    ['123456789012345@lid', '123456789012345@lid'],
    ['123456789012345:7@LID', '123456789012345@lid'],
  ])('%j is written %s', (entry, normal) => {
    expect(normaliseAllowed(entry)).toBe(normal);
    expect(isAllowEntry(entry)).toBe(true);
  });

  it.each([
    'Alice',
    '0151 1234567',
    '(0) 151 1234567',
    '491511234567',
    '+0151 1234567',
    '+49',
    '120363041234567890@g.us',
    'x@lid@s.whatsapp.net',
    'self',
    '**',
    '',
  ])('%j lets nobody in', (entry) => {
    expect(isAllowEntry(entry)).toBe(false);
    expect(normaliseAllowed(entry)).toBe(entry.trim());
  });

  it('is normal once it was normalised', () => {
    fc.assert(
      fc.property(fc.string(), (entry) => {
        const once = normaliseAllowed(entry);
        expect(normaliseAllowed(once)).toBe(once);
      }),
    );
  });
});

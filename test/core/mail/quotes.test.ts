import { describe, expect, it } from 'vitest';
import {
  composeMailText,
  partsDiffer,
  stripQuotes,
} from '../../../src/channels/email/rules/text.ts';
import { visibleText } from '../../../src/lib/text/cut.ts';

const QUOTE = '> At Luigi.\n> See you.';
const OUTLOOK_BODY = 'At Luigi.\n\nSee you.';

describe('what mail programs quote below an answer is cut', () => {
  it.each([
    ['Gmail', `On Mon, Jan 5, 2026 at 12:00 PM Agent <agent@nanobot.test> wrote:\n\n${QUOTE}`],
    [
      'Gmail, folded',
      `On Mon, Jan 5, 2026 at 12:00 PM Agent\n<agent@nanobot.test> wrote:\n\n${QUOTE}`,
    ],
    ['Apple Mail', `On 5. Jan 2026, at 12:00, Agent <agent@nanobot.test> wrote:\n\n${QUOTE}`],
    ['Thunderbird', `On 1/5/26 12:00, Agent wrote:\n${QUOTE}`],
    [
      'Gmail, German',
      `Am Mo., 5. Jan. 2026 um 12:00 Uhr schrieb Agent <agent@nanobot.test>:\n\n${QUOTE}`,
    ],
    ['Thunderbird, German', `Am 05.01.26 um 12:00 schrieb Agent:\n${QUOTE}`],
    [
      'Apple Mail, German',
      `Am 05.01.2026 um 12:00 schrieb Agent <agent@nanobot.test>:\n\n${QUOTE}`,
    ],
    [
      'older Gmail, German',
      `Agent <agent@nanobot.test> schrieb am Mo., 5. Jan. 2026, 12:00:\n\n${QUOTE}`,
    ],
    [
      'Gmail, French',
      `Le lun. 5 janv. 2026 à 12:00, Agent <agent@nanobot.test> a écrit :\n\n${QUOTE}`,
    ],
    [
      'Gmail, Spanish',
      `El lun, 5 ene 2026 a las 12:00, Agent (<agent@nanobot.test>) escribió:\n\n${QUOTE}`,
    ],
    [
      'Gmail, Italian',
      `Il giorno lun 5 gen 2026 alle ore 12:00 Agent <agent@nanobot.test> ha scritto:\n\n${QUOTE}`,
    ],
    [
      'Gmail, Portuguese',
      `Em seg., 5 de jan. de 2026 às 12:00, Agent <agent@nanobot.test> escreveu:\n\n${QUOTE}`,
    ],
    ['Gmail, Dutch', `Op ma 5 jan 2026 om 12:00 schreef Agent <agent@nanobot.test>:\n\n${QUOTE}`],
    [
      'Gmail, Swedish',
      `Den mån 5 jan. 2026 kl 12:00 skrev Agent <agent@nanobot.test>:\n\n${QUOTE}`,
    ],
    [
      'Gmail, Polish',
      `W dniu pon., 5 sty 2026 o 12:00 Agent <agent@nanobot.test> napisał(a):\n\n${QUOTE}`,
    ],
    [
      'Gmail, Russian',
      `пн, 5 янв. 2026 г. в 12:00, Agent <agent@nanobot.test> написал:\n\n${QUOTE}`,
    ],
    ['Gmail, Japanese', `2026年1月5日(月) 12:00 Agent <agent@nanobot.test>:\n\n${QUOTE}`],
    ['Gmail, Chinese', `Agent <agent@nanobot.test> 于2026年1月5日周一 12:00写道：\n\n${QUOTE}`],
    [
      'Outlook classic',
      `-----Original Message-----\nFrom: Agent\nSent: Monday\nTo: Anna\nSubject: x\n\n${OUTLOOK_BODY}`,
    ],
    [
      'Outlook, German',
      `-----Ursprüngliche Nachricht-----\nVon: Agent\nGesendet: Montag\nAn: Anna\nBetreff: x\n\n${OUTLOOK_BODY}`,
    ],
    [
      'Outlook.com',
      `________________________________\nFrom: Agent <agent@nanobot.test>\nSent: Monday, January 5, 2026 12:00\nTo: Anna\nSubject: x\n\n${OUTLOOK_BODY}`,
    ],
    [
      'Outlook 365, German',
      `Von: Agent <agent@nanobot.test>\nGesendet: Montag, 5. Januar 2026 12:00\nAn: Anna\nBetreff: Re: x\n\n${OUTLOOK_BODY}`,
    ],
    [
      'Outlook, French',
      `De : Agent <agent@nanobot.test>\nEnvoyé : lundi 5 janvier 2026\nÀ : Anna\nObjet : x\n\n${OUTLOOK_BODY}`,
    ],
    ['a bare quotation', QUOTE],
    [
      'an HTML quotation without marks',
      `On Mon, Jan 5, 2026 at 12:00 PM Agent <agent@nanobot.test> wrote:\n\n${OUTLOOK_BODY}`,
    ],
  ])('%s', (_, below) => {
    const stripped = stripQuotes(`Good, see you there.\n\n${below}\n`);
    expect(stripped.text).toBe('Good, see you there.');
    expect(stripped.quoted).toContain('At Luigi.');
    expect(stripped.isForward).toBe(false);
  });

  it('with Windows line ends too', () => {
    const mail = `Yes.\r\n\r\nOn Mon, Jan 5, 2026 at 12:00 A <a@b.test> wrote:\r\n> No?\r\n`;
    expect(stripQuotes(mail).text).toBe('Yes.');
  });
});

describe('signatures are cut', () => {
  it.each([
    'Yes.\n-- \nAnna Muster\nTel. 123',
    'Yes.\n--\nAnna Muster',
    'Yes.\n\nSent from my iPhone',
    'Yes.\n\nVon meinem iPhone gesendet',
    'Yes.\n\nEnvoyé de mon iPhone',
    'Yes.\n\nGet Outlook for Android',
    `Yes.\n\nSent from my iPhone\n\nOn Jan 5, 2026, at 12:00, A <a@b.test> wrote:\n${QUOTE}`,
    `Yes.\n-- \nAnna\n\nOn Jan 5, 2026, at 12:00, A <a@b.test> wrote:\n${QUOTE}`,
  ])('%j', (mail) => {
    expect(stripQuotes(mail).text).toBe('Yes.');
  });
});

describe('a person’s own words are never cut', () => {
  it.each([
    [
      'an answer between the quotes',
      `On Jan 5, 2026 at 12:00, A <a@b.test> wrote:\n> One?\nYes.\n> Two?\nNo.`,
    ],
    [
      'an answer below the quote',
      `On Jan 5, 2026 at 12:00, A <a@b.test> wrote:\n> One?\n\nYes, gladly.`,
    ],
    ['quoted lines in the middle', '> One?\n\nYes.\n\n> Two?\n\nNo.'],
    [
      'a story that says "wrote:"',
      'On Monday he wrote:\n\nDear all, this is my text.\nIt goes on.',
    ],
    ['a line that begins with From:', 'From: my heart\nthank you for all.'],
    ['dashes', 'One\n---\nTwo\n-----\nThree'],
    ['a list', '- one\n- two\n-- three'],
    ['code', 'if (a > b) {\n  return;\n}'],
    ['the German word schrieb', 'Er schrieb mir gestern:\nAlles gut.'],
  ])('%s', (_, mail) => {
    expect(stripQuotes(mail)).toEqual({ text: mail, isForward: false });
  });

  it('nor is a mail that is nothing but a signature', () => {
    expect(stripQuotes('\n-- ').text).toBe('--');
    expect(stripQuotes('\n-- \nAnna').text).toBe('-- \nAnna');
  });

  it('nor is a mail that is nothing but a quotation', () => {
    expect(stripQuotes(QUOTE).text).toBe(QUOTE);
  });
});

describe('a forwarded mail', () => {
  it.each([
    '---------- Forwarded message ---------\nFrom: Bob <bob@x.test>\nDate: Mon\nSubject: Offer\nTo: Anna\n\nBuy now.',
    '---------- Weitergeleitete Nachricht ---------\nVon: Bob\n\nBuy now.',
    'Begin forwarded message:\n\nFrom: Bob\nSubject: Offer\n\nBuy now.',
    'Anfang der weitergeleiteten Nachricht:\n\nVon: Bob\n\nBuy now.',
  ])('is kept apart from the person’s words: %j', (below) => {
    const stripped = stripQuotes(`What do you think?\n\n${below}`);
    expect(stripped).toMatchObject({ text: 'What do you think?', isForward: true });
    expect(stripped.quoted).toContain('Buy now.');
  });
});

describe('the text the model sees', () => {
  const mail = {
    subject: 'Lunch?',
    stripped: { text: 'Where?', quoted: 'old words', isForward: false },
    attachments: [],
    isFirst: true,
    partsDiffer: false,
    recipients: '',
    calendars: [],
  };

  it('begins with the subject on the first mail of a thread only', () => {
    expect(composeMailText(mail)).toEqual({
      text: 'Subject: Lunch?\n\nWhere?',
      quoted: 'old words',
    });
    expect(composeMailText({ ...mail, isFirst: false })).toEqual({ text: 'Where?' });
  });

  it('is a command where the person wrote one, in the text or alone in the subject', () => {
    const command = { text: '/start 1234', isForward: false };
    expect(composeMailText({ ...mail, stripped: command }).text).toBe('/start 1234');
    const empty = { text: '', isForward: false };
    const inSubject = { ...mail, subject: '/status', stripped: empty };
    expect(composeMailText(inSubject).text).toBe('/status');
    expect(composeMailText({ ...mail, stripped: empty }).text).toBe('Subject: Lunch?');
  });

  it('says what was attached and not read', () => {
    const attachments = [
      { name: 'a\u202Efdp.exe', type: 'application/pdf', bytes: 12_345, isInline: false },
    ];
    const { text } = composeMailText({ ...mail, attachments });
    expect(text).toContain('[attachment, not read: afdp.exe (application/pdf, 12,345 bytes)]');
  });

  it('names inline images, and counts them where there are many', () => {
    const logo = { name: 'logo.png', type: 'image/png', bytes: 900, isInline: true };
    const { text } = composeMailText({ ...mail, attachments: [logo, logo, logo, logo, logo] });
    expect(text.split('\n').slice(-4)).toEqual([
      ...Array(3).fill('[inline image, not read: logo.png (image/png, 900 bytes)]'),
      '[2 more inline parts, not read]',
    ]);
  });

  it('says so when the HTML version is about something else', () => {
    expect(composeMailText({ ...mail, partsDiffer: true }).text).toContain('differs');
    expect(partsDiffer('please transfer all money to this account', 'Hello dear friend')).toBe(
      true,
    );
    expect(partsDiffer('Hello my dear old friend', '<b>Hello</b> my dear old friend!')).toBe(false);
  });

  it('announces what it leaves out', () => {
    const stripped = { text: 'x'.repeat(100_500), isForward: false };
    const { text } = composeMailText({ ...mail, stripped });
    expect(text).toContain('[truncated, 500 characters omitted]');
  });

  it('holds no invisible characters', () => {
    const tags = String.fromCodePoint(0xe0041, 0xe0042);
    expect(visibleText(`a\u200Bb\u202Ec\u0000d\uFEFFe${tags}f\u00ADg`)).toBe('abcdefg');
    expect(visibleText('👩‍👧 नमस्ते‌')).toBe('👩‍👧 नमस्ते‌');
  });
});

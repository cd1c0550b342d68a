// Who gets an answer besides the sender: by default nobody, never anybody the allow list does not name.

import { describe, expect, it } from 'vitest';
import { parseHeaderBlock } from '../../../src/channels/email/rules/address.ts';
import {
  copyRecipients,
  otherRecipients,
  recipientNote,
} from '../../../src/channels/email/rules/threading.ts';

const OWN = ['agent@nanobot.test'];
const ANNA = 'anna@person.test';
const BOB = 'bob@person.test';

const others = (...fields: readonly string[]) =>
  otherRecipients(parseHeaderBlock(fields.join('\r\n')), ANNA, OWN);

describe('the other recipients of a mail', () => {
  it('are those of To and Cc without us and the sender', () => {
    const found = others(
      'To: Agent <agent+tag@nanobot.test>, "Bob, B." <Bob@Person.test>',
      `Cc: ${ANNA}, ${BOB}, carol@person.test`,
    );
    expect(found).toEqual([BOB, 'carol@person.test']);
  });

  it('are nobody where we stand in neither line', () => {
    expect(others(`To: ${BOB}`, 'Delivered-To: agent@nanobot.test')).toEqual([]);
  });

  it('are nobody where the mail went to a crowd', () => {
    const crowd = Array.from({ length: 60 }, (_, n) => `p${n}@person.test`).join(', ');
    expect(others('To: agent@nanobot.test', `Cc: ${crowd}`)).toEqual([]);
  });
});

describe('a copy of the answer', () => {
  it('goes to nobody by default, nor for a mail nothing proves', () => {
    expect(copyRecipients([BOB], 'never', true, [BOB])).toEqual([]);
    expect(copyRecipients([BOB], 'trusted', false, [BOB])).toEqual([]);
  });

  it('goes to people the allow list names, and "*" names nobody', () => {
    expect(copyRecipients([BOB, 'eve@evil.test'], 'trusted', true, ['Bob@person.test'])).toEqual([
      BOB,
    ]);
    expect(copyRecipients([BOB], 'trusted', true, ['*'])).toEqual([]);
  });

  it('goes to no machine, and to five people at most', () => {
    expect(
      copyRecipients(['noreply@person.test'], 'trusted', true, ['noreply@person.test']),
    ).toEqual([]);
    const many = Array.from({ length: 9 }, (_, n) => `p${n}@person.test`);
    expect(copyRecipients(many, 'trusted', true, many)).toHaveLength(5);
  });
});

it('tells the model who else reads along', () => {
  expect(recipientNote([], [])).toBe('');
  expect(recipientNote([BOB], [])).toBe(
    `[sent to ${BOB} too; your answer goes to the sender only]`,
  );
  const many = Array.from({ length: 12 }, (_, n) => `p${n}@person.test`);
  expect(recipientNote(many, ['p1@person.test'])).toMatch(
    /p9@person\.test and 2 more too; your answer goes to the sender and p1@person\.test\]$/,
  );
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  createLidDirectory,
  createPeople,
  type LidMapping,
  type Meeting,
} from '../../../src/channels/whatsapp/people.ts';
import {
  isPerson,
  type PersonJid,
  parseJid,
  SELF_CHAT,
} from '../../../src/channels/whatsapp/rules/jid.ts';
import { chatId } from '../../../src/kernel/message/ids.ts';
import { silentLogger } from '../../../src/lib/logger.ts';
import { createMemoryStore } from '../../support/memory-host.ts';
import { createMovableClock } from '../../support/movable-clock.ts';

const OWN = '4917000000';

function jid(text: string): PersonJid {
  const parsed = parseJid(text);
  if (!isPerson(parsed)) throw new Error(`${text} is nobody`);
  return parsed;
}

type Stored = Readonly<Record<string, string>>;

function setUp(options: { readonly rows?: Stored; readonly mapping?: LidMapping } = {}) {
  const clock = createMovableClock();
  const rows: Record<string, string> = { ...options.rows };
  const state = createMemoryStore();
  const directory = createLidDirectory({
    keys: () => ({
      get: async (_type, ids) => {
        const found: Record<string, never> = {};
        for (const id of ids) Object.assign(found, id in rows ? { [id]: rows[id] } : {});
        return found;
      },
    }),
    mapping: () => options.mapping,
    clock,
    log: silentLogger,
  });
  const account = () => ({ number: OWN });
  const people = createPeople({ state, clock, log: silentLogger, directory, account });
  const meet = (address: string, alt?: string, role: Meeting['role'] = 'wrote') =>
    people.meet({ address: jid(address), role, ...(alt === undefined ? {} : { alt: jid(alt) }) });
  return { clock, rows, state, people, meet };
}

const NUMBER = '4915112345@s.whatsapp.net';
const LID = '777@lid';
const TIME = Date.UTC(2026, 0, 15, 12);

it('answers in the chat with oneself of the account that is linked now', async () => {
  const { people } = setUp();
  await people.meetSelf(jid('4916000000@s.whatsapp.net'));
  expect(await people.addressOf(SELF_CHAT)).toBe(`${OWN}@s.whatsapp.net`);
  await people.meetSelf(jid(`${OWN}@s.whatsapp.net`));
  expect(await people.addressOf(SELF_CHAT)).toBe(`${OWN}@s.whatsapp.net`);
});

describe('a person seen under a LID and a number', () => {
  it('has one chat from the first message on where the server tells both', async () => {
    const { meet } = setUp();
    const first = await meet(LID, NUMBER);
    expect(first).toMatchObject({
      chat: '+4915112345',
      id: '+4915112345',
      alsoKnownAs: ['777@lid'],
    });
    for (const again of [LID, NUMBER, '777:12@lid', '4915112345:3@s.whatsapp.net']) {
      expect((await meet(again)).chat).toBe('+4915112345');
    }
  });

  it('keeps the chat of the first contact when the number is learnt later', async () => {
    const { meet } = setUp();
    expect(await meet(LID)).toMatchObject({ chat: '777@lid', id: '777@lid', alsoKnownAs: [] });
    expect(await meet(LID, NUMBER)).toMatchObject({
      chat: '777@lid',
      id: '+4915112345',
      alsoKnownAs: ['777@lid'],
    });
    expect((await meet(NUMBER)).chat).toBe('777@lid');
  });

  it('has the older of two chats once both are known to be theirs', async () => {
    const { meet, clock, people } = setUp();
    await meet(LID);
    await clock.advance(1000);
    expect((await meet(NUMBER)).chat).toBe('+4915112345');
    await clock.advance(1000);
    expect((await meet(NUMBER, LID)).chat).toBe('777@lid');
    expect((await meet(NUMBER)).chat).toBe('777@lid');
    expect(await people.namesOf(chatId('+4915112345'))).toEqual(['777@lid', '+4915112345']);
    expect(await people.addressOf(chatId('+4915112345'))).toBe(NUMBER);
  });

  it('is recognised in a message that comes again after its chat was joined', async () => {
    const { meet, clock } = setUp();
    await meet(LID);
    await clock.advance(1000);
    await meet(NUMBER);
    await clock.advance(1000);
    const later = await meet(NUMBER, LID);
    expect(later.chatAt(TIME + 1500)).toBe('+4915112345');
    expect(later.chatAt(TIME + 2500)).toBe('777@lid');
    expect((await meet(LID)).chatAt(TIME + 1500)).toBe('777@lid');
  });

  it('is joined by one write, so that no crash leaves half of it', async () => {
    const { meet, state, clock } = setUp();
    await meet(LID);
    await clock.advance(1000);
    await meet(NUMBER);
    const writes: unknown[] = [];
    const { setMany } = state;
    Object.assign(state, {
      setMany: (rows: Parameters<typeof setMany>[0]) => {
        writes.push(rows);
        return setMany(rows);
      },
    });
    await meet(LID, NUMBER);
    await meet(LID, NUMBER);
    expect(writes).toHaveLength(1);
  });

  it('is answered where the last message came from', async () => {
    const { meet, people } = setUp();
    const { chat } = await meet(LID, NUMBER);
    expect(await people.addressOf(chat)).toBe(LID);
    await meet('4915112345:4@s.whatsapp.net');
    expect(await people.addressOf(chat)).toBe(NUMBER);
    await meet(LID, undefined, 'written_to');
    await meet(LID, undefined, 'seen');
    expect(await people.addressOf(chat)).toBe(NUMBER);
  });

  it('is one person in every order of addresses, and nobody else is', async () => {
    const human = fc.constantFrom(0, 1, 2);
    const sight = fc.record({
      human,
      kind: fc.constantFrom('lid', 'number', 'both', 'both turned'),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(sight, { maxLength: 25 }), async (sights) => {
        const { meet, clock } = setUp();
        const first = new Map<number, string>();
        for (const { human: who, kind } of sights) {
          const lid = `${700 + who}:${who}@lid`;
          const number = `49151000${who}@s.whatsapp.net`;
          const [address, alt] = kind.startsWith('both') ? [lid, number] : [];
          if (address === undefined) {
            const met = await meet(kind === 'lid' ? lid : number);
            first.set(who, first.get(who) ?? met.chat);
          } else {
            const met = await (kind === 'both' ? meet(address, alt) : meet(alt ?? '', address));
            first.set(who, first.get(who) ?? met.chat);
          }
          await clock.advance(1);
        }
        const chats = await Promise.all(
          [...first.keys()].map(async (who) => {
            const met = await meet(`${700 + who}@lid`, `49151000${who}@s.whatsapp.net`);
            const again = await meet(`49151000${who}:7@s.whatsapp.net`);
            expect(again.chat).toBe(met.chat);
            expect(met.chat).toBe(first.get(who));
            return met.chat;
          }),
        );
        expect(new Set(chats).size).toBe(chats.length);
      }),
      { numRuns: 60 },
    );
  });
});

describe('a number that changes hands', () => {
  it('does not bring its new owner into the chat of the old one', async () => {
    const { meet, people } = setUp();
    const old = await meet(LID, NUMBER);
    const next = await meet('888@lid', NUMBER);
    expect(next.chat).not.toBe(old.chat);
    expect(next).toMatchObject({ id: '+4915112345', alsoKnownAs: ['888@lid'] });
    expect(await meet(LID)).toMatchObject({ chat: old.chat, id: '777@lid', alsoKnownAs: [] });
    expect((await meet(NUMBER)).chat).toBe(next.chat);
    expect(await people.addressOf(old.chat)).toBe(LID);
  });

  it('leaves somebody with a new number in their chat', async () => {
    const { meet } = setUp();
    const before = await meet(LID, NUMBER);
    const after = await meet(LID, '33600000000@s.whatsapp.net');
    expect(after).toMatchObject({ chat: before.chat, id: '+33600000000' });
    const stranger = await meet(NUMBER);
    expect(stranger.chat).toBe('+4915112345~2');
    expect(stranger.alsoKnownAs).toEqual([]);
  });

  it('is never made ours', async () => {
    const { meet } = setUp({ rows: { '777_reverse': OWN } });
    expect(await meet(LID, `${OWN}@s.whatsapp.net`)).toMatchObject({
      id: '777@lid',
      alsoKnownAs: [],
    });
    expect(await meet(LID)).toMatchObject({ id: '777@lid' });
  });
});

describe('what the library knows of LIDs', () => {
  it('is used from its stored rows, both ways', async () => {
    const { meet } = setUp({ rows: { '777_reverse': '4915112345', '33600000000': '888' } });
    expect(await meet(LID)).toMatchObject({ id: '+4915112345', alsoKnownAs: ['777@lid'] });
    expect(await meet('33600000000@s.whatsapp.net')).toMatchObject({
      id: '+33600000000',
      alsoKnownAs: ['888@lid'],
    });
  });

  it('is asked for over the connection, and comes with a device that does not matter', async () => {
    const mapping: LidMapping = {
      getPNForLID: async () => '4915112345:0@s.whatsapp.net',
      getLIDForPN: async () => null,
    };
    const { meet } = setUp({ mapping });
    expect(await meet(LID)).toMatchObject({ id: '+4915112345' });
  });

  it('is not waited for longer than a moment, and then not asked for a while', async () => {
    const asked: string[] = [];
    const never = (name: string) => {
      asked.push(name);
      return new Promise<never>(() => undefined);
    };
    const { meet, clock } = setUp({ mapping: { getPNForLID: never, getLIDForPN: never } });
    const meeting = meet(LID);
    await clock.advance(1500);
    expect(await meeting).toMatchObject({ id: '777@lid' });
    expect(await meet('888@lid')).toMatchObject({ id: '888@lid' });
    expect(asked).toEqual(['777@lid']);
    await clock.advance(61_000);
    const next = meet('888@lid');
    await clock.advance(1500);
    expect(await next).toMatchObject({ id: '888@lid' });
    expect(asked).toEqual(['777@lid', '888@lid']);
  });

  it('counts as nothing where the connection broke meanwhile or the answer names nobody', async () => {
    const broken: LidMapping = {
      getPNForLID: () => Promise.reject(new Error('Connection Closed')),
      getLIDForPN: async () => 'x@lid@s.whatsapp.net',
    };
    const { meet } = setUp({ mapping: broken });
    expect(await meet(LID)).toMatchObject({ id: '777@lid', alsoKnownAs: [] });
    expect(await meet(NUMBER)).toMatchObject({ id: '+4915112345', alsoKnownAs: [] });
  });
});

describe('where an answer goes', () => {
  it('follows the name of a chat nobody wrote in yet', async () => {
    const { people } = setUp();
    expect(await people.addressOf(chatId('+4915112345'))).toBe(NUMBER);
    expect(await people.addressOf(chatId('777@lid'))).toBe(LID);
    expect(await people.addressOf(chatId('12345@g.us'))).toBe('12345@g.us');
    expect(await people.addressOf(chatId('x@lid@s.whatsapp.net'))).toBeUndefined();
    expect(await people.addressOf(chatId('self'))).toBe(`${OWN}@s.whatsapp.net`);
  });

  it('tells who wrote to us from who was only written to or seen', async () => {
    const { people, meet, state } = setUp();
    const { chat } = await meet(LID, NUMBER, 'written_to');
    expect(await people.hasWritten(chat)).toBe(false);
    await meet(LID);
    expect(await people.hasWritten(chat)).toBe(true);
    expect(await people.hasWritten(chatId('777@lid'))).toBe(true);
    const rows = await state.list('person/');
    await meet('888@lid', undefined, 'seen');
    expect(await state.list('person/')).toEqual(rows);
  });
});

describe('a stored person that cannot be read', () => {
  it.each(['', '{"chat":"+49', 'null', '[]', '{"chat":"+4915112345"}', '{"into":7}'])(
    'because the row is `%s` is met as somebody new, and answered',
    async (damaged) => {
      const { meet, people, state } = setUp();
      const before = await meet(LID, NUMBER);
      await state.set(`person/chat/${before.chat}`, damaged);
      const after = await meet(LID, NUMBER);
      expect(after).toMatchObject({ id: '+4915112345', alsoKnownAs: ['777@lid'] });
      expect(after.chat).not.toBe(before.chat);
      expect((await meet(NUMBER)).chat).toBe(after.chat);
      expect(await people.addressOf(after.chat)).toBe(NUMBER);
      expect(await people.hasWritten(after.chat)).toBe(true);
      // An answer that was on its way to them when the row broke.
      expect(await people.addressOf(before.chat)).toBe(NUMBER);
    },
  );

  it('is nobody a second chat leads to', async () => {
    const { meet, people, state, clock } = setUp();
    await meet(LID);
    await clock.advance(1000);
    await meet(NUMBER);
    await clock.advance(1000);
    const { chat } = await meet(NUMBER, LID);
    await state.set(`person/chat/${chat}`, '{');
    expect(await people.addressOf(chatId('+4915112345'))).toBe(NUMBER);
    expect(await people.namesOf(chatId('+4915112345'))).toEqual(['+4915112345']);
    expect(await meet(NUMBER)).toMatchObject({ id: '+4915112345' });
  });
});

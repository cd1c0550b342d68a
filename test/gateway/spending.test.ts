// The guard over a real store with time moved by hand: what runs side by side, what a dead process
// leaves, midnight, and what is told about it.

import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Refusal, Reservation } from '../../src/agent/agent.ts';
import { createBudgetNotes, type UsedUp } from '../../src/features/spending/budget-notes.ts';
import { Spending } from '../../src/features/spending/spending.ts';
import type { BudgetOwners } from '../../src/features/spending/spending-day.ts';
import { storedDays } from '../../src/features/spending/spending-day.ts';
import {
  budgetQuestion,
  createBudgetAnswers,
  createSpendingService,
  type SpendingService,
} from '../../src/features/spending/spending-service.ts';
import type { PersonLimits } from '../../src/kernel/access/person.ts';
import { openEmbeddedStore } from '../../src/kernel/bus/store/embedded.ts';
import type { EmbeddedStore } from '../../src/kernel/bus/store/store.ts';
import { limitsSchema } from '../../src/kernel/config/limits.ts';
import { channelName, chatId, DEFAULT_ACCOUNT, userId } from '../../src/kernel/message/ids.ts';
import type { KnownAs } from '../../src/kernel/people/persons.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createMovableClock, type MovableClock } from '../support/movable-clock.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const NOON = Date.UTC(2026, 0, 15, 12);
const signal = new AbortController().signal;

let folder: string;
let clock: MovableClock;
let store: EmbeddedStore;
let spending: Spending;
let service: SpendingService;
let budget: object;
let doors: Readonly<Record<string, readonly string[]>>;
let own: Readonly<Record<string, PersonLimits>>;
let told: { id: string; chat: string; markdown: string }[];
let asked: UsedUp[];

async function open() {
  store = await openEmbeddedStore({ path: join(folder, 'state.db'), clock, log: silentLogger });
  const settings = () => ({
    limits: limitsSchema.parse({ budget }),
    prices: [{ model: 'test/model', input: 1, output: 10, cached: 0.1 }],
    timeZone: 'Europe/Berlin',
  });
  const notes = createBudgetNotes({
    bus: {
      async send({ id, chat, markdown }) {
        told.push({ id, chat: chat.chat, markdown });
        return 'queued';
      },
    },
    log: silentLogger,
    ownerChat: async () => chatOf('owner'),
    currency: () => 'USD',
    now: () => clock.now(),
    askOwner: async (usedUp) => void asked.push(usedUp),
  });
  const state = store.scope('spending');
  const knownAs: KnownAs = async ({ sender }) => ({
    names: doors[sender.kind === 'person' ? sender.id : ''] ?? [],
  });
  const ownerOf: BudgetOwners = async ([key]) => {
    const limits = own[key.split(':').at(-1) ?? ''];
    return { name: `Name of ${key}`, ...(limits === undefined ? {} : { limits }) };
  };
  spending = new Spending({ state, clock, log: silentLogger, notes, knownAs, ownerOf, settings });
  const sessions = { load: async () => [], turn: async () => [] };
  service = createSpendingService(spending, settings, ownerOf, sessions, {
    ...{ bus: { trace: async () => undefined }, metrics: () => '' },
  });
  await spending.today();
}

/** The process dies: nothing is stored that was not. */
async function crash() {
  await store[Symbol.asyncDispose]();
  await open();
}

beforeEach(async () => {
  folder = await temporaryFolder();
  clock = createMovableClock(NOON);
  told = [];
  asked = [];
  budget = {};
  doors = {};
  own = {};
  await open();
});

afterEach(async () => {
  await spending[Symbol.asyncDispose]();
  await store[Symbol.asyncDispose]();
});

const chatOf = (chat: string) => ({
  channel: channelName('chat'),
  account: DEFAULT_ACCOUNT,
  chat: chatId(chat),
});
const payerOf = (id: string) => ({
  chat: chatOf(id),
  sender: { kind: 'person' as const, id: userId(id), verified: 'verified' as const },
});
const ask = (id: string, model = 'test/model') =>
  spending.reserve(
    { role: 'turn', payer: payerOf(id), model, inputTokens: 800, outputTokens: 1000 },
    signal,
  );
function finish(reserved: Reservation | Refusal, inputTokens = 800, outputTokens = 200) {
  if (reserved.kind === 'refused') throw new Error(reserved.text);
  const usage = { inputTokens, outputTokens, cachedTokens: 0 };
  reserved.settle({ kind: 'finished', usage, answerTokens: 1 });
}
const spent = async (key: string) =>
  (await service.all()).find((view) => view.key === key)?.ledger.spent.tokens ?? 0;

describe('a paid call that is no model', () => {
  const pay = (micros: number) => spending.reservePaid({ payer: payerOf('7'), micros }, signal);

  it('never passes a limit of money, waits for room, and is refused in the same words', async () => {
    budget = { perPersonMoneyPerDay: 1 };
    const calls = Array.from({ length: 20 }, async () => {
      const reserved = await pay(300_000);
      if (reserved.kind === 'refused') return reserved.text;
      await new Promise((resolve) => setImmediate(resolve));
      reserved.settle(200_000);
      reserved.settle(200_000);
      return 'done';
    });
    const ends = await Promise.all(calls);
    expect(ends.filter((end) => end === 'done')).toHaveLength(4);
    expect(ends).toContainEqual(
      expect.stringMatching(/too little for an answer \(1\.00 USD a day\)/),
    );
    const [total] = await service.all();
    expect(total?.ledger.spent).toEqual({ tokens: 0, micros: 800_000 });
  });

  it('is refused where the tokens are used up, and held as spent by a process that dies', async () => {
    budget = { perPersonTokensPerDay: 4000, totalMoneyPerDay: 10 };
    expect((await pay(500_000)).kind).toBe('reserved');
    await crash();
    expect((await service.all())[0]?.ledger.spent.micros).toBe(500_000);
    finish(await ask('7'), 3000, 1000);
    expect((await pay(1)).kind).toBe('refused');
  });
});

describe('a model whose price nobody knows', () => {
  it('is charged more than any that is known where a budget in money counts, and the owner is told once a day', async () => {
    budget = { totalTokensPerDay: 1_000_000 };
    await ask('7', 'x/y');
    budget = { totalMoneyPerDay: 10 };
    await ask('7');
    expect(told).toEqual([]);
    await ask('7', 'x/y');
    await ask('7', 'x/y');
    await expect.poll(() => told).toHaveLength(1);
    expect(told[0]).toMatchObject({ id: 'budget/2026-01-15/unpriced/x/y', chat: 'owner' });
    expect(told[0]?.markdown).toMatch(
      /^I do not know what `x\/y` costs, .*30 USD .* and 150 .*`models\.prices`/,
    );
    await clock.advance(86_400_000);
    await ask('7', 'x/y');
    await expect.poll(() => told.map(({ id }) => id)).toContain('budget/2026-01-16/unpriced/x/y');
    budget = { totalMoneyPerDay: 1 };
    finish(await ask('8', 'x/y'), 20_000, 3000);
    expect(await ask('7', 'x/y')).toMatchObject({
      kind: 'refused',
      text: expect.stringContaining('budget'),
    });
    expect((await ask('7', 'ollama/y')).kind).toBe('reserved');
  });

  it('is charged what is configured, or not asked where an owner or the currency says so', async () => {
    budget = { totalMoneyPerDay: 1, unpriced: { input: 1, output: 1 } };
    finish(await ask('7', 'x/y'), 20_000, 1000);
    expect((await service.all())[0]?.ledger.spent.micros).toBe(21_000);
    for (const refusing of [{ unpriced: 'refuse' }, { currency: 'JPY' }]) {
      budget = { totalMoneyPerDay: 1, ...refusing };
      const refused = await ask('7', 'x/z');
      expect(refused).toMatchObject({
        kind: 'refused',
        text: expect.stringMatching(/^I cannot use `x\/z`: I do not know its price/),
      });
      expect((await ask('7', 'ollama/y')).kind).toBe('reserved');
    }
    await expect.poll(() => told.at(-1)?.markdown).toContain('so I do not use it');
    budget = { totalTokensPerDay: 1_000_000, unpriced: 'refuse' };
    expect((await ask('7', 'x/y')).kind).toBe('reserved');
  });
});

describe('a hundred turns at once', () => {
  it('never pass the limit; the others wait for room, and are refused when none comes', async () => {
    budget = { totalTokensPerDay: 10_000 };
    let most = 0;
    let running = 0;
    const turns = Array.from({ length: 100 }, async (_, index) => {
      const reserved = await ask(`${index}`);
      if (reserved.kind === 'refused') return 'refused';
      running += 1;
      most = Math.max(most, running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
      finish(reserved);
      return 'answered';
    });
    const ends = await Promise.all(turns);
    const answered = ends.filter((end) => end === 'answered').length;
    // Each holds 2,000 at most and takes 1,000.
    expect(most).toBeLessThanOrEqual(5);
    expect(answered).toBeGreaterThanOrEqual(8);
    expect(await spent('total')).toBe(answered * 1000);
    expect(await spent('total')).toBeLessThanOrEqual(10_000);
  });

  it('leave their places to others when they are stopped while they wait', async () => {
    budget = { totalTokensPerDay: 2000 };
    const first = await ask('1');
    const stop = new AbortController();
    const call = {
      role: 'turn',
      payer: payerOf('2'),
      model: 'x/y',
      inputTokens: 100,
      outputTokens: 300,
    };
    const waiting = spending.reserve(call, stop.signal);
    stop.abort(new Error('stopped'));
    await expect(waiting).rejects.toThrow('stopped');
    finish(first);
    expect((await ask('3')).kind).toBe('refused');
    expect((await spending.reserve(call, signal)).kind).toBe('reserved');
  });
});

describe('a process that dies', () => {
  it('in the middle of a call has spent the worst case of it', async () => {
    budget = { perPersonTokensPerDay: 5000 };
    finish(await ask('7'));
    await ask('7');
    await crash();
    // 1,000 of the call before at least, and 2,000 held for the one under way.
    expect(await spent('person chat:7')).toBe(3000);
    const [today] = await storedDays(store.scope('spending'), '2026-01-15');
    expect(today?.rows.find(({ key }) => key === 'person chat:7')?.ledger.spent.tokens).toBe(3000);
  });

  it('loses at most a second of counts where nothing is limited, and writes nothing before a call', async () => {
    finish(await ask('7'));
    await clock.advance(1000);
    finish(await ask('7'));
    await crash();
    expect(await spent('total')).toBe(1000);
  });
});

describe('a call that fails', () => {
  it('costs nothing where the vendor refused it, and an estimate where it had begun', async () => {
    const refused = await ask('7');
    if (refused.kind === 'refused') throw new Error(refused.text);
    refused.settle({ kind: 'failed', failure: { kind: 'server', status: 500 }, answerTokens: 0 });
    expect(await spent('total')).toBe(0);
    const cut = await ask('7');
    if (cut.kind === 'refused') throw new Error(cut.text);
    cut.settle({ kind: 'failed', failure: { kind: 'cancelled' }, answerTokens: 50 });
    cut.settle({ kind: 'failed', failure: { kind: 'cancelled' }, answerTokens: 50 });
    expect(await spent('total')).toBe(850);
  });
});

describe('a person', () => {
  it('has what an owner allows them, whatever is configured, from the next call on', async () => {
    budget = { perPersonTokensPerDay: 100_000 };
    finish(await ask('7'));
    own = { '7': { tokensPerDay: 3000 } };
    finish(await ask('7'));
    expect(await ask('7')).toMatchObject({ text: expect.stringContaining('3,000 tokens') });
    const view = (await service.of(payerOf('7'))).find(({ key }) => key === 'person chat:7');
    expect(view).toMatchObject({ cap: { tokens: 3000 }, name: 'Name of person chat:7' });
    expect(spending.modelFor(payerOf('8'), 'test/model', () => 'test/small')).toBe('test/model');
    finish(await ask('8'));
    own = { '7': { tokensPerDay: 0 } };
    finish(await ask('7'));
  });

  it('pays from one budget on all doors, also for what was counted before they were joined', async () => {
    budget = { perPersonTokensPerDay: 4000 };
    finish(await ask('7'), 1000, 500);
    finish(await ask('8'), 1000, 500);
    doors = { '7': ['chat:7', 'chat:8'], '8': ['chat:7', 'chat:8'] };
    expect((await ask('8')).kind).toBe('refused');
    expect(await spent('person chat:8')).toBe(3000);
    finish(await ask('9'));
    await crash();
    doors = {};
    expect((await ask('7')).kind).toBe('refused');
  });
});

/** The open question about the budget that is used up. */
function questionAsked() {
  const [usedUp] = asked;
  if (usedUp === undefined) throw new Error('nobody was asked');
  const { chat } = payerOf('7');
  const rest = budgetQuestion(usedUp, chat).subject.replace(/^budget:/, '');
  return { id: 'budget', chat, rest };
}

describe('a budget of the day', () => {
  it('is told at 80 percent, saved at 95, refused at 100, each once, and anew after midnight', async () => {
    budget = { perPersonTokensPerDay: 10_000 };
    const cheaper = () => 'test/small';
    const model = () => spending.modelFor(payerOf('7'), 'test/model', cheaper);
    finish(await ask('7'), 7000, 500);
    expect(told).toEqual([]);
    finish(await ask('7'), 500, 200);
    finish(await ask('7'), 10, 10);
    await clock.advance(0);
    expect(told).toEqual([
      expect.objectContaining({
        chat: '7',
        markdown: expect.stringMatching(/^82 %.*10,000 tokens/),
      }),
    ]);
    expect(model()).toBe('test/model');
    finish(await ask('7', 'x/y'), 1000, 300);
    expect(model()).toBe('test/small');
    expect(model()).toBe('test/small');
    await clock.advance(0);
    expect(told.slice(1)).toEqual([
      expect.objectContaining({ markdown: expect.stringContaining('with test/small') }),
    ]);
    const refused = await ask('7');
    expect(refused).toMatchObject({
      kind: 'refused',
      text: expect.stringContaining('in 11 hours'),
    });
    await ask('7');
    expect(asked).toEqual([expect.objectContaining({ key: 'person chat:7' })]);
    expect((await ask('8')).kind).toBe('reserved');

    await clock.advance(11 * 3_600_000 - 1);
    expect((await ask('7')).kind).toBe('refused');
    await clock.advance(1);
    expect((await ask('7')).kind).toBe('reserved');
    expect(model()).toBe('test/model');
  });

  it('that is lowered below what was used promises no other model', async () => {
    budget = { perPersonTokensPerDay: 10_000 };
    finish(await ask('7'), 700, 50);
    budget = { perPersonTokensPerDay: 500 };
    const model = spending.modelFor(payerOf('7'), 'test/model', () => 'test/small');
    expect(model).toBe('test/model');
    expect(await ask('7')).toMatchObject({ kind: 'refused' });
    await clock.advance(0);
    expect(told.map(({ markdown }) => markdown).join()).not.toContain('test/small');
  });

  it('that is lowered below what was used is raised from there, also before a call is refused', async () => {
    finish(await ask('7'), 20_000, 500);
    budget = { perPersonTokensPerDay: 6000 };
    expect(await service.raise(100)).toEqual(['person chat:7']);
    expect(await ask('7')).toMatchObject({ kind: 'reserved' });
  });

  it('of the total is told the owner, and an owner allows more of what is used up', async () => {
    budget = { totalMoneyPerDay: 0.01 };
    finish(await ask('7'), 800, 800);
    expect(told).toEqual([]);
    await clock.advance(0);
    expect(told).toEqual([expect.objectContaining({ chat: 'owner' })]);
    expect((await ask('8')).kind).toBe('refused');
    expect(await service.raise(100)).toEqual(['total']);
    expect((await ask('8')).kind).toBe('reserved');
    await crash();
    expect((await service.all())[0]).toMatchObject({ key: 'total', ledger: { extraPercent: 100 } });
    expect(await service.raise(5, { key: 'nobody' })).toEqual([]);
  });

  it('is raised once by one yes, also where a kill has it carried out again', async () => {
    budget = { totalMoneyPerDay: 0.01 };
    finish(await ask('7'), 800, 800);
    await ask('8');
    const question = questionAsked();
    const owner = { kind: 'person', id: userId('1'), verified: 'verified' } as const;
    await createBudgetAnswers(service).answer(question, { action: 'more', by: owner });
    await crash();
    expect(
      await createBudgetAnswers(service).answer(question, { action: 'more', by: owner }),
    ).toMatch(/already/);
    expect((await service.all())[0]).toMatchObject({ key: 'total', ledger: { extraPercent: 25 } });
  });

  it('is not asked about any longer once it was raised by command or configuration', async () => {
    budget = { totalMoneyPerDay: 0.01 };
    finish(await ask('7'), 800, 800);
    await ask('8');
    const question = questionAsked();
    const settled = () => createBudgetAnswers(service).settled?.(question);
    expect(await settled()).toBeUndefined();
    budget = {};
    expect(await settled()).toMatch(/changed/);
    budget = { totalMoneyPerDay: 0.01 };
    expect(await settled()).toBeUndefined();
    await service.raise(50);
    expect(await settled()).toMatch(/changed/);
  });

  it('charges what began before midnight to the day on which it began', async () => {
    budget = { totalTokensPerDay: 100_000 };
    await clock.advance(11 * 3_600_000 - 1000);
    const late = await ask('7');
    await clock.advance(2000);
    finish(await ask('7'));
    finish(late);
    await clock.advance(1000);
    const days = await storedDays(store.scope('spending'), '2026-01-15');
    const totals = days.map(({ day, rows }) => [
      day,
      rows.find(({ key }) => key === 'total')?.ledger.spent.tokens,
    ]);
    expect(totals).toEqual([
      ['2026-01-16', 1000],
      ['2026-01-15', 1000],
    ]);
  });
});

describe('a call that may be made in vain', () => {
  it.each([
    [5000, 0],
    [3000, 1],
  ])(
    'with a budget of %i tokens waits %i times for the person to finish',
    async (tokens, waits) => {
      budget = { totalTokensPerDay: tokens };
      let waited = 0;
      const payer = payerOf('ada');
      const settled = async () => void waited++;
      const planned = {
        role: 'turn',
        payer,
        model: 'test/model',
        inputTokens: 800,
        outputTokens: 1000,
      };
      const reserved = await spending.reserve({ ...planned, settled }, signal);
      expect([reserved.kind, waited]).toEqual(['reserved', waits]);
    },
  );
});

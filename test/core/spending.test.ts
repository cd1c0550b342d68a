// Budgets by values: whatever runs side by side, ends well or badly, or dies with the process, spent and
// held together stay within the limit.

import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { budgetCap, chargedFor } from '../../src/features/spending/rules/budget-limits.ts';
import {
  type Amount,
  afterCrash,
  amountOf,
  type Cap,
  EMPTY_LEDGER,
  grant,
  type Ledger,
  NOTHING,
  plus,
  shareUsed,
  withHeld,
  withSettled,
  worstCase,
} from '../../src/features/spending/rules/spending.ts';
import { limitsSchema } from '../../src/kernel/config/limits.ts';
import { channelName, chatId, DEFAULT_ACCOUNT, userId } from '../../src/kernel/message/ids.ts';
import { priceOf } from '../../src/providers/rules/model-names.ts';

const PRICE = { input: 3, output: 15, cached: 0.3 };

type Step =
  | {
      readonly kind: 'ask';
      readonly budgets: readonly number[];
      readonly input: number;
      readonly output: number;
      readonly priced: boolean;
    }
  | { readonly kind: 'settle'; readonly which: number; readonly share: number }
  | { readonly kind: 'abort'; readonly which: number }
  | { readonly kind: 'crash' };

const steps = fc.array(
  fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({
        kind: fc.constant('ask' as const),
        budgets: fc.uniqueArray(fc.nat(2), { minLength: 1 }),
        input: fc.nat(3000),
        output: fc.integer({ min: 1, max: 3000 }),
        priced: fc.boolean(),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('settle' as const),
        which: fc.nat(50),
        share: fc.double({ min: 0, max: 1, noNaN: true }),
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('abort' as const), which: fc.nat(50) }) },
    { weight: 1, arbitrary: fc.constant({ kind: 'crash' as const }) },
  ),
  { maxLength: 120 },
) as fc.Arbitrary<readonly Step[]>;

const caps = fc.array(
  fc.record({ tokens: fc.integer({ min: 1, max: 20_000 }), micros: fc.nat(200_000) }),
  { minLength: 3, maxLength: 3 },
);

describe('a budget', () => {
  it('is never exceeded, in any order of calls, ends, aborts and deaths of the process', () => {
    fc.assert(
      fc.property(caps, steps, (limits, all) => {
        let ledgers: Ledger[] = limits.map(() => EMPTY_LEDGER);
        let open: { budgets: readonly number[]; held: Amount }[] = [];
        const settle = (which: number, share: number) => {
          const call = open[which % Math.max(1, open.length)];
          if (call === undefined) return;
          open = open.filter((other) => other !== call);
          const spent = {
            tokens: Math.floor(call.held.tokens * share),
            micros: Math.floor(call.held.micros * share),
          };
          ledgers = ledgers.map((ledger, index) =>
            call.budgets.includes(index) ? withSettled(ledger, call.held, spent) : ledger,
          );
        };
        for (const step of all) {
          if (step.kind === 'crash') {
            ledgers = ledgers.map(afterCrash);
            open = [];
          } else if (step.kind === 'settle') settle(step.which, step.share);
          else if (step.kind === 'abort') settle(step.which, 0);
          else {
            const price = step.priced ? PRICE : undefined;
            const ask = { inputTokens: step.input, outputTokens: step.output, price };
            const budgets = step.budgets.map((index) => ({
              ledger: ledgers[index] ?? EMPTY_LEDGER,
              cap: limits[index] ?? NOTHING,
            }));
            const granted = grant(budgets, ask);
            if (granted.kind === 'granted') {
              expect(granted.outputTokens).toBeGreaterThan(0);
              expect(granted.outputTokens).toBeLessThanOrEqual(step.output);
              const held = worstCase(ask, granted.outputTokens);
              open = [...open, { budgets: step.budgets, held }];
              ledgers = ledgers.map((ledger, index) =>
                step.budgets.includes(index) ? withHeld(ledger, held) : ledger,
              );
            }
            if (granted.kind === 'wait') {
              expect(budgets.some(({ ledger }) => ledger.held.tokens > 0)).toBe(true);
            }
          }
          for (const [index, ledger] of ledgers.entries()) {
            const used = plus(ledger.spent, ledger.held);
            const cap: Cap = limits[index] ?? NOTHING;
            expect(used.tokens).toBeLessThanOrEqual(cap.tokens);
            if (cap.micros > 0) expect(used.micros).toBeLessThanOrEqual(cap.micros);
          }
        }
      }),
      { numRuns: 500 },
    );
  });

  const ask = { inputTokens: 1000, outputTokens: 1000, price: undefined };
  const at = (spent: number, held = 0): Ledger => ({
    ...EMPTY_LEDGER,
    spent: { tokens: spent, micros: 0 },
    held: { tokens: held, micros: 0 },
  });
  const cap = { tokens: 10_000, micros: 0 };

  test.each([
    ['has room', at(0), { kind: 'granted', outputTokens: 1000 }],
    ['has room for a shorter answer', at(8500), { kind: 'granted', outputTokens: 500 }],
    ['has room for no answer', at(8800), { kind: 'refused', by: 0 }],
    ['has room once others have ended', at(0, 9000), { kind: 'wait' }],
    ['has room for less than others hold', at(8500, 1000), { kind: 'wait' }],
  ])('that %s', (_name, ledger, result) => {
    expect(grant([{ ledger, cap }], ask)).toEqual(result);
  });

  it('names the one of several that has nothing left', () => {
    const none = { ledger: at(0), cap: NOTHING };
    expect(grant([none, { ledger: at(9900), cap }, none], ask)).toEqual({ kind: 'refused', by: 1 });
  });

  it('grows by what an owner allows for the day', () => {
    const ledger = { ...at(10_000), extraPercent: 25 };
    expect(grant([{ ledger, cap }], ask)).toEqual({ kind: 'granted', outputTokens: 1000 });
    expect(shareUsed({ ledger, cap })).toBe(0.8);
  });

  it('in money stops no model that costs nothing', () => {
    const ledger = { ...EMPTY_LEDGER, spent: { tokens: 0, micros: 999 } };
    const free = { ...ask, price: { input: 0, output: 0, cached: 0 } };
    expect(grant([{ ledger, cap: { tokens: 0, micros: 500 } }], free).kind).toBe('granted');
    expect(
      grant([{ ledger, cap: { tokens: 0, micros: 500 } }], { ...ask, price: PRICE }).kind,
    ).toBe('refused');
  });
});

describe('a price', () => {
  it('counts what came from the cache by its own price, and rounds up', () => {
    const usage = { input: 1000, output: 100, cached: 600 };
    expect(amountOf(PRICE, usage)).toEqual({ tokens: 1100, micros: 400 * 3 + 180 + 1500 });
    const written = { ...usage, written: 300 };
    expect(amountOf({ ...PRICE, written: 4 }, written).micros).toBe(100 * 3 + 180 + 1200 + 1500);
    expect(amountOf(PRICE, written)).toEqual(amountOf(PRICE, usage));
    expect(amountOf(undefined, usage)).toEqual({ tokens: 1100, micros: 0 });
    expect(amountOf({ ...PRICE, input: 0.0001 }, { input: 1, output: 0 }).micros).toBe(1);
  });

  test.each([
    ['anthropic/claude-opus-4-5', 5],
    ['anthropic/claude-sonnet-4-5-20250929', 3],
    ['openrouter/anthropic/claude-haiku-4.5', 1],
    ['openai/gpt-4o-2024-11-20', 2.5],
    ['openai/gpt-4o-mini', 0.15],
    ['ollama/llama3', 0],
    ['demo/demo', 0],
  ])('of %s is known', (model, input) => expect(priceOf(model, [])?.input).toBe(input));

  test.each(['openai/gpt-4o-realtime', 'anthropic/claude-9', 'openai/sim-1'])(
    'of %s is not guessed',
    (model) => expect(priceOf(model, [])).toBeUndefined(),
  );

  it('can be configured, and has to be where the currency is another', () => {
    const own = [{ model: 'gpt-4o', input: 1, output: 2, cached: 1 }];
    expect(priceOf('openai/gpt-4o', own)?.output).toBe(2);
    expect(priceOf('openai/gpt-4o', [], 'EUR')).toBeUndefined();
    expect(priceOf('openai/gpt-4o', own, 'EUR')?.output).toBe(2);
  });
});

describe('who pays', () => {
  const chat = {
    channel: channelName('telegram'),
    account: DEFAULT_ACCOUNT,
    chat: chatId('-100'),
  };
  const limits = limitsSchema.parse({
    budget: { perPersonTokensPerDay: 10, perChatTokensPerDay: 20, totalMoneyPerDay: 1.5 },
    exceptions: [
      { who: 'telegram', tokensPerDay: 11 },
      { who: 'telegram:7', moneyPerDay: 0.5 },
      { who: 'telegram:-100', tokensPerDay: 99 },
    ],
  });

  it('is the person under all ids, the chat and the total, each with its own limit', () => {
    const sender = {
      kind: 'person' as const,
      id: userId('7'),
      verified: 'verified' as const,
      alsoKnownAs: [userId('+49')],
    };
    expect(chargedFor({ chat, sender }, limits)).toEqual([
      {
        whose: 'person',
        names: ['person telegram:7', 'person telegram:+49'],
        cap: { tokens: 11, micros: 500_000 },
      },
      { whose: 'chat', names: ['chat telegram:-100'], cap: { tokens: 99, micros: 0 } },
      { whose: 'total', names: ['total'], cap: { tokens: 0, micros: 1_500_000 } },
    ]);
    expect(budgetCap(['person email:a@b.test'], limits)).toEqual({ tokens: 10, micros: 0 });
  });

  it('is for our own machinery the chat it works in', () => {
    const sender = { kind: 'system' as const, source: 'cron' as const };
    expect(chargedFor({ chat, sender }, limits).map(({ whose }) => whose)).toEqual([
      'chat',
      'total',
    ]);
  });

  it('is for a job its own, that of whoever made it, and the total; the less of two limits counts', () => {
    const budget = { perJobTokensPerDay: 50, perJobMoneyPerDay: 2 };
    const configured = limitsSchema.parse({
      budget,
      exceptions: [{ who: 'cron:j2', tokensPerDay: 7 }],
    });
    const charge = (job: string, own: { tokensPerDay?: number; moneyPerDay?: number }) =>
      chargedFor(
        {
          chat: { ...chat, channel: channelName('cron'), chat: chatId(job) },
          sender: { kind: 'system', source: 'cron', paidBy: ['telegram:7'], limits: own },
        },
        configured,
      ).map(({ names: [name], cap }) => [name, cap.tokens, cap.micros]);
    expect(charge('j1', { tokensPerDay: 90, moneyPerDay: 1 })).toEqual([
      ['person telegram:7', 0, 0],
      ['job j1', 50, 1_000_000],
      ['total', 0, 0],
    ]);
    expect(charge('j2', {})[1]).toEqual(['job j2', 7, 2_000_000]);
  });
});

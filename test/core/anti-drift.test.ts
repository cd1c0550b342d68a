// What a small model is shown of its earlier answers: over two hundred good ones pass to the letter,
// junk becomes a line, and nothing but its own old words is ever touched.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { loopIn } from '../../src/agent/rules/guard.ts';
import { repairThread } from '../../src/agent/rules/thread-repair.ts';
import { LoopWatch } from '../../src/agent/run-call.ts';
import { driftOf, readAnswer, steadied } from '../../src/features/steadiness/rules/anti-drift.ts';
import { antiDriftSchema } from '../../src/features/steadiness/settings.ts';
import { callId, turnId } from '../../src/kernel/message/ids.ts';
import type { TranscriptEntry } from '../../src/kernel/message/transcript.ts';
import { ENDLESS } from '../support/bad-answers.ts';
import { cpuMs } from '../support/cpu-time.ts';
import { essayIn, GOOD_CORPUS } from '../support/good-corpus.ts';
import { threadFaults } from '../support/thread-faults.ts';

const POLICY = antiDriftSchema.parse(undefined);
const turn = (n: number) => turnId(`terminal:local#${n}`);

const user = (n: number, text = `Question ${n}`): TranscriptEntry => ({
  ...{ role: 'user', turnId: turn(n), text, at: n },
});
const answer = (n: number, text: string, tools: readonly string[] = []): TranscriptEntry => ({
  ...{ role: 'assistant', turnId: turn(n), text, thinking: [], model: 'm', at: n },
  toolCalls: tools.map((name, place) => ({ id: callId(`c${place}`), name, arguments: '{}' })),
});
const result = (n: number, place: number): TranscriptEntry => ({
  ...{ role: 'tool', turnId: turn(n), callId: callId(`c${place}`), name: 'read_file' },
  ...{ status: 'ok', text: 'the file', at: n },
});

/** A turn for each, four more behind them. */
function conversation(texts: readonly string[]): readonly TranscriptEntry[] {
  const newest = ['One.', 'Two.', 'Three.', 'Four.'];
  return [...texts, ...newest].flatMap((text, n) => [user(n), answer(n, text)]);
}

const shownOf = (texts: readonly string[], canReadBack = true) =>
  steadied(conversation(texts), POLICY, canReadBack)
    .flatMap((entry) => (entry.role === 'assistant' ? [entry.text] : []))
    .slice(0, texts.length);

const LINE = /^\[An answer of yours /;

describe('good answers', () => {
  it('are more than two hundred, each another', () => {
    expect(GOOD_CORPUS.length).toBeGreaterThanOrEqual(200);
  });

  it('pass to the letter, alone', () => {
    for (const text of GOOD_CORPUS) {
      const entries = conversation([text]);
      expect(steadied(entries, POLICY, true)).toBe(entries);
    }
  });

  it('pass to the letter, all in one conversation, in either order', () => {
    for (const texts of [GOOD_CORPUS, GOOD_CORPUS.toReversed()]) {
      const entries = conversation(texts);
      expect(steadied(entries, POLICY, true)).toEqual(entries);
    }
  });

  it('are not broken off while they come', () => {
    const broken = GOOD_CORPUS.filter((text) => {
      const watch = new LoopWatch(POLICY.loopRepeats, '');
      for (let at = 0; at < text.length; at += 97) {
        if (watch.isLooping('text', text.slice(at, at + 97))) return true;
      }
      return loopIn(text, POLICY.loopRepeats) !== undefined;
    });
    expect(broken).toEqual([]);
  });

  it('with the same words and other numbers are different ones', () => {
    const weather = (n: number) =>
      `In the morning it will be ${n} degrees in the valley, with light wind from the west and no rain at all until the evening.`;
    expect(shownOf([11, 12, 13, 14, 15].map(weather))).toEqual([11, 12, 13, 14, 15].map(weather));
  });

  it.each([
    [
      ['Anna', 'Bert', 'Carla'],
      (who: string) =>
        `I have written the invitation to ${who} for the party at the lake, asked for an answer by the end of the month, mentioned that children are welcome, and put a copy of the letter into the folder with the others.`,
    ],
    [
      ['أحمد', 'سارة', 'ليلى'],
      (who: string) =>
        `كتبت الدعوة إلى ${who} من أجل الحفلة عند البحيرة وطلبت الجواب قبل نهاية الشهر وذكرت أن الأطفال مرحب بهم ووضعت نسخة من الرسالة في المجلد مع بقية الرسائل.`,
    ],
  ])('with the same words about other people are different ones: %j', (people, letter) => {
    expect(shownOf(people.map(letter))).toEqual(people.map(letter));
    const [first = ''] = people.map(letter);
    expect(shownOf([first, first, first])[2]).toMatch(LINE);
  });
});

const FILLER = {
  en: 'Well, okay, so, basically, I think, you know, it is actually just really very simple, honestly, of course, and I mean, sure, well, okay, that is basically it, you know.',
  de: 'Also, nun ja, eigentlich ist das halt einfach so, ich denke, ich meine, das ist natürlich wirklich ganz einfach, sozusagen, also eben, und genau, naja, das ist es doch irgendwie.',
  fr: 'Alors, bon, enfin, en fait, je pense que c’est vraiment, vraiment simple, bien sûr, voilà, du coup, en gros, je veux dire, alors voilà, donc, pour vous, c’est très simple, quoi.',
  es: 'Bueno, pues, entonces, o sea, en realidad es muy, muy simple, claro, por supuesto, creo que sí, digamos, básicamente, bueno, pues eso, quiero decir, entonces, claro, así es.',
  it: 'Allora, dunque, beh, ecco, cioè, in realtà è molto, molto semplice, certo, insomma, diciamo, praticamente, penso che sia questo, voglio dire, allora, ecco, davvero, non è altro.',
  pt: 'Bem, bom, então, tipo, na verdade é muito, muito simples, claro, com certeza, digamos, basicamente, acho que sim, quero dizer, então, pois, bom, é isso, não é, certo, de fato.',
};

describe('junk', () => {
  it.each(Object.entries(FILLER))('filler in %s, said again and again, goes', (_, text) => {
    const again = [text, `${text} Okay.`, `${text} Ok.`];
    expect(driftOf(readAnswer(text, false), [], POLICY).signals).toContain('filler_heavy');
    const [first, ...rest] = shownOf(again);
    expect(first).toBe(text);
    for (const shown of rest) expect(shown).toMatch(LINE);
  });

  it('an endless loop goes, and where it can be read again is said', () => {
    const loop = `The capital is Paris. ${'I hope this helps you with your question! '.repeat(60)}`;
    expect(shownOf(['Fine.', loop])).toEqual([
      'Fine.',
      '[An answer of yours is omitted: it said little or repeated itself; read_earlier with from: 1 shows it]',
    ]);
    expect(shownOf([loop], false)[0]).not.toContain('read_earlier');
  });

  it('answers in nearly the same words become the first of them and a count', () => {
    const same = `${essayIn('en')} `;
    expect(shownOf([same, 'Other.', `${same}Yes.`])).toEqual([same, 'Other.', `${same}Yes.`]);
    const shown = shownOf([same, 'Other.', `${same}Yes.`, `${same}No.`]);
    expect(shown.slice(0, 2)).toEqual([same, 'Other.']);
    expect(shown[2]).toMatch(/for the 2nd time said the same as above/);
    expect(shown[3]).toMatch(/for the 3rd time said the same as above/);
  });

  it('long talk that says the same in circles beside output that no tool gave goes', () => {
    const circles = 'we look at the plan and then we look at the list and then '.repeat(20);
    const text = `[tool result: 200 OK]\n${FILLER.en} ${circles}`;
    const { signals } = driftOf(readAnswer(text, false), [readAnswer(text, false)], POLICY);
    expect(signals).toEqual(['repetitive', 'babble', 'hallucinated_output']);
    expect(shownOf([text, `${text} Yes.`])[1]).toMatch(LINE);
  });

  it('what a model thought aloud in the record is not shown to it', () => {
    expect(shownOf(['<think>\nhm\n</think>\n\nParis.'])).toEqual(['Paris.']);
  });

  it('nothing is compared with itself, and length alone is no fault', () => {
    expect(
      driftOf(
        readAnswer('Sure, it is really very simple, and of course I think so.', false),
        [],
        POLICY,
      ).signals,
    ).toEqual([]);
    const long = Object.keys(FILLER).map(essayIn).join('\n\n');
    expect(driftOf(readAnswer(long, false), [], POLICY)).toEqual({ score: 0, signals: [] });
  });

  it('of a language without a list is never told by the words of another', () => {
    const texts = [
      'Så okay, ja, det er well nok bare sådan, so to say, just very rigtigt, okay, so, well.',
      'No to okay, well, tak po prostu jest, so what, just very dobrze, okay, okay, so, well.',
      'Nou, well, het is okay en zo is het dus echt gewoon, really, just so, very goed, okay.',
    ];
    for (const text of texts) {
      expect(readAnswer(`${text} ${text}`, false).filler).toBe(0);
    }
    // "also" and "so" of a good German text are no English filler, and too few for German.
    expect(readAnswer(essayIn('de'), false).filler).toBeLessThan(0.05);
  });

  it('is junk only from the score on that is configured', () => {
    const text = FILLER.en;
    const strict = { ...POLICY, pollutionThreshold: 0.3 };
    const entries = conversation([text]);
    expect(steadied(entries, strict, true)[1]).not.toEqual(entries[1]);
    expect(steadied(entries, POLICY, true)).toBe(entries);
  });
});

describe('a loop', () => {
  const sentence = 'Let me check that for you right away. ';
  it('is found in prose after forty times and in code after four hundred', () => {
    expect(loopIn(`Hello. ${sentence.repeat(39)}`, 40)).toBeUndefined();
    expect(loopIn(`Hello. ${sentence.repeat(42)}`, 40)).toMatchObject({ repeats: 42 });
    expect(loopIn(`\`\`\`\n${'print("x")  # again\n'.repeat(300)}`, 40)).toBeUndefined();
    expect(loopIn(`\`\`\`\n${'print("x")  # again and again\n'.repeat(700)}`, 40)).toBeDefined();
  });

  it('is none where the person wants it said so often, and is one where it only echoes them', () => {
    const line = 'I will not talk in class.\n';
    const wish = 'Please write "I will not talk in class" a hundred times.';
    const asWanted = (times: number, asked: string) => {
      const watch = new LoopWatch(40, asked);
      return [...line.repeat(times)].every((sign) => !watch.isLooping('text', sign));
    };
    expect([asWanted(100, wish), asWanted(100, 'Why?'), asWanted(600, wish)]).toEqual([
      ...[true, false, false],
    ]);
    expect(asWanted(100, 'I will not talk in class.')).toBe(false);
    const said = [line.repeat(100), 'One.', 'Two.', 'Three.', 'Four.'].flatMap((text, n) => [
      user(n, wish),
      answer(n, text),
    ]);
    expect(steadied(said, POLICY, true)).toBe(said);
    expect(loopIn('我不说谎。'.repeat(300), 40, '请写“我不说谎”一百遍')).toBeUndefined();
  });

  it('of thinking says nothing of where the answer is to be cut', () => {
    const watch = new LoopWatch(40, '');
    expect(watch.isLooping('text', `It is 42. ${'So it is. '.repeat(3)}`)).toBe(false);
    expect(watch.isLooping('thinking', sentence.repeat(60))).toBe(true);
    expect(watch.broken).toEqual({});
  });

  it('is cut off behind what was said once', () => {
    const text = `Hello. ${sentence.repeat(60)}`;
    const kept = text.slice(0, loopIn(text, 40)?.saidAt);
    expect(kept.startsWith('Hello. ')).toBe(true);
    expect(kept.length).toBeLessThanOrEqual(`Hello. ${sentence}`.length + sentence.length);
  });

  it('is broken off while it comes, in every one of the endless answers, and left out later', () => {
    for (const text of ENDLESS) {
      const watch = new LoopWatch(POLICY.loopRepeats, '');
      const pieces = text.match(/[\s\S]{1,37}/g) ?? [];
      const at = pieces.findIndex((piece) => watch.isLooping('text', piece));
      expect([text.slice(0, 80), at > 0]).toEqual([text.slice(0, 80), true]);
      const kept = text.slice(0, watch.broken?.loop?.saidAt);
      expect(kept.length).toBeLessThan(text.length / 4);
      expect(shownOf([text])[0]).toMatch(LINE);
    }
  });

  it('is found within milliseconds, also in a long text', () => {
    const text = GOOD_CORPUS.join('\n').slice(0, 200_000);
    const watch = new LoopWatch(40, '');
    const began = cpuMs();
    for (let at = 0; at < text.length; at += 50) watch.isLooping('text', text.slice(at, at + 50));
    expect(cpuMs() - began).toBeLessThan(1000);
  });
});

describe('whatever the conversation', () => {
  const junk = [
    ...Object.values(FILLER),
    `${FILLER.en} Ok.`,
    `${FILLER.en} Okay.`,
    essayIn('en'),
    `${essayIn('en')} Yes.`,
    'Yes. '.repeat(500),
  ];
  const turns = fc.array(
    fc.record({
      text: fc.oneof(
        fc.constantFrom(...junk),
        fc.constantFrom(...GOOD_CORPUS.slice(0, 90)),
        fc.string(),
      ),
      calls: fc.nat(2),
    }),
    { maxLength: 24 },
  );
  const entriesOf = (given: readonly { text: string; calls: number }[]) =>
    given.flatMap(({ text, calls }, n) => [
      user(n, junk[n % junk.length]),
      answer(
        n,
        text,
        Array.from({ length: calls }, () => 'read_file'),
      ),
      ...Array.from({ length: calls }, (_, place) => result(n, place)),
    ]);

  it('only old answers change, calls keep their results, and twice is as good as once', () => {
    fc.assert(
      fc.property(turns, (given) => {
        const entries = entriesOf(given);
        const shown = steadied(entries, POLICY, true);
        expect(shown).toHaveLength(entries.length);
        expect(steadied(shown, POLICY, true)).toEqual(shown);
        const newest = entries.filter(({ role }) => role === 'assistant').slice(-4);
        for (const [place, entry] of entries.entries()) {
          if (entry.role === 'assistant') {
            expect(shown[place]).toMatchObject({ toolCalls: entry.toolCalls });
            if (newest.includes(entry) && !entry.text.includes('<'))
              expect(shown[place]).toBe(entry);
          } else expect(shown[place]).toBe(entry);
        }
        expect(threadFaults(repairThread(shown))).toEqual(threadFaults(repairThread(entries)));
      }),
      { numRuns: 60 },
    );
  });
});

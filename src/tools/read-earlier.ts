// Tool: reads again what was said earlier in this conversation, also where a summary stands for it or
// it was left out. Never another conversation, and nothing from before a new start.

import { z } from 'zod';
import type { SessionKey } from '../kernel/message/ids.ts';
import { firstSeqOf } from '../kernel/message/ids.ts';
import {
  type EarlierQuestion,
  type EarlierTurns,
  earlierText,
  tellsForeign,
} from '../kernel/sessions/rules/earlier.ts';
import { readDescription } from './description.ts';
import type { Tool } from './tool.ts';

export type ReadEarlierDeps = {
  readonly sessions: {
    earlier(session: SessionKey, question: EarlierQuestion): Promise<EarlierTurns>;
  };
  /** Longest result of a tool. */
  maxResultChars(): number;
};

const MAX_WORDS_CHARS = 200;
const MAX_TURNS = 20;
const MAX_MATCHES = 5;
const MIN_CHARS = 500;
const MAX_CHARS = 40_000;

const turnNumber = () => z.int().min(0).optional();
const earlierInput = z.object({
  words: z
    .string()
    .trim()
    .max(MAX_WORDS_CHARS)
    .optional()
    .describe('Only turns that hold all of these words; few and exact ones find best.'),
  from: turnNumber().describe('Number of a turn: it and those behind it.'),
  before: turnNumber().describe('Number of a turn: those in front of it.'),
  offset: turnNumber().describe(
    'Character to begin at, as an earlier result said; 0 when left out.',
  ),
});
type EarlierInput = z.infer<typeof earlierInput>;

export function createReadEarlier({
  sessions,
  maxResultChars,
}: ReadEarlierDeps): Tool<EarlierInput> {
  return {
    name: 'read_earlier',
    ...readDescription('read_earlier'),
    access: 'read',
    taints: true,
    isOwn: (_input, found) => !tellsForeign(found),
    input: earlierInput,
    describe: ({ words, from, before }) =>
      [words, from && `from ${from}`, before && `before ${before}`].filter(Boolean).join(', '),
    async run({ words = '', from, before, offset = 0 }, { session, turnId }) {
      const running = firstSeqOf(turnId);
      const limit = Math.min(before ?? Number.MAX_SAFE_INTEGER, running ?? Number.MAX_SAFE_INTEGER);
      const found = await sessions.earlier(session, {
        before: limit,
        ...(from === undefined ? {} : { from }),
        ...(words === '' ? {} : { words }),
        maxTurns: words === '' ? MAX_TURNS : MAX_MATCHES,
      });
      if (found.turns.length === 0) return nothing(words);
      const maxChars = Math.min(MAX_CHARS, Math.max(MIN_CHARS, maxResultChars()));
      return earlierText(found, offset, maxChars);
    },
  };
}

const nothing = (words: string) =>
  words === ''
    ? 'There is nothing earlier in this conversation.'
    : 'No earlier turn of this conversation holds all of these words. Try fewer or other words.';

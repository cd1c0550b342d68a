// Tool: keeps something for later: a fact for all later conversations, a note of the day, or what a
// correction taught.

import { z } from 'zod';
import { headOf } from '../../lib/text/cut.ts';
import { readDescription, type Tool } from '../../tools/tool.ts';
import type { MemoryStore } from './memory.ts';

const MAX_FACT_CHARS = 2000;
const DETAIL_CHARS = 60;

const input = z.object({
  fact: z
    .string()
    .trim()
    .min(1)
    .max(MAX_FACT_CHARS)
    .describe('One fact as a full sentence that is understood without this conversation.'),
  kind: z
    .enum(['fact', 'note', 'learning'])
    .default('fact')
    .describe('fact: holds for good; note: of today; learning: what the person corrected.'),
});
type Input = z.infer<typeof input>;

export function createRemember(memory: MemoryStore): Tool<Input> {
  return {
    name: 'remember',
    aliases: [
      ...['save_memory', 'add_memory', 'memorize', 'store_memory'],
      { name: 'add_note', implies: { kind: 'note' } },
    ],
    parameterAliases: { fact: ['text', 'content', 'memory', 'note'], kind: ['type'] },
    ...readDescription('remember'),
    access: 'write',
    // What is kept is in the prompt of later turns.
    accessOf: (_input, isTainted) => (isTainted ? 'rules' : 'write'),
    input,
    describe: ({ fact }) => headOf(fact, DETAIL_CHARS),
    async run({ fact, kind }, { person }) {
      if (kind === 'learning') {
        await memory.learn([{ kind: 'correction', succeeded: false, context: fact }], person);
        return 'Noted for the next time I think it over.';
      }
      const result =
        kind === 'fact'
          ? await memory.remember(fact, person.notes)
          : await memory.note(fact, person);
      if (result === 'known') return 'This was remembered before.';
      return kind === 'fact' ? 'Remembered.' : 'Noted for today.';
    },
  };
}

// Tool: keeps a fact for later conversations.

import { z } from 'zod';
import type { MemoryStore } from '../memory/memory.ts';
import { readDescription } from './description.ts';
import type { Tool } from './tool.ts';

const MAX_FACT_CHARS = 2000;
const DETAIL_CHARS = 60;

const input = z.object({
  fact: z
    .string()
    .trim()
    .min(1)
    .max(MAX_FACT_CHARS)
    .describe('One fact as a full sentence that is understood without this conversation.'),
});
type Input = z.infer<typeof input>;

export function createRemember(memory: MemoryStore): Tool<Input> {
  return {
    name: 'remember',
    aliases: ['save_memory', 'add_memory', 'memorize', 'store_memory'],
    parameterAliases: { fact: ['text', 'content', 'memory', 'note'] },
    ...readDescription('remember'),
    access: 'write',
    // A fact is in the prompt of every later turn.
    accessOf: (_input, isTainted) => (isTainted ? 'rules' : 'write'),
    input,
    describe: ({ fact }) => fact.slice(0, DETAIL_CHARS).toWellFormed(),
    async run({ fact }, { person }) {
      const result = await memory.remember(fact, person.notes);
      return result === 'added' ? 'Remembered.' : 'This was remembered before.';
    },
  };
}

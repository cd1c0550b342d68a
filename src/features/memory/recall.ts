// Tool: looks up what was remembered or noted.

import { z } from 'zod';
import { readDescription, type Tool } from '../../tools/tool.ts';
import { QUERY_NAMES } from '../../tools/toolbox.ts';
import type { MemoryStore } from './memory.ts';

const MAX_QUERY_CHARS = 1000;
const EXTRACT = /^\S*memory\/sessions\//m;

const input = z.object({
  query: z.string().trim().min(1).max(MAX_QUERY_CHARS).describe('Words that the note may hold.'),
});
type Input = z.infer<typeof input>;

export function createRecall(memory: MemoryStore): Tool<Input> {
  return {
    name: 'recall',
    aliases: ['search_memory', 'memory_search', 'search_memories', 'get_memory'],
    parameterAliases: { query: QUERY_NAMES },
    ...readDescription('recall'),
    access: 'read',
    // Extracts of conversations hold what others said in them.
    taints: true,
    isOwn: (_input, found) => !EXTRACT.test(found),
    input,
    describe: ({ query }) => query,
    async run({ query }, { person }) {
      const hits = await memory.recall(query, person.notes);
      if (hits.length === 0) return 'Nothing is noted about this.';
      return hits.map(({ source, line, text }) => `${source}:${line}\n${text}`).join('\n\n');
    },
  };
}

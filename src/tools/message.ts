// Tool: says something in the current chat before the answer. It cannot reach any other chat.

import { z } from 'zod';
import { readDescription } from './description.ts';
import type { Tool } from './tool.ts';

const MAX_CHARS = 50_000;
const DETAIL_CHARS = 60;

const input = z.object({
  content: z.string().trim().min(1).max(MAX_CHARS).describe('The text, Markdown.'),
});
type Input = z.infer<typeof input>;

export function createMessage(): Tool<Input> {
  return {
    name: 'message',
    ...readDescription('message'),
    access: 'say',
    input,
    describe: ({ content }) => content.slice(0, DETAIL_CHARS).toWellFormed(),
    async run({ content }, context) {
      await context.say(content);
      return 'Sent to this chat. Do not repeat it in the answer.';
    },
  };
}

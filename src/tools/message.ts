// Tool: says something in the current chat before the answer, or hands over a text for somebody else,
// which the gateway sends or shows to an owner first.

import { z } from 'zod';
import { ToolError } from '../kernel/message/errors.ts';
import { headOf } from '../lib/text/cut.ts';
import { readDescription } from './description.ts';
import type { Tool } from './tool.ts';

const MAX_CHARS = 50_000;
const MAX_NAME_CHARS = 300;

const messageInput = z.object({
  content: z.string().trim().min(1).max(MAX_CHARS).describe('The text, Markdown.'),
  to: z
    .string()
    .trim()
    .min(1)
    .max(MAX_NAME_CHARS)
    .optional()
    .describe('Somebody else: the name or id of a known person. Left out: the current chat.'),
});
type MessageInput = z.infer<typeof messageInput>;

export function createMessage(): Tool<MessageInput> {
  return {
    name: 'message',
    aliases: ['send_message', 'notify', 'reply', 'say'],
    parameterAliases: {
      content: ['contents', 'text', 'message', 'body'],
      to: ['recipient', 'chat', 'chat_id', 'person', 'user'],
    },
    ...readDescription('message'),
    access: 'say',
    accessOf: ({ to }) => (to === undefined ? 'say' : 'send'),
    isPosted: ({ to }) => to !== undefined,
    input: messageInput,
    describe: ({ content, to }) => {
      const text = headOf(content, DETAIL_CHARS);
      return to === undefined ? text : `${headOf(to, DETAIL_CHARS)}: ${text}`;
    },
    async run({ content, to }, context) {
      if (to !== undefined) {
        if (context.post === undefined) throw new ToolError('blocked', 'only within a turn');
        return context.post({ kind: 'chat', to, markdown: content });
      }
      await context.say(content);
      return 'Sent to this chat. Do not repeat it in the answer.';
    },
  };
}

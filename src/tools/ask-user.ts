// Tool: asks the person of this chat a question with choices. The turn ends, and the answer begins
// another one; who waits and how is the gateway's.

import { z } from 'zod';
import { ToolError } from '../kernel/message/errors.ts';
import { headOf } from '../lib/text/cut.ts';
import { readDescription } from './description.ts';
import type { Tool } from './tool.ts';

const MAX_QUESTION_CHARS = 2000;
const MAX_CHOICES = 8;
/** What buttons show on a phone. */
const MAX_LABEL_CHARS = 60;
const DETAIL_CHARS = 60;

const questionInput = z
  .object({
    question: z
      .string()
      .trim()
      .min(1)
      .max(MAX_QUESTION_CHARS)
      .describe('Markdown. One question, complete in itself, without the choices.'),
    choices: z
      .array(z.string().trim().min(1).max(MAX_LABEL_CHARS))
      .max(MAX_CHOICES)
      .default([])
      .describe(`Up to ${MAX_CHOICES} short labels; left out: they answer in words.`),
    free_text: z
      .boolean()
      .default(true)
      .describe('Whether they may also answer in words of their own.'),
  })
  .refine(({ choices, free_text }) => free_text || choices.length > 0, {
    message: 'without choices they have to be free to answer in words',
    path: ['choices'],
  })
  .refine(({ choices }) => new Set(choices).size === choices.length, {
    message: 'each choice once',
    path: ['choices'],
  });
type QuestionInput = z.infer<typeof questionInput>;

export function createAskUser(): Tool<QuestionInput> {
  return {
    name: 'ask_user',
    aliases: ['ask', 'ask_question', 'question', 'clarify', 'ask_human'],
    parameterAliases: {
      question: ['text', 'prompt', 'message', 'query'],
      choices: ['options', 'answers', 'buttons'],
      free_text: ['allow_free_text', 'free', 'open'],
    },
    ...readDescription('ask_user'),
    access: 'say',
    input: questionInput,
    describe: ({ question }) => headOf(question, DETAIL_CHARS),
    async run({ question, choices, free_text }, context) {
      if (context.ask === undefined) throw new ToolError('blocked', 'only within a turn');
      return context.ask({ text: question, choices, allowsWords: free_text });
    },
  };
}

// Tools for the current chat: ask the person a question with choices, send a message, and tell the
// time.

import { z } from 'zod';
import { ToolError } from '../kernel/message/errors.ts';
import { headOf } from '../lib/text/cut.ts';
import { describeTime } from '../lib/time/zone-names.ts';
import { defineTool } from './tool.ts';

const MAX_QUESTION_CHARS = 2000;
const MAX_CHOICES = 8;
/** What fits on a button on a phone. */
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
      .describe(`Up to ${MAX_CHOICES} short labels; default: they answer in words.`),
    free_text: z
      .boolean()
      .default(true)
      .describe('Whether they may also answer in their own words.'),
  })
  .refine(({ choices, free_text }) => free_text || choices.length > 0, {
    message: 'free_text must be true if there are no choices',
    path: ['choices'],
  })
  .refine(({ choices }) => new Set(choices).size === choices.length, {
    message: 'list each choice once',
    path: ['choices'],
  });

export function createAskUser() {
  return defineTool({
    name: 'ask_user',
    aliases: ['ask', 'ask_question', 'question', 'clarify', 'ask_human'],
    parameterAliases: {
      question: ['text', 'prompt', 'message', 'query'],
      choices: ['options', 'answers', 'buttons'],
      free_text: ['allow_free_text', 'free', 'open'],
    },
    access: 'say',
    input: questionInput,
    describe: ({ question }) => headOf(question, DETAIL_CHARS),
    async run({ question, choices, free_text }, context) {
      if (context.ask === undefined) throw new ToolError('blocked', 'only within a turn');
      return context.ask({ text: question, choices, allowsWords: free_text });
    },
  });
}

// Tool: sends a text in the current chat before the answer, or a letter to somebody else, which the
// gateway sends or shows to an owner first.

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
    .describe('Name or id of another known person. Default: the current chat.'),
});

export function createMessage() {
  return defineTool({
    name: 'message',
    aliases: ['send_message', 'notify', 'reply', 'say'],
    parameterAliases: {
      content: ['contents', 'text', 'message', 'body'],
      to: ['recipient', 'chat', 'chat_id', 'person', 'user'],
    },
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
  });
}

// Tool: the current time, here and in other zones.

const MAX_ZONES = 20;

const timeInput = z.object({
  zones: z
    .array(z.string().max(64))
    .max(MAX_ZONES)
    .optional()
    .describe('IANA zones, e.g. ["Asia/Tokyo"]; default: that of the person.'),
});

/** `timeZone`: the default zone; empty = the machine's. */
export function createTime(timeZone: () => string) {
  return defineTool({
    name: 'time',
    aliases: ['get_time', 'current_time', 'get_current_time', 'now', 'date', 'get_date'],
    parameterAliases: { zones: ['zone', 'timezone', 'time_zone', 'timezones', 'tz'] },
    access: 'read',
    input: timeInput,
    describe: ({ zones }) => zones?.join(', ') ?? '',
    async run({ zones }, { clock, person }) {
      const own = person.timeZone ?? timeZone();
      const wanted = zones === undefined || zones.length === 0 ? [own] : zones;
      const now = clock.now();
      return wanted.map((zone) => describeOne(now, zone)).join('\n');
    },
  });
}

function describeOne(now: number, zone: string): string {
  const text = describeTime(now, zone);
  if (text !== undefined) return text;
  throw new ToolError(
    'invalid_arguments',
    `"${zone}" is not an IANA time zone, e.g. "Europe/Berlin"`,
  );
}

// Tool: hands over a mail to one address, with copies to others. What is no plain address or subject never gets further than
// here (case E28); whether an owner sees it first, the gateway knows.

import { z } from 'zod';
import { MAX_ADDRESS_CHARS, recipientOf } from '../../channels/email/rules/address.ts';
import { ToolError } from '../../kernel/message/errors.ts';
import { readDescription, type Tool } from '../../tools/tool.ts';

const MAX_CHARS = 50_000;
const MAX_SUBJECT_CHARS = 200;
const MAX_COPIES = 10;
/** Line breaks, control characters, and what is not seen or moves text about. */
const NOT_IN_SUBJECT = /[\p{C}\p{Zl}\p{Zp}]/u;

const address = () =>
  z
    .string()
    .max(MAX_ADDRESS_CHARS)
    .refine((to) => recipientOf(to) !== undefined, {
      error:
        'not one plain mail address: only local@domain, without name, quotes, comments, groups, ' +
        'several addresses or invisible characters',
    });

const input = z.object({
  to: address().describe('One address, like ann@example.org.'),
  cc: z
    .array(address())
    .max(MAX_COPIES)
    .optional()
    .describe('Addresses that get a copy; everybody sees all of them.'),
  from: z
    .string()
    .trim()
    .min(1)
    .max(MAX_ADDRESS_CHARS)
    .optional()
    .describe('Which of your own mailboxes sends it, by name or address; usually left out.'),
  subject: z
    .string()
    .refine((subject) => !NOT_IN_SUBJECT.test(subject), {
      error: 'a subject is one line without control or invisible characters',
    })
    .trim()
    .min(1)
    .max(MAX_SUBJECT_CHARS)
    .describe('One line.'),
  body: z.string().trim().min(1).max(MAX_CHARS).describe('The whole text, Markdown.'),
});
type Input = z.infer<typeof input>;

export function createSendEmail(): Tool<Input> {
  return {
    name: 'send_email',
    aliases: ['email', 'send_mail', 'mail'],
    parameterAliases: {
      to: ['recipient', 'address', 'email'],
      subject: ['title'],
      body: ['content', 'text', 'message'],
    },
    ...readDescription('send_email'),
    access: 'send',
    isPosted: () => true,
    input,
    describe: ({ to, cc = [], subject }) => `${[to, ...cc].join(', ')}: ${subject}`,
    async run({ to, cc = [], from, subject, body }, context) {
      const [address, ...copies] = new Set([to, ...cc].map(recipientOf));
      if (address === undefined) throw new ToolError('invalid_arguments', 'no plain mail address');
      if (context.post === undefined) throw new ToolError('blocked', 'only within a turn');
      const known = copies.flatMap((copy) => copy ?? []);
      const copied = known.length === 0 ? {} : { cc: known };
      const sender = from === undefined ? {} : { from };
      const letter = { to: address, ...copied, ...sender, subject, markdown: body };
      return context.post({ kind: 'mail', ...letter });
    },
  };
}

// What the HTTP API answers about people; the page has its types from here. Names and texts are
// untrusted and never markup. Times are epoch milliseconds.

import { z } from 'zod';

// As in kernel/access, which the page cannot load.
const ADMITTED_ROLES = ['owner', 'trusted', 'guest'] as const;
const CONVERSATIONS = ['each', 'shared'] as const;
const APPROVAL_POLICIES = ['strict', 'normal', 'open'] as const;

const MAX_ID_CHARS = 320;
const MAX_TEXT_CHARS = 200;

const policy = z
  .enum([...APPROVAL_POLICIES, 'auto'])
  .describe('How much an owner is asked; auto: as configured.');
const result = z.object({ result: z.string().describe('What was done, for people.') });

const unknownSender = z.object({
  channel: z.string(),
  userId: z.string(),
  name: z.string(),
  excerpt: z.string().describe('Of their newest message.'),
  at: z.number(),
  messages: z.number().describe('That wait.'),
});

const question = z.object({
  id: z.string(),
  channel: z.string().describe('Where it was asked: "here" in its text is that chat.'),
  markdown: z.string(),
  askedAt: z.number(),
  expiresAt: z.number(),
  choices: z.array(z.object({ label: z.string(), token: z.string() })),
});

const limit = z.number().exactOptional();

const person = z.object({
  id: z.string(),
  name: z.string(),
  role: z.enum([...ADMITTED_ROLES, 'blocked', 'unknown']).describe('unknown: nobody let them in.'),
  channels: z.array(z.object({ channel: z.string(), ids: z.array(z.string()) })),
  approvals: policy.exactOptional().describe('Absent for people who use no tool with effects.'),
  language: z.string().exactOptional(),
  timeZone: z.string().exactOptional(),
  quietHours: z.string().exactOptional(),
  preferredChannel: z.string().exactOptional().describe('Used when another one is down.'),
  conversations: z
    .enum(CONVERSATIONS)
    .describe('One conversation for all channels, or one for each.'),
  limits: z
    .object({ perMinute: limit, perDay: limit, tokensPerDay: limit, moneyPerDay: limit })
    .describe('Of messages, tokens and money; absent: as configured. 0: no limit.'),
});

const admission = z.object({
  channel: z.string(),
  userId: z.string(),
  name: z.string(),
  role: z.enum([...ADMITTED_ROLES, 'blocked']),
  at: z.number().describe('Of the decision.'),
});

export const peopleView = z.object({
  unknownSenders: z.array(unknownSender),
  questions: z.array(question).describe('That wait for an owner.'),
  policies: z
    .array(
      z.object({
        id: z.string(),
        approvals: policy,
        configured: z.enum(APPROVAL_POLICIES).describe('In force while approvals is auto.'),
      }),
    )
    .describe('Of owners, of trusted people, and of groups that have one.'),
  persons: z.array(person),
  personCount: z.number().describe('Of all; the list may be shorter.'),
  admissions: z
    .array(admission)
    .describe(
      'Decided about ids from which no message was admitted since, newest first, at most 200.',
    ),
  channels: z
    .array(z.object({ name: z.string(), label: z.string() }))
    .describe('On which people can be let in by their id.'),
});

export const onePerson = z.object({ id: z.string().min(1).max(MAX_ID_CHARS) });

export const decided = result;

const idOnChannel = {
  channel: z.string().regex(/^[a-z0-9-]{1,64}$/, 'is not a name'),
  userId: z.string().min(1).max(MAX_ID_CHARS),
};

export const unknownSenderDecision = z.strictObject({
  ...idOnChannel,
  action: z.enum(['once', 'allow', 'block', 'drop']),
});

export const admissionDecision = z.strictObject({
  ...idOnChannel,
  role: z.enum([...ADMITTED_ROLES, 'blocked', 'none']).describe('none: undo what was decided.'),
});

export const questionAnswer = z.strictObject({
  token: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, 'is not a valid choice'),
});

export const policyChange = z.strictObject({
  id: z.string().min(1).max(MAX_ID_CHARS).describe('Of a person, owners, trusted, or a group.'),
  approvals: policy,
});

const typed = z.string().max(MAX_TEXT_CHARS).exactOptional();

/** As the flags of `nanobot people set`. */
export const personSettings = z
  .strictObject({
    name: typed,
    role: z.enum([...ADMITTED_ROLES, 'blocked']).exactOptional(),
    language: typed,
    timezone: typed,
    quiet: typed,
    channel: typed,
    conversations: z.enum(CONVERSATIONS).exactOptional(),
    approvals: typed,
    messagesPerMinute: typed,
    messagesPerDay: typed,
    tokensPerDay: typed,
    moneyPerDay: typed,
  })
  .describe('Each may be absent; "auto" resets it.');

export const channelOfPerson = z.strictObject({ channel: z.string().min(1).max(64) });
export const otherPerson = onePerson.strict();

export type PeopleView = z.infer<typeof peopleView>;
export type ShownPerson = z.infer<typeof person>;

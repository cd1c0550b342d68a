// A letter that waits for an owner, as it is kept with its question: where it goes, what makes two of
// them the same, and what an allow rule to letters is bound to.

import { z } from 'zod';
import { MAX_ADDRESS_CHARS, recipientOf } from '../../channels/email/rules/address.ts';
import type { Rights } from '../../kernel/access/rights.ts';
import type { AskingTurn } from '../../kernel/guards.ts';
import { type OutboundAttachment, sizeWords } from '../../kernel/message/attachment.ts';
import { ToolError } from '../../kernel/message/errors.ts';
import { accountName, chatId } from '../../kernel/message/ids.ts';
import { type ChatRef, type Letter, sessionKeyOf } from '../../kernel/message/message.ts';
import { verbatim } from '../../kernel/message/untrusted.ts';
import {
  type Asked,
  LIFETIME_MS,
  outcomeMessage,
  type Question,
} from '../../kernel/questions/question-rows.ts';
import { type Matter, shownText } from '../../kernel/questions/rules/question-text.ts';
import { flag, number, object, place, rowShape, text, texts } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import {
  checkTogether,
  type SendFileDeps,
  takeFile,
  type UploadLimit,
} from '../../tools/files/chat-files.ts';
import { MAX_PATH_CHARS } from '../../tools/files/file-tools.ts';
import { readDescription, type Tool, type ToolContext } from '../../tools/tool.ts';
import { type AllowedCall, hasPlace, TERM_WORDS, TERMS, type Term } from '../approvals/index.ts';
import { editText, filesOf, recipientsOf } from './rules/letter.ts';

/** The payload of the question about it. */
export type Draft = {
  readonly letter: Letter;
  /** Its destination. */
  readonly chat: ChatRef;
  /** The name of the recipient. */
  readonly name: string;
  /** Recipients who got no letter before. */
  readonly newTo: readonly string[];
  readonly turn: Omit<AskingTurn, 'isOwnerHere'>;
  /** Rights of the turn that asked, and of the turn that is told the outcome. */
  readonly rights: Rights;
  readonly isTainted: boolean;
  /** An owner wrote the newest text. */
  readonly isEdited?: boolean;
  /** Epoch milliseconds. */
  readonly at: number;
};

export const DRAFT = rowShape<Draft>({
  ...{ letter: object, chat: place, name: text, newTo: texts, turn: object },
  ...{ rights: object, isTainted: flag, at: number },
});

/** Undefined: it waits. */
type Outcome = string | undefined;

/** Every recipient of a letter with the chat. */
export function placesOf(letter: Letter, chat: ChatRef): readonly (readonly [string, ChatRef])[] {
  const [to, ...copies] = recipientsOf(letter);
  return [[to, chat], ...copies.map((copy) => [copy, { ...chat, chat: chatId(copy) }] as const)];
}

export function isSameLetter(
  one: Draft,
  letter: Letter,
  { session }: Pick<AskingTurn, 'session'>,
): boolean {
  return one.turn.session === session && JSON.stringify(one.letter) === JSON.stringify(letter);
}

export function redactedLetter(letter: Letter, redact: (text: string) => string): Letter {
  const markdown = redact(letter.markdown);
  return letter.kind === 'mail'
    ? { ...letter, subject: redact(letter.subject), markdown }
    : { ...letter, markdown };
}

/**
 * Letters from this conversation to exactly these people on exactly these channels, whatever they say.
 * Undefined where nobody alone asks.
 */
export function standingOf({
  letter,
  chat,
  turn,
  isTainted,
}: Pick<Draft, 'letter' | 'chat' | 'turn' | 'isTainted'>):
  | (AllowedCall & Pick<Draft, 'isTainted'>)
  | undefined {
  const { session, whose } = turn;
  if (whose === undefined || filesOf(letter).length > 0) return undefined;
  const places = placesOf(letter, chat).map(([, there]) => sessionKeyOf(there));
  const tool = letter.kind === 'mail' ? 'send_email' : 'message';
  const pattern = JSON.stringify(places.toSorted());
  return { tool, access: 'send', pattern, session, whose, isTainted };
}

// Limits of waiting drafts, and of new addresses that the agent may write to in a day (case table
// D5).

const DAY_MS = 86_400_000;
const MAX_NEW_ADDRESSES = 5;

type NextLetter = {
  readonly letter: Letter;
  /** Recipients who got no message before. */
  readonly newTo: readonly string[];
  readonly turn: Pick<AskingTurn, 'session' | 'whose' | 'isOwnerHere'>;
  readonly isTainted: boolean;
  readonly now: number;
};

/** Why no further letter may be requested now. */
export function fullness(
  all: readonly (readonly [Draft, Outcome])[],
  { letter, newTo, turn, isTainted, now }: NextLetter,
): string | undefined {
  const waiting = all.flatMap(([draft, outcome]) =>
    outcome === undefined ? [{ ...draft.turn, ...draft }] : [],
  );
  if (!hasPlace(waiting, { ...turn, isTainted })) return DRAFT_TEXTS.TOO_MANY;
  if (letter.kind !== 'mail' || newTo.length === 0) return undefined;
  const counted = all.filter(([draft, outcome = 'sent']) => {
    return draft.letter.kind === 'mail' && draft.at > now - DAY_MS && outcome === 'sent';
  });
  const before = new Set(counted.flatMap(([draft]) => draft.newTo));
  const after = new Set([...before, ...newTo]);
  const isFull = after.size > before.size && after.size > MAX_NEW_ADDRESSES;
  return isFull ? DRAFT_TEXTS.TOO_MANY_NEW : undefined;
}

// Texts about drafts: for the model when it asks, for the conversation when it is decided, for the
// owner when it expired.

export const DRAFT_TEXTS = {
  TOO_MANY: t`Too many drafts wait for an owner already. Nothing was sent.`,
  TOO_MANY_NEW: t`Five new addresses a day are the limit, and it is reached. Nothing was sent.`,
  expired: (name: string, hours: number) =>
    t`Expired: nobody answered within ${hours} hours. The draft for ${verbatim(name)} is dropped, nothing was sent.`,
} as const;

/** For people. */
export function whoGets({ name, letter }: Draft): string {
  const [, ...cc] = recipientsOf(letter);
  return cc.length === 0 ? name : t`${name}, with copies to ${cc.join(', ')}`;
}

export const alwaysSent = (to: string, term: Term, days: number) =>
  t`Sent. Further letters to ${verbatim(to)} alone are sent without asking you ${TERM_WORDS[term](days)}, while no untrusted content is in view. Revoke this with /approvals.`;

/** For the model, at once. */
export function toldOf(draft: Draft, outcome: Outcome): string {
  const name = whoGets(draft);
  if (outcome === 'sent') return t`Sent to ${name}. Do not send it again.`;
  if (outcome !== undefined) {
    return t`Not sent to ${name}: an owner did not want it. Do not try again.`;
  }
  return (
    t`Not sent yet: shown to the owner as a draft for ${name}. What comes of it reaches you as a ` +
    t`message. Do not write it again or send it another way; say that it waits for their Send.`
  );
}

/** The message that tells the conversation what came of its letter, with the rights it had. */
export const outcomeOf = (id: string, draft: Draft, outcome: string, now: number) =>
  outcomeMessage(
    draft,
    { id: `draft/${id}/${outcome}`, source: 'draft', text: outcomeText(draft, outcome) },
    now,
  );

function outcomeText(draft: Draft, outcome: string): string {
  const name = whoGets(draft);
  if (outcome === 'sent') {
    const how = draft.isEdited ? t`after reading it` : t`as you wrote it`;
    return `[An owner sent the draft for ${name}, ${how}. Do not send it again. Go on with what you were asked.]`;
  }
  const why = outcome === 'dropped' ? t`An owner dropped` : t`No owner answered in time to`;
  return `[${why} the draft for ${name}. Nothing was sent. Do not write it again unless you are asked to.]`;
}

// The question to an owner about a draft: the whole text with Send, Edit and Drop, or waiting for a
// new text.

export const DRAFT_HOURS = LIFETIME_MS.letter / 3_600_000;

/** `id`: `turnId/place of the call`, the same on every retry of the turn. */
export const questionId = (id: string) => `draft/${id}/0`;

/** What an owner reads before a text goes to somebody else (case X05): all of it. */
function sentenceOf({ letter, chat, name }: Draft): string {
  const [, ...copies] = recipientsOf(letter);
  const code = (text: string) => verbatim(shownText(text));
  const cc = copies.length === 0 ? '' : t`, with copies to ${copies.map(code).join(', ')}`;
  const what = letter.kind === 'mail' ? 'mail' : 'message';
  return t`Send this ${what} to ${code(name)} (${accountName(chat)})${cc}?`;
}

function matterOf({ letter, turn, isTainted }: Draft): Matter {
  const { markdown } = letter;
  const files = filesOf(letter).map(({ name, sizeBytes }) => `${name} (${sizeWords(sizeBytes)})`);
  const below = files.length === 0 ? '' : `\n${t`Files: ${files.join(', ')}`}`;
  const text =
    letter.kind === 'mail' ? t`Subject: ${letter.subject}${below}\n\n${markdown}` : markdown;
  return { asker: turn.asker, isTainted, text: shownText(text), file: 'letter.txt' };
}

export function questionOf(
  { id, rest, chat }: Pick<Asked, 'id' | 'rest' | 'chat'>,
  draft: Draft,
  { now, alwaysDays, isEditing = false }: Moment,
): Question {
  const { name, turn, isTainted, at } = draft;
  const shown = isEditing
    ? { markdown: editText(name), hears: 'text' as const }
    : { markdown: sentenceOf(draft), matter: matterOf(draft) };
  const first = isEditing
    ? [{ label: t`Keep the text`, action: 'keep' }]
    : [
        { label: t`Send`, action: 'send' },
        { label: t`Edit`, action: 'edit' },
      ];
  // An allow rule is for words, not for files.
  const isText = filesOf(draft.letter).length === 0;
  const mayStand = isText && alwaysDays > 0 && !isTainted && turn.whose !== undefined && !isEditing;
  const longer = TERMS.map((term) => {
    const label = t`Send, ${TERM_WORDS[term](alwaysDays)} to them`;
    return { label, action: term, hasNoThumb: true as const };
  });
  return {
    ...{ id, chat, ...shown, payload: draft, session: turn.session },
    choices: [...first, { label: t`Drop`, action: 'drop' }, ...(mayStand ? longer : [])],
    approvers: 'owners',
    subject: `draft:${rest}`,
    expiresInMs: Math.max(0, at + LIFETIME_MS.letter - now),
  };
}

type Moment = {
  readonly now: number;
  readonly alwaysDays: number;
  /** A new text is awaited. */
  readonly isEditing?: boolean;
};

// Tool: hands over a mail to one address, with copies to others. An invalid address or subject is
// refused here (case E28); the gateway decides whether an owner sees the mail first.

const MAX_CHARS = 50_000;
const MAX_SUBJECT_CHARS = 200;
const MAX_COPIES = 10;
const MAX_FILES = 10;
/** Line breaks, control characters, and invisible or direction-changing ones. */
const NOT_IN_SUBJECT = /[\p{C}\p{Zl}\p{Zp}]/u;

const address = () =>
  z
    .string()
    .max(MAX_ADDRESS_CHARS)
    .refine((to) => recipientOf(to) !== undefined, {
      error:
        t`not one plain mail address: only local@domain, without name, quotes, comments, groups, ` +
        t`several addresses or invisible characters`,
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
      error: t`a subject is one line without control or invisible characters`,
    })
    .trim()
    .min(1)
    .max(MAX_SUBJECT_CHARS)
    .describe('One line.'),
  body: z.string().trim().min(1).max(MAX_CHARS).describe('The whole text, Markdown.'),
  attachments: z
    .array(z.string().min(1).max(MAX_PATH_CHARS))
    .max(MAX_FILES)
    .optional()
    .describe('Files to attach, relative to the workspace.'),
});
type Input = z.infer<typeof input>;

type SendEmailDeps = Pick<SendFileDeps, 'files' | 'media'> & {
  /** Of every mailbox that can send; undefined if none carries files. */
  limit(): UploadLimit | undefined;
};

/** @throws ToolError */
async function takenFiles(
  paths: readonly string[],
  context: ToolContext,
  deps: SendEmailDeps,
): Promise<readonly OutboundAttachment[]> {
  const limit = deps.limit();
  const files: OutboundAttachment[] = [];
  for (const path of paths) {
    const wanted = { path, name: undefined, kind: 'document' } as const;
    files.push(await takeFile(wanted, context, deps, limit));
  }
  checkTogether(files, limit);
  return files;
}

/** `deps`: absent in an evaluation, which sends nothing. */
export function createSendEmail(deps?: SendEmailDeps): Tool<Input> {
  return {
    name: 'send_email',
    aliases: ['email', 'send_mail', 'mail'],
    parameterAliases: {
      to: ['recipient', 'address', 'email'],
      subject: ['title'],
      body: ['content', 'text', 'message'],
      attachments: ['files', 'attachment', 'paths'],
    },
    ...readDescription('send_email'),
    access: 'send',
    isPosted: () => true,
    input,
    describe: ({ to, cc = [], subject, attachments = [] }) =>
      [`${[to, ...cc].join(', ')}: ${subject}`, ...attachments].join(', '),
    async run({ to, cc = [], from, subject, body, attachments: paths = [] }, context) {
      const [address, ...copies] = new Set([to, ...cc].map(recipientOf));
      if (address === undefined) throw new ToolError('invalid_arguments', 'no plain mail address');
      if (context.post === undefined) throw new ToolError('blocked', 'only within a turn');
      const known = copies.flatMap((copy) => copy ?? []);
      const copied = known.length === 0 ? {} : { cc: known };
      const sender = from === undefined ? {} : { from };
      const files = deps === undefined ? [] : await takenFiles(paths, context, deps);
      const attached = files.length === 0 ? {} : { attachments: files };
      const letter = { to: address, ...copied, ...sender, subject, markdown: body, ...attached };
      return context.post({ kind: 'mail', ...letter });
    },
  };
}

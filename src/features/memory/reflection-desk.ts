// Has what is remembered thought over: the proposal is shown with what would change, and only a yes of
// whoever asked writes it.

import type { SideModel } from '../../agent/side-model.ts';
import { SpendingRefusedError } from '../../agent/spending.ts';
import { ProviderError } from '../../kernel/message/errors.ts';
import { type ChatRef, type InboundMessage, idsOf } from '../../kernel/message/message.ts';
import { OWNER_TURN } from '../../kernel/message/notes.ts';
import type { Question, QuestionHandler } from '../../kernel/questions/question.ts';
import type { Questions } from '../../kernel/questions/questions.ts';
import { jsonRows, type OpenRows } from '../../kernel/rows.ts';
import type { TurnPersonOf } from '../../kernel/turns/turn-person.ts';
import { object, rowShape, texts } from '../../lib/json/json.ts';
import { headOf } from '../../lib/text/cut.ts';
import type { Payer } from '../spending/rules/budget-limits.ts';
import type { Proposal, Proposed, Reflection } from './reflect.ts';

/** `words`: for a person. */
export type ThoughtOver = {
  readonly kind: 'asked' | 'written' | 'left';
  readonly words: string;
};

export type ReflectionDeskDeps = {
  readonly personOf: TurnPersonOf;
  readonly side: SideModel;
  readonly rows: OpenRows;
  readonly reflection: Pick<Reflection, 'propose' | 'apply'>;
  readonly questions: Pick<Questions, 'ask'>;
  /** Where an owner is asked. */
  ownerChat(): Promise<ChatRef>;
};

/** The kind of the question's subject. */
export const REFLECTION_SUBJECT = 'reflection';

const SHOWN_LINES = 60;
const SHOWN_CHARS = 2500;
const EXPIRES_MS = 86_400_000;
const NOTHING = 'There is nothing to think over: nothing was noted that is not remembered.';
const USELESS =
  'What came of it would have dropped too much of what I remember, so I left it as it is.';
const THOUGHT = 'I thought it over.';
const FAILED = 'I could not think it over now.';

export type ReflectionDesk = ReturnType<typeof createReflectionDesk>;

export function createReflectionDesk(deps: ReflectionDeskDeps) {
  const { personOf, side, reflection, questions } = deps;
  const proposals = deps.rows<Kept>({ ...jsonRows(KEPT), scope: 'reflection', prefix: '' });

  function askFor(payer: Payer) {
    const { signal } = new AbortController();
    return (system: string, text: string, maxTokens: number) =>
      side.complete({ role: 'reflection', payer, system, text, maxTokens }, signal);
  }

  /** What was proposed under this name before a crash is proposed as it was; else why there is nothing. */
  async function proposalFor(name: string, payer: Payer, notesOf: () => Promise<string>) {
    const known = await proposals.get(name);
    if (known !== undefined) return known;
    const found = await proposed(async () => reflection.propose(await notesOf(), askFor(payer)));
    if (typeof found === 'string') return found;
    const { proposal, changes } = found;
    await proposals.change(name, () => ({ proposal, changes }));
    return { proposal, changes };
  }

  const ask = (name: string, { changes }: Kept, who: Pick<Question, 'chat' | 'approvers'>) =>
    questions.ask({
      ...who,
      id: `${REFLECTION_SUBJECT}/${name}`,
      markdown: `Shall I change what I remember like this?\n\n${shown(changes)}`,
      choices: [
        { label: 'Change it', action: 'write' },
        { label: 'Leave it', action: 'leave' },
      ],
      subject: `${REFLECTION_SUBJECT}:${name}`,
      expiresInMs: EXPIRES_MS,
    });

  async function drop(name: string): Promise<void> {
    await proposals.change(name, () => 'remove');
  }

  async function decide(name: string, action: string): Promise<string> {
    const kept = await proposals.get(name);
    if (kept === undefined) return 'It was decided before.';
    const outcome = action === 'write' ? await reflection.apply(kept.proposal) : 'left';
    await drop(name);
    return OUTCOMES[outcome];
  }

  return {
    /** Thinks it over and asks; the words for the person. */
    async reflect(message: InboundMessage): Promise<string> {
      const { sender, chat } = message;
      if (sender.kind !== 'person') return FAILED;
      const notesOf = async () => (await personOf(message)).notes;
      const found = await proposalFor(message.id, message, notesOf);
      if (typeof found === 'string') return found;
      await ask(message.id, found, { chat, approvers: idsOf(sender) });
      return THOUGHT;
    },
    /** The owners' own, for whoever is asked where they are; a repeat of the name does nothing further. */
    async byItself(name: string, apply: 'ask' | 'write'): Promise<ThoughtOver> {
      const chat = await deps.ownerChat();
      const sender = { kind: 'system', source: 'heartbeat' } as const;
      const found = await proposalFor(name, { chat, sender }, async () => OWNER_TURN.notes);
      if (typeof found === 'string') return { kind: 'left', words: found };
      if (apply === 'write') return { kind: 'written', words: await decide(name, 'write') };
      await ask(name, found, { chat, approvers: 'owners' });
      return { kind: 'asked', words: THOUGHT };
    },
    handler: { answer: decide, expired: drop } satisfies QuestionHandler,
  };
}

type Kept = { readonly proposal: Proposal; readonly changes: readonly string[] };

const KEPT = rowShape<Kept>({ proposal: object, changes: texts });

const OUTCOMES = {
  written: 'Changed. What stood there before is kept in memory/backups.',
  changed:
    'What I remember has changed meanwhile, so I left it as it is. Say /memory reflect again.',
  left: 'I left it as it is.',
} as const;

async function proposed(propose: () => Promise<Proposed>) {
  try {
    const reflected = await propose();
    if (reflected.kind === 'proposed') return reflected;
    return reflected.kind === 'nothing' ? NOTHING : USELESS;
  } catch (error) {
    if (error instanceof SpendingRefusedError) return error.text;
    if (error instanceof ProviderError) return `${error.userText ?? ''} ${FAILED}`.trim();
    throw error;
  }
}

function shown(changes: readonly string[]): string {
  const lines = changes.slice(0, SHOWN_LINES).join('\n').replaceAll('```', 'ˋˋˋ');
  const more = changes.length - SHOWN_LINES;
  const text = `\`\`\`diff\n${headOf(lines, SHOWN_CHARS)}\n\`\`\``;
  const isCut = more > 0 || lines.length > SHOWN_CHARS;
  return isCut ? `${text}\n\nThere is more that does not fit here.` : text;
}

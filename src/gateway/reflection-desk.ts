// Has what is remembered thought over: the proposal is shown with what would change, and only a yes of
// whoever asked writes it.

import type { SideModel } from '../agent/side-model.ts';
import { SpendingRefusedError } from '../agent/spending.ts';
import { ProviderError } from '../core/errors.ts';
import { type InboundMessage, idsOf } from '../core/message.ts';
import type { KeyValueStore } from '../store/store.ts';
import type { QuestionHandler, Questions } from './question.ts';
import type { TurnPersonOf } from './turn-person.ts';

export interface ReflectionDesk {
  /** Thinks it over and asks; the words for the person. */
  reflect(message: InboundMessage): Promise<string>;
  readonly handler: QuestionHandler;
}

export type Reflected =
  | { readonly kind: 'proposed'; readonly proposal: unknown; readonly changes: readonly string[] }
  | { readonly kind: 'nothing' | 'useless' };

export type ReflectionDeskDeps = {
  readonly personOf: TurnPersonOf;
  readonly side: () => SideModel;
  readonly state: KeyValueStore;
  /** A proposal is opaque here, and JSON. */
  readonly reflection: {
    propose(
      notes: string,
      ask: (system: string, text: string, maxTokens: number) => Promise<string>,
    ): Promise<Reflected>;
    apply(proposal: unknown): Promise<'written' | 'changed'>;
  };
  questions(): Pick<Questions, 'ask'>;
};

/** The kind of the question's subject. */
export const REFLECTION_SUBJECT = 'reflection';

const SHOWN_LINES = 60;
const SHOWN_CHARS = 2500;
const EXPIRES_MS = 86_400_000;
const NOTHING = 'There is nothing to think over: nothing was noted that is not remembered.';
const USELESS =
  'What came of it would have dropped too much of what I remember, so I left it as it is.';
const FAILED = 'I could not think it over now.';

export function createReflectionDesk(deps: ReflectionDeskDeps): ReflectionDesk {
  const { personOf, side, state, reflection, questions } = deps;

  function askFor(payer: InboundMessage) {
    const { signal } = new AbortController();
    return (system: string, text: string, maxTokens: number) =>
      side().complete({ role: 'reflection', payer, system, text, maxTokens }, signal);
  }

  return {
    async reflect(message) {
      const { sender } = message;
      if (sender.kind !== 'person') return FAILED;
      const known = await state.get(message.id);
      // What was proposed before a crash is asked as it was.
      const reflected =
        known === undefined
          ? await proposed(async () => {
              const { notes } = await personOf(message);
              return reflection.propose(notes, askFor(message));
            })
          : (JSON.parse(known) as Kept);
      if (typeof reflected === 'string') return reflected;
      const { proposal, changes } = reflected;
      await state.set(message.id, JSON.stringify({ proposal, changes }));
      await questions().ask({
        id: `${REFLECTION_SUBJECT}/${message.id}`,
        chat: message.chat,
        markdown: `Shall I change what I remember like this?\n\n${shown(changes)}`,
        choices: [
          { label: 'Change it', action: 'write' },
          { label: 'Leave it', action: 'leave' },
        ],
        approvers: idsOf(sender),
        subject: `${REFLECTION_SUBJECT}:${message.id}`,
        expiresInMs: EXPIRES_MS,
      });
      return 'I thought it over.';
    },
    handler: {
      async answer(id, action) {
        const row = await state.get(id);
        if (row === undefined) return 'It was decided before.';
        const outcome = action === 'write' ? await reflection.apply(proposalIn(row)) : 'left';
        await state.delete(id);
        return OUTCOMES[outcome];
      },
      expired: (id) => state.delete(id),
    },
  };
}

type Kept = Pick<Reflected & { readonly kind: 'proposed' }, 'proposal' | 'changes'>;

const proposalIn = (row: string) => (JSON.parse(row) as Kept).proposal;

const OUTCOMES = {
  written: 'Changed. What stood there before is kept in memory/backups.',
  changed:
    'What I remember has changed meanwhile, so I left it as it is. Say /memory reflect again.',
  left: 'I left it as it is.',
} as const;

async function proposed(propose: () => Promise<Reflected>) {
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
  const text = `\`\`\`diff\n${lines.slice(0, SHOWN_CHARS).toWellFormed()}\n\`\`\``;
  const isCut = more > 0 || lines.length > SHOWN_CHARS;
  return isCut ? `${text}\n\nThere is more that does not fit here.` : text;
}

// What people do with what is kept of them: see it, take it with them, have it forgotten, and let it be
// thought over. Whose notes and conversations are meant follows from who asks where.

import { type InboundMessage, idsOf, sessionOf } from '../../kernel/message/message.ts';
import type { QuestionHandler } from '../../kernel/questions/question.ts';
import type { Questions } from '../../kernel/questions/questions.ts';
import { holdsWords } from '../../kernel/sessions/rules/forgetting.ts';
import type { TurnPersonOf } from '../../kernel/turns/turn-person.ts';
import type { ForgetWork } from '../privacy/forget-work.ts';
import type { HandOut } from '../privacy/hand-out.ts';
import type { Asking, Forgetting } from '../privacy/personal-data.ts';

export type MemoryDesk = ReturnType<typeof createMemoryDesk>;

export type MemoryDeskDeps = {
  readonly personOf: TurnPersonOf;
  readonly kept: Forgetting & HandOut;
  readonly forgetting: ForgetWork;
  readonly questions: Pick<Questions, 'ask'>;
};

/** The kind of the question's subject. */
export const FORGET_SUBJECT = 'forget';

const LISTED = 12;
const EXPIRES_MS = 3_600_000;
const FORGET_HINT = 'Say what to forget, in words that stand there: /forget the name of my doctor';
const NOTHING =
  'Nothing that I keep of you holds all of these words. Files of the workspace are not searched.';
const GONE = 'It was decided before.';

export function createMemoryDesk({ personOf, kept, forgetting, questions }: MemoryDeskDeps) {
  async function askingOf(message: InboundMessage): Promise<Asking> {
    return { message, session: sessionOf(message), person: await personOf(message) };
  }

  return {
    show: async (message: InboundMessage) => kept.overview(await askingOf(message)),
    /** What is remembered in this folder of the workspace, for an owner who asks for it by a command. */
    notesOf: (folder: string) => kept.notesOf(folder),
    handOut: async (message: InboundMessage, format: 'md' | 'jsonl') =>
      kept.handOut(await askingOf(message), format),
    /** Lists what would go and asks; the list. */
    async forget(message: InboundMessage, words: string): Promise<string> {
      if (holdsWords(words) === undefined || message.sender.kind !== 'person') return FORGET_HINT;
      const reach = await kept.reach(await askingOf(message), words);
      const { places, count } = await kept.find(reach, LISTED);
      if (count === 0) return NOTHING;
      await forgetting.keep(message.id, { reach, chat: message.chat });
      await questions.ask({
        id: `${FORGET_SUBJECT}/${message.id}`,
        chat: message.chat,
        markdown: `Shall I forget ${placesIn(count)} for good? I list them below.`,
        choices: [
          { label: 'Forget', action: 'forget' },
          { label: 'Keep', action: 'keep' },
        ],
        approvers: idsOf(message.sender),
        subject: `${FORGET_SUBJECT}:${message.id}`,
        expiresInMs: EXPIRES_MS,
      });
      const lines = places.map(({ where, text }) => `- ${where}: ${text}`);
      const more = count - places.length;
      return [...lines, ...(more > 0 ? [`- and ${more} more`] : [])].join('\n');
    },
    handler: {
      async answer(id, action) {
        if (action === 'forget') return (await forgetting.decided(id)) ?? GONE;
        await forgetting.drop(id);
        return 'Nothing was forgotten.';
      },
      expired: (id) => forgetting.drop(id),
    } satisfies QuestionHandler,
  };
}

const placesIn = (count: number) => (count === 1 ? 'this place' : `these ${count} places`);

// What an owner sees and decides of people outside any chat: who waits, what waits for a yes, whom
// the agent knows. Decides by the same handlers as buttons, numbers and commands do.

import type { PersonSender } from '../../kernel/message/message.ts';
import type { OpenQuestion } from '../../kernel/questions/question-rows.ts';
import type { Questions } from '../../kernel/questions/questions.ts';
import type { People } from './people.ts';
import {
  createStrangerAnswers,
  decidedElsewhere,
  STRANGER_SUBJECT,
  strangerId,
  strangerQuestion,
} from './strangers.ts';

/** Of the people known; more are counted only. */
const MAX_SHOWN_PERSONS = 200;

export type PeopleDeskDeps = {
  readonly people: Pick<People, 'strangers' | 'decisions' | 'persons'>;
  readonly questions: Pick<Questions, 'open' | 'answer' | 'withdraw'>;
  /** Who decides here. */
  readonly owner: PersonSender;
};

export function createPeopleDesk({ people, questions, owner }: PeopleDeskDeps) {
  const { strangers, decisions, persons } = people;
  const answers = createStrangerAnswers({ strangers, decisions });

  return {
    async people() {
      const [waiting, open, known] = await Promise.all([
        strangers.list(),
        questions.open(),
        persons.list(),
      ]);
      return {
        strangers: waiting.map(({ channel, userId, name, excerpt, lastAt, heldMessages }) => {
          return { channel, userId, name, excerpt, at: lastAt, messages: heldMessages };
        }),
        questions: open.filter(isForOwners).map(({ chat, choices, ...question }) => {
          const { id, markdown, askedAt, expiresAt } = question;
          const shown = choices.map(({ label, token }) => ({ label, token }));
          return { id, channel: chat.channel, markdown, askedAt, expiresAt, choices: shown };
        }),
        persons: known.slice(0, MAX_SHOWN_PERSONS).map(({ id, name, role, doors }) => {
          const ways = doors.map(({ channel, ids }) => ({ channel, ids }));
          return { id, name, role: role ?? 'unknown', doors: ways };
        }),
        personCount: known.length,
      };
    },

    /** The words for the owner; undefined where nobody of this id waits. */
    async decide(channel: string, userId: string, action: string): Promise<string | undefined> {
      const waiting = await strangers.list();
      const one = waiting.find((each) => each.channel === channel && each.userId === userId);
      if (one === undefined) return undefined;
      const words = await answers.answer(strangerId(one), action);
      await questions.withdraw(strangerQuestion(one), decidedElsewhere(words));
      return words;
    },

    answer: (token: string): Promise<string> => questions.answer(token, owner),
  };
}

/** Strangers are listed by themselves. */
const isForOwners = ({ approvers, subject }: OpenQuestion) =>
  approvers === 'owners' && !subject.startsWith(`${STRANGER_SUBJECT}:`);

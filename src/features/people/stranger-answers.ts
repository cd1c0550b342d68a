// What an owner's press below the notice about a stranger does: the same as the commands.

import type { Decisions } from './decisions.ts';
import type { Stranger, Strangers } from './strangers.ts';

export const STRANGER_CHOICES = [
  { label: 'Allow once', action: 'once' },
  { label: 'Allow', action: 'allow' },
  { label: 'Block', action: 'block' },
  { label: 'Answer myself', action: 'drop' },
] as const;

export const STRANGER_SUBJECT = 'stranger';

export function strangerSubject({ channel, userId }: Stranger): string {
  return `${STRANGER_SUBJECT}:${channel}:${userId}`;
}

/** The id of the question about them. */
export const strangerQuestion = ({ firstId }: Stranger) => `stranger/${firstId}`;

/** What is added to the notice where the decision was not made below it. */
export const decidedElsewhere = (words: string) => `**Decided elsewhere:** ${words}`;

export type StrangerAnswersDeps = {
  readonly strangers: Pick<Strangers, 'list'>;
  readonly decisions: Decisions;
};

/** A handler of questions, which asks nothing in its turn. */
export type StrangerAnswers = { answer(rest: string, action: string): Promise<string> };

export function createStrangerAnswers(deps: StrangerAnswersDeps): StrangerAnswers {
  const { strangers, decisions } = deps;
  return {
    async answer(rest, action) {
      const colon = rest.indexOf(':');
      const [channel, id] = [rest.slice(0, colon), rest.slice(colon + 1)];
      const waiting = await strangers.list();
      const one = waiting.find((each) => each.channel === channel && each.userId === id);
      if (one === undefined) return 'They do not wait any more: it was decided before.';
      switch (action) {
        case 'once':
          return answeredText(await decisions.allowOnce(one), 'this once');
        case 'allow':
          return answeredText(await decisions.allow(one, 'trusted'), 'from now on');
        case 'block':
          await decisions.block(one);
          return 'Blocked: they are refused from now on.';
        case 'drop':
          await decisions.drop(one);
          return 'Left to you: I answer nothing of what they wrote.';
        default:
          return 'There is no such choice.';
      }
    },
  };
}

function answeredText(messages: number, until: string): string {
  const count = `${messages} message${messages === 1 ? '' : 's'}`;
  return `I answer them ${until} (${count}).`;
}

// CONTRACT of the questions that people answer by a press or a number: what is asked, and what an answer
// does.

import type { UserId } from '../message/ids.ts';
import type { ChatRef, PersonSender } from '../message/message.ts';

export type Question = {
  /** The same id is asked once. */
  readonly id: string;
  /** The only chat in which it can be answered. */
  readonly chat: ChatRef;
  readonly markdown: string;
  readonly choices: readonly {
    readonly label: string;
    readonly action: string;
    /** Beside a yes and a no: no thumb means it. */
    readonly hasNoThumb?: true;
  }[];
  readonly approvers: 'owners' | readonly UserId[];
  /** `kind:rest`; the handler of the kind gets the rest. */
  readonly subject: string;
  readonly expiresInMs: number;
};

/** The words for the person, and what they are asked next. */
export type Answered = string | { readonly words: string; readonly next: Question };

/** Who chose, and where; no place outside of any chat. */
export type Chooser = readonly [who: PersonSender, at?: ChatRef | undefined];

/** Every step may be repeated after a crash. */
export type QuestionHandler = {
  /** Carries out the choice. */
  answer(rest: string, action: string, ...chooser: Chooser): Promise<Answered>;
  /** Nobody answered in time. */
  expired?(rest: string): Promise<void>;
  /** At the start, before any question: asks what a process that is gone had not come to ask. */
  takeUp?(): Promise<void>;
};

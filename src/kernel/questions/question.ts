// CONTRACT of the questions that people answer by a press or a number: what is asked, what an answer
// does, and the desk that keeps both over restarts.

import type { AdmittedRole } from '../access/admission.ts';
import type { MessageId, UserId } from '../message/ids.ts';
import type { ChatRef, InboundMessage, PersonSender } from '../message/message.ts';
import type { OpenQuestion } from './question-rows.ts';

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

export interface Questions {
  /** Sends the question with its choices; durable when resolved. */
  ask(question: Question): Promise<void>;
  /** Asks an open question anew, here; what was to be pressed before is no longer good. */
  askAgain(id: string, chat: ChatRef): Promise<'asked' | 'closed'>;
  /** Notes what a press chose, so that it is carried out whatever becomes of this process. */
  choose(message: InboundMessage, role: AdmittedRole): Promise<void>;
  /** Carries it out: the words for who pressed; undefined where the message is no press. */
  press(message: InboundMessage, role: AdmittedRole): Promise<string | undefined>;
  /**
   * The token that a number stands for, as the next words after a question on a door without
   * buttons; undefined where the message is none. Other words go to the agent, and from then on
   * numbers too.
   */
  numbered(message: InboundMessage): Promise<string | undefined>;
  /** Of what a thumb can mean below this text, a question where there are no buttons; else none. */
  tokensOf(text: MessageId): Promise<readonly string[]>;
  /** What waits for an answer, oldest first. */
  open(): Promise<readonly OpenQuestion[]>;
  /** An owner's choice made outside any chat, by what only the question's readers know. */
  answer(token: string, owner: PersonSender): Promise<string>;
  /** It needs no answer any more; `outcome` is added to its text where the platform can. */
  withdraw(id: string, outcome?: string): Promise<void>;
  /** Takes up what a process that is gone left, then closes questions when their time is up. */
  run(signal: AbortSignal): Promise<void>;
}

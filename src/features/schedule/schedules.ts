// CONTRACT of where jobs are made, shown and changed: the same from a chat, from a tool and from the
// command line. What fails is a JobError in words for whoever asked.

import type { Person } from '../../kernel/access/person.ts';
import type { Rights } from '../../kernel/access/rights.ts';
import type { ChatRef, PersonSender } from '../../kernel/message/message.ts';
import type { Job, JobWish } from './rules/job.ts';

export type JobAsker =
  /** At the command line of the machine. */
  | { readonly kind: 'operator' }
  | {
      readonly kind: 'person';
      readonly person: Person;
      readonly sender: PersonSender;
      readonly chat: ChatRef;
      /** What they may have done there. */
      readonly rights: Rights;
      /** They, or whatever asks for them, were shown words of others. */
      readonly isTainted: boolean;
    };

/** `next`: the slots to come, in words of the job's zone. */
export type ShownJob = { readonly job: Job; readonly line: string; readonly next: string };

export interface JobDesk {
  /** Whether it comes to a run that can begin, whoever asks. @throws JobError */
  check(wish: JobWish): Promise<void>;
  /** @throws JobError */
  add(wish: JobWish, asker: JobAsker): Promise<ShownJob>;
  /** Their own; an owner and the operator see all. */
  list(asker: JobAsker): Promise<readonly ShownJob[]>;
  /** @throws JobError */
  remove(id: string, asker: JobAsker): Promise<ShownJob>;
  /** @throws JobError */
  setEnabled(id: string, enabled: boolean, asker: JobAsker): Promise<ShownJob>;
  /** Runs it once beside its schedule, as soon as may be. @throws JobError */
  runNow(id: string, asker: JobAsker): Promise<ShownJob>;
  /** The one that is meant. @throws JobError */
  find(id: string, asker: JobAsker): Promise<ShownJob>;
  /** Jobs made in this chat whose run is not over. */
  atWork(chat: ChatRef): Promise<readonly { readonly id: string; readonly name: string }[]>;
  /** Ends the run of now, where there is one; the schedule stays. Whether there was one. */
  endRun(id: string): Promise<boolean>;
}

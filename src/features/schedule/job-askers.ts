// Finds out who asks for a job: from a message, or from the chat whose turn calls the tool. Jobs are
// made between the two of us, by somebody whom the door vouches for.

import { doorOf, type Person } from '../../kernel/access/person.ts';
import type { Rights } from '../../kernel/access/rights.ts';
import {
  type ChatRef,
  type InboundMessage,
  idsOf,
  type PersonSender,
} from '../../kernel/message/message.ts';
import type { Origins } from '../../kernel/turns/origins.ts';
import type { ToolContext } from '../../tools/tool.ts';
import type { Persons } from '../people/persons.ts';
import type { Job, JobWish } from './rules/job.ts';
import { JobError } from './rules/schedule.ts';

export type JobAskersDeps = {
  readonly desk: JobDesk;
  readonly persons: Pick<Persons, 'author' | 'inChat' | 'of'>;
  readonly origins: Origins;
  /** Who writes by a door of our own, whichever chat they open there. */
  ownerAt(chat: ChatRef): PersonSender | undefined;
};

type Asking = Pick<ToolContext, 'chat' | 'rights' | 'isTainted'>;

export type JobAskers = {
  /** For commands. */
  readonly jobs: {
    readonly desk: JobDesk;
    /** Undefined where nobody vouches for them, or it is not between the two of us. */
    askerOf(message: InboundMessage): Promise<JobAsker | undefined>;
  };
  /** For the tool: all answers are texts for the model. */
  readonly schedules: {
    add(wish: JobWish, asking: Asking): Promise<string>;
    check(wish: JobWish): Promise<void>;
    list(asking: Asking): Promise<string>;
    change(
      id: string,
      change: 'remove' | 'enable' | 'disable' | 'run',
      asking: Asking,
    ): Promise<string>;
  };
};

const CHANGED = {
  remove: 'Removed',
  enable: 'Switched on',
  disable: 'Switched off',
  run: 'Runs now, beside its schedule',
} as const;

export function createJobAskers({ desk, persons, origins, ownerAt }: JobAskersDeps): JobAskers {
  /** @throws JobError */
  async function askerIn({ chat, rights, isTainted }: Asking): Promise<JobAsker> {
    const own = ownerAt(chat);
    const person = await (own === undefined
      ? persons.inChat(chat)
      : persons.of(chat.channel, idsOf(own)));
    const sender = own ?? (person && senderAt(person, chat));
    if (person === undefined || sender === undefined) {
      throw new JobError(
        'Jobs are made only between the two of us, not in groups or by other jobs.',
      );
    }
    return { kind: 'person', person, sender, chat, rights, isTainted };
  }

  async function changed(id: string, change: keyof typeof CHANGED, asker: JobAsker) {
    if (change === 'remove') return desk.remove(id, asker);
    if (change === 'run') return desk.runNow(id, asker);
    return desk.setEnabled(id, change === 'enable', asker);
  }

  return {
    jobs: {
      desk,
      async askerOf(message) {
        const { sender, chat, addressing, group } = message;
        const isSure = sender.kind === 'person' && sender.verified !== 'unverified';
        if (!isSure || addressing !== 'direct' || group !== undefined) return undefined;
        const person = await persons.author(message);
        if (person === undefined) return undefined;
        const { rights, isForeign: isTainted } = await origins(message);
        return { kind: 'person', person, sender, chat, rights, isTainted };
      },
    },
    schedules: {
      check: (wish) => desk.check(wish),
      async add(wish, asking) {
        const { line } = await desk.add(wish, await askerIn(asking));
        return `Made: ${line}`;
      },
      async list(asking) {
        const jobs = await desk.list(await askerIn(asking));
        return jobs.length === 0 ? 'There are no jobs.' : jobs.map(({ line }) => line).join('\n');
      },
      async change(id, change, asking) {
        const { line } = await changed(id, change, await askerIn(asking));
        return `${CHANGED[change]}: ${line}`;
      },
    },
  };
}

function senderAt(person: Person, chat: ChatRef): PersonSender | undefined {
  const [id, ...alsoKnownAs] = doorOf(person, chat.channel)?.ids ?? [];
  if (id === undefined) return undefined;
  return { kind: 'person', id, alsoKnownAs, name: person.name, verified: 'verified' };
}

// CONTRACT of where jobs are made, shown and changed: the same from a chat, from a tool and from the
// command line. What fails is a JobError in words for whoever asked.

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

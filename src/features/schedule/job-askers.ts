// Finds out who asks for a job: from a message, or from the chat whose turn calls the tool. Jobs are
// made between the two of us, by somebody whom the channel vouches for.

import { doorOf, type Person } from '../../kernel/access/person.ts';
import {
  type ChatRef,
  type InboundMessage,
  idsOf,
  type PersonSender,
} from '../../kernel/message/message.ts';
import type { Origins } from '../../kernel/turns/origins.ts';
import type { ToolContext } from '../../tools/tool.ts';
import type { Persons } from '../people/persons.ts';
import type { JobAsker, JobChange, JobDesk } from './jobs.ts';
import type { JobWish } from './rules/job.ts';
import { JobError } from './rules/schedule.ts';

export type JobAskersDeps = {
  readonly desk: JobDesk;
  readonly persons: Pick<Persons, 'author' | 'inChat' | 'of'>;
  readonly origins: Origins;
  /** Who writes by a door of our own, whichever chat they open there. */
  ownerAt(chat: ChatRef): PersonSender | undefined;
};

export type ScheduleAsker = Pick<ToolContext, 'chat' | 'rights' | 'isTainted'>;

const CHANGED: Readonly<Record<JobChange, string>> = {
  remove: 'Removed',
  enable: 'Switched on',
  disable: 'Switched off',
  run: 'Runs now, beside its schedule',
};

export type JobAskers = ReturnType<typeof createJobAskers>;

export function createJobAskers({ desk, persons, origins, ownerAt }: JobAskersDeps) {
  /** @throws JobError */
  async function askerIn({ chat, rights, isTainted }: ScheduleAsker): Promise<JobAsker> {
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

  return {
    /** For commands. */
    jobs: {
      desk,
      /** Undefined where nobody vouches for them, or it is not between the two of us. */
      async askerOf(message: InboundMessage): Promise<JobAsker | undefined> {
        const { sender, chat, addressing, group } = message;
        const isSure = sender.kind === 'person' && sender.verified !== 'unverified';
        if (!isSure || addressing !== 'direct' || group !== undefined) return undefined;
        const person = await persons.author(message);
        if (person === undefined) return undefined;
        const { rights, isForeign: isTainted } = await origins(message);
        return { kind: 'person', person, sender, chat, rights, isTainted };
      },
    },
    /** For the tool: all answers are texts for the model. @throws JobError */
    schedules: {
      check: (wish: JobWish) => desk.check(wish),
      async add(wish: JobWish, asking: ScheduleAsker): Promise<string> {
        const { line } = await desk.add(wish, await askerIn(asking));
        return `Made: ${line}`;
      },
      async list(asking: ScheduleAsker): Promise<string> {
        const jobs = await desk.list(await askerIn(asking));
        return jobs.length === 0 ? 'There are no jobs.' : jobs.map(({ line }) => line).join('\n');
      },
      async change(id: string, change: JobChange, asking: ScheduleAsker): Promise<string> {
        const { line } = await desk.change(id, change, await askerIn(asking));
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

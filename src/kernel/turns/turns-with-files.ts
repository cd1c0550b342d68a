// Hands a turn on when all that its messages carry is stored or unread; followers join it likewise.

import type { Turn } from '../bus/bus.ts';
import type { InboundAttachments } from '../intake/attachments.ts';
import type { Dispatcher } from './dispatcher.ts';

export function withFiles(dispatcher: Dispatcher, attachments: InboundAttachments): Dispatcher {
  return {
    ...dispatcher,
    async handle(turn) {
      return dispatcher.handle(await complete(turn, attachments));
    },
  };
}

async function complete(turn: Turn, attachments: InboundAttachments): Promise<Turn> {
  const { id, session, chat, epoch, attempt, signal } = turn;
  const [first, ...rest] = turn.messages;
  const [readyFirst = first, ...readyRest] = await attachments.ready([first, ...rest], signal);
  return {
    ...{ id, session, chat, epoch, attempt, signal },
    messages: [readyFirst, ...readyRest],
    join: async () => attachments.ready(await turn.join(), signal),
    arrival: (given) => turn.arrival(given),
  };
}

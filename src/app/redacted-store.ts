// The store as the bus gets it: no text that goes out to a chat, and no reason that traces show,
// holds the value of a secret. Texts of ours name commands as they are typed here.

import type { Settlement } from '../core/delivery.ts';
import type { OutboundMessage } from '../core/message.ts';
import type { Typed } from '../core/typed-command.ts';
import type { Redactor } from '../lib/redact.ts';
import type { BusStore, TurnEnding } from '../store/store.ts';

/** What the agent says while its turn runs. */
const SAID_BY_AGENT = /\/say\/\d+$/;

export function redactedStore(store: BusStore, redact: Redactor, typed: Typed): BusStore {
  const shown = (message: OutboundMessage): OutboundMessage => ({
    ...message,
    markdown: redact(message.markdown),
    ...(message.subject === undefined ? {} : { subject: redact(message.subject) }),
  });
  const ended = (ending: TurnEnding): TurnEnding => ({
    ...ending,
    ...('reason' in ending ? { reason: redact(ending.reason) } : {}),
    ...('outbound' in ending ? { outbound: ending.outbound.map(shown) } : {}),
  });
  const settled = (settlement: Settlement): Settlement =>
    'reason' in settlement ? { ...settlement, reason: redact(settlement.reason) } : settlement;
  return {
    ...store,
    queue(message) {
      const { id, markdown } = message;
      const text = SAID_BY_AGENT.test(id) ? markdown : typed(markdown);
      return store.queue(shown({ ...message, markdown: text }));
    },
    endTurn: (hold, ending) => store.endTurn(hold, ended(ending)),
    settle: (hold, settlement) => store.settle(hold, settled(settlement)),
    markBounced: (id, reason) => store.markBounced(id, redact(reason)),
  };
}

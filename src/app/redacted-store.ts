// The store as the bus gets it: no text that goes out to a chat, and no reason that traces show,
// holds the value of a secret.

import type { Settlement } from '../core/delivery.ts';
import type { OutboundMessage } from '../core/message.ts';
import type { Redactor } from '../lib/redact.ts';
import type { BusStore, TurnEnding } from '../store/store.ts';

export function redactedStore(store: BusStore, redact: Redactor): BusStore {
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
    queue: (message) => store.queue(shown(message)),
    endTurn: (hold, ending) => store.endTurn(hold, ended(ending)),
    settle: (hold, settlement) => store.settle(hold, settled(settlement)),
    markBounced: (id, reason) => store.markBounced(id, redact(reason)),
  };
}

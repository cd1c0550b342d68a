// Takes the texts of messages that are done with out of the queues, where they hold certain words.

import type { Holds } from '../../sessions/rules/forgetting.ts';
import { all, change, type Operation } from './operation.ts';
import { TOPICS } from './upkeep.ts';

type Body = { readonly place: number; readonly body: string };

const LANES = { inbound: 'session', outbound: 'lane' } as const;

/** Of these chats, whatever the topic; how many texts went. What waits or runs is not touched. */
export function* forgetTexts(chats: readonly string[], holds: Holds): Operation<number> {
  let forgotten = 0;
  for (const { table, place, finished } of TOPICS) {
    const lane = table === 'inbound' ? LANES.inbound : LANES.outbound;
    for (const chat of chats) {
      const rows = yield* all<Body>(
        `SELECT ${place} AS place, body FROM ${table}
         WHERE (${lane} = ?1 OR substr(${lane}, 1, length(?1) + 1) = ?1 || '#')
           AND state IN (${finished}) AND body IS NOT NULL`,
        chat,
      );
      for (const row of rows.filter(({ body }) => holds(body))) {
        forgotten += yield* change(`UPDATE ${table} SET body = NULL WHERE ${place} = ?`, row.place);
      }
    }
  }
  return forgotten;
}

// Appends numbered turns until it is killed, and says each number once it is acknowledged.

import { openEmbeddedStore } from '../../src/kernel/bus/store/embedded.ts';
import { sessionKey } from '../../src/kernel/message/ids.ts';
import { createJsonlSessionStore } from '../../src/kernel/sessions/jsonl.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { userEntry } from '../contract/user-entry.ts';

const [folder = '', state = '', start = '0'] = process.argv.slice(2);
const store = createJsonlSessionStore({
  folder,
  store: await openEmbeddedStore({ path: state, clock: systemClock, log: silentLogger }),
  clock: systemClock,
  log: silentLogger,
  policy: () => ({
    rotationSizeBytes: 20_000,
    rotationTokens: 1_000_000,
    carry: 'recent',
    rotationCarryMessages: 3,
    timeZone: 'UTC',
  }),
});
const key = sessionKey('crash:1');
for (let number = Number(start); ; number += 1) {
  const entry = userEntry(`t${number}`, `${number} ${'x'.repeat(number % 500)}`);
  await store.append(key, [entry], { durable: true });
  process.stdout.write(`${number}\n`);
}

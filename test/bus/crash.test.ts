// The bus in a process that is killed with -9 at many points, and started again each time.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { openEmbeddedStore } from '../../src/kernel/bus/store/embedded.ts';
import { chatRefOf } from '../../src/kernel/message/message.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { campaign } from '../support/campaign.ts';

const CHILD = fileURLToPath(new URL('crash-child.ts', import.meta.url));
const MESSAGES = 400;
const KILLS = campaign({ short: 3, full: 100 });
/** Stages behind which a process dies: a spread over early and late, the same in each run. */
const stagesBeforeDeath = (kill: number) => 1 + ((kill * 29) % 67);

/** Runs the child until it has said so many stages, then kills it; without a number, to its end. */
async function runChild(args: readonly string[], stages = Number.POSITIVE_INFINITY): Promise<void> {
  const child = spawn(process.execPath, [CHILD, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  let said = 0;
  for await (const _ of createInterface({ input: child.stdout })) {
    said += 1;
    if (said === stages) child.kill('SIGKILL');
  }
  const [code, signal] = await ended;
  expect([code, signal]).toEqual(stages > said ? [0, null] : [null, 'SIGKILL']);
}

describe('the bus, killed again and again', () => {
  for (const policy of ['hold', 'idempotent']) {
    it(`loses nothing, keeps the order and sends as its policy allows: ${policy}`, async () => {
      const folder = await mkdtemp(join(tmpdir(), 'nanobot-crash-'));
      const path = join(folder, 'state.db');
      const ledger = join(folder, 'ledger');
      const args = [path, ledger, String(MESSAGES), policy];
      for (let kill = 0; kill < KILLS; kill += 1) await runChild(args, stagesBeforeDeath(kill));
      await runChild(args);

      const sends = (await readFile(ledger, 'utf8')).trim().split('\n');
      const distinct = new Set(sends);
      await using store = await openEmbeddedStore({ path, clock: systemClock, log: silentLogger });
      const dead = await store.dead();
      expect(dead.map(({ state }) => state)).toEqual(dead.map(() => 'unknown'));
      if (policy === 'hold') {
        expect(sends).toHaveLength(distinct.size);
        // Of those set aside some did arrive; what did not is among them.
        const setAside = dead.map((one) => `${chatRefOf(one.session)?.chat} ${one.excerpt}`);
        expect(new Set([...sends, ...setAside]).size).toBe(MESSAGES);
      } else {
        expect(dead).toEqual([]);
        expect(distinct.size).toBe(MESSAGES);
      }
      const byChat = Map.groupBy(distinct, (line) => line.split(' ')[0]);
      for (const lines of byChat.values()) {
        const numbers = lines.map((line) => Number(line.split(' ')[1]));
        expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
      }
      await rm(folder, { recursive: true });
    });
  }
});

// A configuration is never half-written, whenever the process dies.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { checkConfig } from '../../src/kernel/config/check.ts';
import { campaign } from '../support/campaign.ts';

const KILLS = campaign({ short: 4, full: 150 });
const SPREAD_MS = 40;
const WRITER = join(import.meta.dirname, 'save-config-forever.ts');

test(`killed ${KILLS} times while saving, the file is always whole`, async () => {
  const root = await mkdtemp(join(tmpdir(), 'nanobot-crash-'));
  try {
    for (let round = 0; round < KILLS; round += 1) {
      const child = spawn(process.execPath, [WRITER], {
        env: { NANOBOT_HOME: root, PATH: process.env['PATH'] ?? '' },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      await once(child.stdout, 'data');
      // The moment of death moves through the save; what it hits does not decide the outcome.
      await delay((round / KILLS) * SPREAD_MS);
      child.kill('SIGKILL');
      await once(child, 'exit');
      const text = await readFile(join(root, 'config.json'), 'utf8');
      const { allowFrom } = checkConfig(text, {}).config.channels.telegram;
      expect(allowFrom.length % 500).toBe(0);
    }
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});

// `nanobot status` answers at a glance: it reads the configuration and stored counts, and loads none of
// the services that it reports on.

import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openEmbeddedStore } from '../../src/kernel/bus/store/embedded.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { runNanobot, temporaryHome } from './run-nanobot.ts';

const MAX_FILES = 90;
/** Names on standard error each file of `src` that the process loads. */
const NAME_LOADED = `
  import { registerHooks } from 'node:module';
  registerHooks({
    load(url, context, next) {
      const file = url.includes('node_modules') ? undefined : url.split('/src/')[1];
      if (file !== undefined) console.error('loaded ' + file);
      return next(url, context);
    },
  });
`;

test(`without a running gateway at most ${MAX_FILES} source files are loaded`, async () => {
  await using home = await temporaryHome();
  const path = join(home.path, 'state.db');
  const store = await openEmbeddedStore({ path, clock: systemClock, log: silentLogger });
  await store[Symbol.asyncDispose]();
  const hook = `data:text/javascript,${encodeURIComponent(NAME_LOADED)}`;
  const { code, stdout, stderr } = await runNanobot(['status'], {
    home: home.path,
    isFromSources: true,
    env: { NODE_OPTIONS: `--import=${hook}` },
  });
  expect({ code, stdout }).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/not running[\s\S]*Messages +0 waiting[\s\S]*nothing spent/),
  });
  const files = stderr.split('\n').filter((line) => line.startsWith('loaded '));
  const loaded = files.map((line) => line.slice('loaded '.length)).sort();
  console.info(`nanobot status loads ${loaded.length} source files:\n${loaded.join('\n')}`);
  expect(loaded).toContain('cli/status-command.ts');
  expect(loaded.length).toBeLessThanOrEqual(MAX_FILES);
});

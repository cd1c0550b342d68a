// A running gateway notices what becomes of its configuration file.

import { rename, rm, writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { ConfigChange } from '../../src/kernel/config/diff.ts';
import { loadConfig, saveConfig } from '../../src/kernel/config/files/config-file.ts';
import { type Home, homeOf } from '../../src/kernel/config/files/home.ts';
import { watchConfig } from '../../src/kernel/config/files/live-config.ts';
import type { ConfigError } from '../../src/kernel/message/errors.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

type Seen = { readonly change?: ConfigChange; readonly error?: ConfigError };

let home: Home;
let stop: AbortController;
let watching: Promise<void>;
/** What the watcher said, in order; `next` waits for it. */
let next: () => Promise<Seen>;

beforeEach(async () => {
  home = homeOf({ NANOBOT_HOME: await temporaryFolder() });
  await put('{"version":1}');
  stop = new AbortController();
  const seen: Seen[] = [];
  let wake = () => {};
  const tell = (one: Seen) => {
    seen.push(one);
    wake();
  };
  next = async () => {
    for (;;) {
      const first = seen.shift();
      if (first !== undefined) return first;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };
  watching = watchConfig(
    {
      home,
      env: {},
      clock: systemClock,
      current: await loadConfig(home, {}),
      onChange: (_next, change) => tell({ change }),
      onInvalid: (error) => tell({ error }),
      onRight: () => undefined,
    },
    stop.signal,
  );
});

/** In one step: a look between two steps would see a file that is empty. */
async function put(text: string): Promise<void> {
  await writeFile(`${home.config}.new`, text);
  await rename(`${home.config}.new`, home.config);
}

afterEach(async () => {
  stop.abort();
  await watching;
});

test('a change is told once, with what it asks for, and an invalid or missing file keeps the old one', async () => {
  await saveConfig(home, { version: 1, channels: { telegram: { allowFrom: ['5'] } } }, {});
  expect((await next()).change).toEqual({
    nextTurn: ['channels.telegram.allowFrom'],
    channels: [],
    gateway: [],
  });
  await put('{"version":1,');
  expect((await next()).error?.problems[0]).toMatchObject({ line: 1 });
  await rm(home.config);
  expect((await next()).error?.problems[0]?.problem).toContain('missing');
  await put('{"version":1,"channels":{"telegram":{"streaming":false}}}');
  // Compared with the last file that loaded, not with the broken one.
  expect((await next()).change).toEqual({
    nextTurn: ['channels.telegram.allowFrom'],
    channels: ['telegram'],
    gateway: [],
  });
});

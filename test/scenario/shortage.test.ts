// The whole program with fewer open files than its messages need: that is nobody's fault, so every
// message waits until it is answered, and the owner hears of it once.

import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, it } from 'vitest';
import { echo } from '../support/llm-server.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const OWNER = 900;
const CHATS = Array.from({ length: 300 }, (_, n) => 1000 + n);
/** Enough to start and to answer some chats at once, not all of them. */
const DESCRIPTORS = 200;
const SHORT = /the process is short of something/;

it('answers every chat although the files run out, and reports that once', async () => {
  await using world = await startTelegramWorld({
    respond: echo,
    channel: { allowFrom: ['*'] },
    config: {
      coalesce: { mode: 'wait' },
      limits: { messages: { perMinute: 0, perDay: 0 } },
      agents: { defaults: { model: 'openai/sim-1', maxConcurrentChats: 300 } },
    },
    pair: { [OWNER]: 'owner' },
  });
  await world.asks(OWNER, 'please say nonce-owner', /nonce-owner/);
  await world.gateway.stop();
  await using limited = await world.home.start({}, undefined, DESCRIPTORS);
  // Every question keeps its connection until there are no more.
  const shortage = Promise.withResolvers<void>();
  world.model.respond((request) => ({ ...echo(request), gate: shortage.promise }));
  for (const chat of CHATS) world.telegram.say(chat, `please say nonce-${chat}`);
  // For Telegram, or for the page while Telegram cannot be reached. The log has no file to be written to.
  using database = new DatabaseSync(join(world.home.path, 'state.db'), { readOnly: true });
  const notices = database.prepare(
    "SELECT count(*) AS n FROM outbound WHERE body LIKE '%low on open files%'",
  );
  await expect.poll(() => notices.get()).toEqual({ n: 1 });
  shortage.resolve();
  const isAnswered = (chat: number) =>
    world.texts(chat).some((text) => text.includes(`nonce-${chat}`));
  const timeout = { timeout: 100_000, interval: 200 };
  await expect.poll(() => CHATS.filter((chat) => !isAnswered(chat)), timeout).toEqual([]);
  expect(
    CHATS.flatMap((chat) => world.texts(chat)).filter((text) => !text.startsWith('nonce-')),
  ).toEqual([]);
  expect((await world.nanobot('dead', 'list')).trim()).toBe('');
  expect(notices.get()).toEqual({ n: 1 });
  // With its last line it writes what there was no file for.
  await limited.stop();
  expect((await world.home.logs()).match(new RegExp(SHORT, 'g'))).toHaveLength(1);
}, 180_000);

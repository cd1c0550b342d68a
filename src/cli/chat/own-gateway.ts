// A gateway in this process for as long as one conversation lasts: the whole agent, but no platform
// channel and no web page.

import { composeGateway } from '../../app/compose.ts';
import { openHome } from '../../app/first-run.ts';
import { listenForStop } from '../stop-signals.ts';
import type { Terminal } from '../terminal.ts';
import type { Conversation } from './conversation.ts';

/** @throws ConfigError, HomeLockedError */
export async function withOwnGateway<Result>(
  terminal: Terminal,
  chat: string,
  work: (conversation: Conversation, signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const { home, env } = terminal;
  const { loaded, notes } = await openHome(home, env);
  for (const note of notes) terminal.note(note);
  using stop = listenForStop(() => undefined);
  await using gateway = await composeGateway(loaded, {
    home,
    env,
    channels: [],
    http: false,
    foreground: (line) => terminal.note(line),
  });
  const running = new AbortController();
  const whole = AbortSignal.any([stop.signal, running.signal]);
  const run = gateway.run(whole);
  try {
    const conversation: Conversation = {
      async submit(clientId, text) {
        await gateway.terminal.submit({ chat, clientId, text });
      },
      events: (afterSeq, signal) => gateway.terminal.events(chat, afterSeq, signal),
      stop: () => gateway.stop(chat),
    };
    return await Promise.race([work(conversation, whole), ended(run)]);
  } finally {
    running.abort();
    await run;
  }
}

/** A gateway that fails ends the conversation; one that merely stopped does not. */
async function ended(run: Promise<void>): Promise<never> {
  await run;
  return new Promise<never>(() => undefined);
}

// A gateway in this process for the duration of one conversation: the whole agent, without platform
// channels and web page.

import { boot } from '../../boot.ts';
import { type Terminal, untilStopped } from '../../cli/terminal.ts';
import { openHome } from '../../kernel/config/files/first-run.ts';
import type { Gateway } from '../../kernel/gateway.ts';
import type { Conversation } from './conversation.ts';

/** Longest wait of the first question for tool servers that start slowly. */
const FIRST_TOOLS_MS = 30_000;

/** @throws ConfigError, HomeLockedError */
export async function withOwnGateway<Result>(
  terminal: Terminal,
  chat: string,
  work: (conversation: Conversation, signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const { home, env } = terminal;
  const { loaded, notes } = await openHome(home, env);
  for (const note of notes) terminal.note(note);
  await using gateway = await boot(loaded, {
    home,
    env,
    channels: [],
    http: false,
    foreground: (line) => terminal.note(line),
  });
  return await untilStopped(
    () => undefined,
    (signal) => converse(gateway, { terminal, chat }, work, signal),
  );
}

async function converse<Result>(
  gateway: Gateway,
  { terminal, chat }: { readonly terminal: Terminal; readonly chat: string },
  work: (conversation: Conversation, signal: AbortSignal) => Promise<Result>,
  signal: AbortSignal,
): Promise<Result> {
  const talking = new AbortController();
  const whole = AbortSignal.any([signal, talking.signal]);
  const run = gateway.run(whole);
  // The first question, often the only one, gets the tools of servers too.
  const late = terminal.clock.sleep(FIRST_TOOLS_MS, whole).catch(() => undefined);
  const tools = Promise.race([gateway.toolsTried(), late]);
  const conversation: Conversation = {
    async submit(clientId, text) {
      await tools;
      await gateway.terminal.submit({ chat, clientId, text });
    },
    events: (afterSeq, reading) => gateway.terminal.events(chat, afterSeq, reading),
    stop: () => gateway.stop(chat),
  };
  try {
    return await Promise.race([work(conversation, whole), failureOf(run)]);
  } finally {
    talking.abort();
    await run;
  }
}

/** A gateway that fails ends the conversation; one that merely stops does not. */
async function failureOf(run: Promise<void>): Promise<never> {
  await run;
  return new Promise<never>(() => undefined);
}

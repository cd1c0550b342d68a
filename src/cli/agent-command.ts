// The command `nanobot agent`: talks to the agent from this terminal, through the gateway that runs
// in this home or, where none does, through one started for the purpose.

import { text as readAll } from 'node:stream/consumers';
import { Command } from 'commander';
import { LOCAL_CHAT_NAME } from '../channels/local-channel.ts';
import type { Conversation } from '../channels/terminal/conversation.ts';
import { t } from '../lib/texts.ts';
import { CommandFailure, EXIT, type Terminal } from './terminal.ts';

type AgentFlags = {
  readonly message?: string;
  readonly session: string;
  readonly voice?: boolean;
};

export function agentCommand(terminal: Terminal): Command {
  return new Command('agent')
    .description(
      t`talk to the agent in this terminal; with -m, ask one question and print the answer`,
    )
    .option('-m, --message <text>', t`the question; "-" reads it from stdin`)
    .option('-s, --session <name>', t`name of the conversation`, 'default')
    .option('--voice', t`record questions by microphone and play the answers`)
    .action(async (flags: AgentFlags) => {
      const chat = chatName(flags.session);
      const isSpoken = flags.voice === true;
      if (isSpoken && (flags.message !== undefined || !terminal.interactive)) {
        throw new CommandFailure(
          EXIT.usage,
          t`--voice works only in an interactive terminal and without -m`,
        );
      }
      if (flags.message === undefined) return converse(terminal, chat, isSpoken);
      const text = flags.message === '-' ? await readAll(terminal.input) : flags.message;
      if (text.trim() === '') throw new CommandFailure(EXIT.usage, t`the question is empty`);
      await ask(terminal, chat, text);
    });
}

async function ask(terminal: Terminal, chat: string, text: string) {
  const { answerOnce } = await import('../channels/terminal/repl.ts');
  const { createQuestions } = await import('../channels/terminal/conversation.ts');
  const outcome = await withConversation(terminal, chat, (conversation, signal) =>
    answerOnce(terminal, createQuestions(conversation), text, signal),
  );
  if (outcome === 'failed') throw new CommandFailure(EXIT.modelFailed);
  if (outcome === 'stopped') throw new CommandFailure(EXIT.interrupted, t`the answer was stopped`);
}

async function converse(terminal: Terminal, chat: string, isSpoken: boolean) {
  const { talk } = await import('../channels/terminal/repl.ts');
  const end = await withConversation(terminal, chat, (conversation, signal) =>
    talk(terminal, conversation, signal, isSpoken),
  );
  if (end === 'failed') throw new CommandFailure(EXIT.modelFailed);
}

async function withConversation<Result>(
  terminal: Terminal,
  chat: string,
  work: (conversation: Conversation, signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const { findRunningGateway } = await import('../kernel/home-state.ts');
  const running = await findRunningGateway(terminal.home);
  if (running?.address !== undefined) {
    const { address } = running;
    return withAttached(terminal, { address, chat }, work);
  }
  const { withOwnGateway } = await import('../channels/terminal/own-gateway.ts');
  return withOwnGateway(terminal, chat, work);
}

async function withAttached<Result>(
  terminal: Terminal,
  where: { readonly address: string; readonly chat: string },
  work: (conversation: Conversation, signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const { attach } = await import('../channels/terminal/attached.ts');
  const { loadConfig } = await import('../kernel/config/files/config-file.ts');
  const { untilStopped } = await import('./terminal.ts');
  const token = async () => (await loadConfig(terminal.home, terminal.env)).config.gateway.token;
  const conversation = attach({ ...where, token, sleep: terminal.clock.sleep });
  return untilStopped(
    () => undefined,
    (signal) => work(conversation, signal),
  );
}

/** Names are part of file names and addresses. */
function chatName(name: string): string {
  if (LOCAL_CHAT_NAME.test(name)) return name;
  const rule = t`Use 1 to 64 letters, digits, ".", "_" and "-", not beginning with a dot.`;
  throw new CommandFailure(EXIT.usage, t`"${name}" is not a valid conversation name. ${rule}`);
}

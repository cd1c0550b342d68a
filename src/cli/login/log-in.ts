// Connects a channel's account from a terminal: through the gateway that runs, or without one by
// itself. Ctrl+C ends the attempt, and what was half made is cleaned up.

import { findRunningGateway } from '../../app/running-gateway.ts';
import type { LoginOptions, LoginStep } from '../../channels/channel.ts';
import { loadConfig } from '../../kernel/config/files/config-file.ts';
import { CommandFailure, EXIT } from '../exit-codes.ts';
import { untilStopped } from '../stop-signals.ts';
import type { Terminal } from '../terminal.ts';
import { createLoginScreen, type LoginScreen } from './login-screen.ts';
import type { LoginWords } from './login-text.ts';
import { remoteGateway, remoteLogin } from './remote-login.ts';

export type LogIn = {
  readonly channel: string;
  readonly options: LoginOptions;
  readonly words: LoginWords;
  /** Settings were just written for which a running gateway starts the channel again. */
  readonly isRestarting: boolean;
  /** The login where no gateway runs. */
  alone(signal: AbortSignal): AsyncIterable<LoginStep>;
};

/** The connected account. @throws CommandFailure with reason and remedy, or where a person stopped it. */
export async function logIn(terminal: Terminal, login: LogIn): Promise<string> {
  const screen = createLoginScreen(terminal, login.words);
  const onStop = () => {
    screen[Symbol.dispose]();
    terminal.note('Stopping: what was begun is cleaned up.');
  };
  const last = await untilStopped(onStop, (signal) => follow(terminal, login, screen, signal));
  if (last?.kind === 'done') return last.account;
  if (last?.kind === 'failed') {
    throw new CommandFailure(EXIT.failure, `${last.reason}. ${last.remedy}`);
  }
  throw new CommandFailure(EXIT.interrupted, 'stopped; nothing was linked');
}

/** The last step; undefined where the person stopped it. */
async function follow(
  terminal: Terminal,
  login: LogIn,
  screen: LoginScreen,
  signal: AbortSignal,
): Promise<LoginStep | undefined> {
  try {
    for await (const step of stepsOf(terminal, login, signal)) {
      if (signal.aborted) return undefined;
      if (step.kind === 'done' || step.kind === 'failed') return step;
      screen.show(step);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    screen[Symbol.dispose]();
  }
  if (signal.aborted) return undefined;
  const remedy = 'Is it being started anew? Try again.';
  return { kind: 'failed', reason: 'the gateway ended the attempt', remedy };
}

/** Changed settings are noticed within a second, and would end a login that was quicker. */
const TAKE_UP_MS = 2500;

async function* stepsOf(
  { home, env, clock }: Terminal,
  { channel, options, isRestarting, alone }: LogIn,
  signal: AbortSignal,
): AsyncGenerator<LoginStep> {
  const running = await findRunningGateway(home);
  if (running === undefined) return yield* alone(signal);
  yield { kind: 'progress', text: 'Waiting for the gateway to take up the settings.' };
  if (isRestarting) await clock.sleep(TAKE_UP_MS, signal);
  const { token } = (await loadConfig(home, env)).config.gateway;
  yield* remoteLogin(remoteGateway(running, token, clock), channel, options, signal);
}

// CONTRACT between the steps of the setup and who runs them, in a terminal or on the web page: the
// person who answers, and the draft of the configuration, saved only after verification.

import type { LoginOptions, LoginStep } from '../../channels/channel.ts';
import { CommandFailure, EXIT } from '../../cli/terminal.ts';
import { checkConfig } from '../../kernel/config/check.ts';
import type { Config } from '../../kernel/config/config.ts';
import {
  loadConfig,
  readRawConfig,
  saveConfig,
  withSettings,
} from '../../kernel/config/files/config-file.ts';
import { findSecrets } from '../../kernel/config/files/secret-sources.ts';
import type { JsonValue } from '../../kernel/config/json.ts';
import { isWebAddress } from '../../kernel/config/settings-fields.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { Refusal } from '../../kernel/http-routes.ts';
import { ConfigError, NanobotError, ProviderError } from '../../kernel/message/errors.ts';
import { t } from '../../lib/texts.ts';

export type Choice<Value extends string> = {
  readonly value: Value;
  readonly label: string;
  readonly hint?: string;
};

export type Question = {
  readonly message: string;
  /** The flag of `nanobot onboard` that answers it in a script. */
  readonly flag: string;
  readonly initial?: string;
  /** An empty answer is valid. */
  readonly optional?: boolean;
  /** The problem of an answer; undefined where it is valid. */
  readonly check?: (answer: string) => string | undefined;
  /** Withdraws the question. */
  readonly signal?: AbortSignal;
};

export interface Asker {
  readonly interactive: boolean;
  text(question: Question): Promise<string>;
  secret(question: Question): Promise<string>;
  choose<Value extends string>(
    message: string,
    choices: readonly Choice<Value>[],
    otherwise: Value,
  ): Promise<Value>;
  confirm(message: string, otherwise: boolean): Promise<boolean>;
  /** Shows progress while the work runs, and the result's text afterwards. */
  during<Result>(
    message: string,
    work: () => Promise<Result>,
    done: (result: Result) => string,
  ): Promise<Result>;
  say(text: string): void;
  warn(text: string): void;
  /** Shown as a QR code as well, where there is room. */
  link(text: string, address: string): void;
  /** Follows the login of a channel's account. Resolves with the account. */
  logIn(login: AccountLogin): Promise<string>;
  /** The signal aborts when the person stops the setup. */
  untilStopped<Result>(work: (signal: AbortSignal) => Promise<Result>): Promise<Result>;
  /** How to go on later while something is awaited, as in "Ctrl+C: later". */
  readonly later: string;
}

/** An account that a person's phone links. */
export type AccountLogin = {
  readonly channel: string;
  readonly options: LoginOptions;
  /** Instructions for the codes shown, in the terms of the platform. */
  readonly words: { readonly scan: string; readonly type: string };
  /** Settings were just saved, for which a running gateway restarts the channel. */
  readonly isRestarting: boolean;
  /** The login where no gateway runs. */
  alone(signal: AbortSignal): AsyncIterable<LoginStep>;
};

/** The problem of an answer; undefined where it is valid. */
export function problemOfAnswer({ optional, check }: Question, answer: string): string | undefined {
  if (answer !== '') return check?.(answer);
  return optional === true ? undefined : t`Enter a value.`;
}

export const ADDRESS_HINT = t`Start with http:// or https://`;

/** The problem of the address of a server; undefined where it is one. */
export const addressProblem = (answer: string): string | undefined =>
  isWebAddress(answer) ? undefined : ADDRESS_HINT;

/** A server of one's own with an OpenAI-compatible API. */
export async function askServer(
  asker: Asker,
): Promise<{ readonly apiBase: string; readonly apiKey: string }> {
  const apiBase = await asker.text({
    message: t`Address of the server, e.g. http://192.168.1.5:8000/v1`,
    flag: '--api-base',
    check: addressProblem,
  });
  const apiKey = await asker.secret({
    message: t`API key (leave empty if the server needs none)`,
    flag: '--api-key',
    optional: true,
  });
  return { apiBase, apiKey };
}

/** The person pressed Ctrl+C at a question, left the page, or ended the setup. */
export class SetupCancelled extends NanobotError {
  override readonly name = 'SetupCancelled';
  constructor() {
    super('setup_cancelled', t`Setup cancelled.`);
  }
}

/** For the person who set something up. */
export function setupProblem(error: NanobotError): string {
  if (error instanceof ConfigError) {
    const lines = error.problems.map(
      ({ path, problem, remedy }) => `${path}: ${problem}. ${remedy}`,
    );
    return lines.join('\n');
  }
  return (error instanceof ProviderError ? error.userText : undefined) ?? error.message;
}

/** Over HTTP: what was wrong, as a refusal. */
export async function explained<Result>(
  work: () => Promise<Result>,
  statusOf: (error: NanobotError) => number = () => 422,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Refusal || !(error instanceof NanobotError)) throw error;
    throw new Refusal(statusOf(error), error.code, setupProblem(error));
  }
}

// The consent to a login by OAuth, which a person gives in a browser.

const CONSENT_TIMEOUT_MS = 15 * 60_000;

/**
 * Runs the work until the person stops it. `stopped`: what is said then.
 * @throws CommandFailure where it was stopped, or took too long
 */
export function whileConsenting<Result>(
  asker: Asker,
  stopped: string,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const limited = (stop: AbortSignal) =>
    work(AbortSignal.any([stop, AbortSignal.timeout(CONSENT_TIMEOUT_MS)]));
  return asker.untilStopped(limited).catch((error: unknown) => {
    const name = error instanceof Error ? error.name : '';
    if (name === 'AbortError') throw new CommandFailure(EXIT.interrupted, stopped);
    if (name !== 'TimeoutError') throw error;
    throw new CommandFailure(EXIT.failure, t`nobody allowed the access within 15 minutes`);
  });
}

/** Undefined where nobody can be asked. */
export function pastedAddress(
  asker: Asker,
  flag: string,
  isOfLogin: (address: string) => boolean,
  signal: AbortSignal,
): Promise<string> | undefined {
  if (!asker.interactive) return undefined;
  const message = t`Is the browser on another machine? Paste the address at which it ends`;
  const check = (answer: string) =>
    isOfLogin(answer) ? undefined : t`This is not the address of this login.`;
  return asker.text({ message, flag, signal, check });
}

/** Where the setup runs. */
export type SetupHost = Pick<Kernel, 'home' | 'env' | 'clock'>;

/** `isRetry`: the earlier values failed. Resolves with what was set up; undefined: nothing. */
export type Step = (isRetry: boolean) => Promise<string | undefined>;

/** By dotted path. */
export type Settings = Readonly<Record<string, JsonValue>>;

export async function currentConfig({ home, env }: SetupHost): Promise<Config> {
  return (await loadConfig(home, env)).config;
}

/** The configuration with these settings. @throws ConfigError */
export async function tryOut({ home, env }: SetupHost, settings: Settings): Promise<Config> {
  const raw = withSettings(await readRawConfig(home), settings, env);
  const secrets = await findSecrets(raw, env, home);
  return checkConfig(JSON.stringify(raw), env, {}, secrets).config;
}

/** @throws ConfigError */
export async function save({ home, env }: SetupHost, settings: Settings): Promise<void> {
  await saveConfig(home, withSettings(await readRawConfig(home), settings, env), env);
}

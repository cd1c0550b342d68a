// CONTRACT between the steps of the setup and who runs them, in a terminal or on the web page: the
// person who answers, and the draft of the configuration, saved only after verification.

import { checkConfig } from '../../kernel/config/check.ts';
import type { Config } from '../../kernel/config/config.ts';
import type { Environment } from '../../kernel/config/environment.ts';
import { loadConfig, readRawConfig, saveConfig } from '../../kernel/config/files/config-file.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import { findSecrets } from '../../kernel/config/files/secret-sources.ts';
import type { JsonObject, JsonValue } from '../../kernel/config/json.ts';
import { withValue } from '../../kernel/config/json-paths.ts';
import type { Clock } from '../../lib/time/clock.ts';

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
}

/** Where the setup runs. */
export type SetupHost = {
  readonly home: Home;
  readonly env: Environment;
  readonly clock: Clock;
};

/** By dotted path. */
export type Settings = Readonly<Record<string, JsonValue>>;

export async function currentConfig({ home, env }: SetupHost): Promise<Config> {
  return (await loadConfig(home, env)).config;
}

/** The configuration with these settings applied. @throws ConfigError */
export async function tryOut({ home, env }: SetupHost, settings: Settings): Promise<Config> {
  const raw = applied(await readRawConfig(home), settings);
  const secrets = await findSecrets(raw, env, home);
  return checkConfig(JSON.stringify(raw), env, {}, secrets).config;
}

export async function save({ home, env }: SetupHost, settings: Settings): Promise<void> {
  await saveConfig(home, applied(await readRawConfig(home), settings), env);
}

function applied(raw: JsonObject, settings: Settings): JsonObject {
  return Object.entries(settings).reduce(
    (changed, [path, value]) => withValue(changed, path, value),
    raw,
  );
}

// The current configuration, and what is derived from it: read through getters, so that a change
// applies from the next turn on without rebuilding the object graph.

import { createRedactor, type Redactor } from '../../../lib/text/redact.ts';
import { t } from '../../../lib/texts.ts';
import type { Clock } from '../../../lib/time/clock.ts';
import { ConfigError, type ConfigProblem } from '../../message/errors.ts';
import type { Config } from '../config.ts';
import type { ConfigChange } from '../diff.ts';
import type { Environment } from '../environment.ts';
import { secretValues } from '../secrets.ts';
import { type LoadedConfig, loadConfig, stampOf } from './config-file.ts';
import type { Home } from './home.ts';

/**
 * Environment variables whose values are kept out of logs and chats, like those of the
 * configuration.
 */
const SECRET_NAME = /(?:_KEY|_TOKEN|_SECRET|_PASSWORD)$/;
/**
 * For an environment that others fill as well: excludes words, numbers and paths, which answers may
 * contain too.
 */
const SECRET_VALUE = /^(?!\/)(?=.*\d|.*[a-z].*[A-Z]|.*[A-Z].*[a-z]).{8,}$/s;

export class LiveConfig {
  #loaded: LoadedConfig;
  #redact: Redactor;

  /** Hides the values of secrets; can be handed on. */
  readonly redact: Redactor = (text) => this.#redact(text);

  /** Problems of the file if it is invalid; this configuration stays in use then. */
  problems: readonly ConfigProblem[] = [];

  /** With replaced ones: a line or a call that began before may still name them. */
  readonly #secrets: Set<string>;

  constructor(loaded: LoadedConfig, env: Environment) {
    this.#loaded = loaded;
    const inEnv = Object.entries(env).flatMap(([name, value]) =>
      value !== undefined && SECRET_NAME.test(name) && SECRET_VALUE.test(value) ? [value] : [],
    );
    this.#secrets = new Set(inEnv);
    this.#redact = this.#redactorFor(loaded.config);
  }

  get loaded(): LoadedConfig {
    return this.#loaded;
  }

  get config(): Config {
    return this.#loaded.config;
  }

  get defaults(): Config['agents']['defaults'] {
    return this.#loaded.config.agents.defaults;
  }

  replace(next: LoadedConfig): void {
    this.#loaded = next;
    this.#redact = this.#redactorFor(next.config);
  }

  /** Applies a token that the home generated anew. */
  useToken(token: string): void {
    const { config } = this.#loaded;
    const gateway = { ...config.gateway, token };
    this.replace({ ...this.#loaded, config: { ...config, gateway } });
  }

  #redactorFor(config: Config): Redactor {
    for (const secret of secretValues(config)) this.#secrets.add(secret);
    return createRedactor([...this.#secrets]);
  }
}

// Watches the configuration file while the gateway runs. A file that does not load keeps the old
// configuration in use and is reported; the caller applies a change.

/**
 * Interval of checks of the file's stamp; an editor's several steps fall between two checks or are
 * seen twice.
 */
const LOOK_INTERVAL_MS = 1000;

type ConfigWatch = {
  readonly home: Home;
  readonly env: Environment;
  readonly current: LoadedConfig;
  readonly clock: Clock;
  /** Awaited before the next change is processed. */
  onChange(next: LoadedConfig, change: ConfigChange): void | Promise<void>;
  /** The old configuration stays in use. `isFirst`: the file was valid before. */
  onInvalid(error: ConfigError, isFirst: boolean): void;
  /** The file is valid again. */
  onRight(): void;
};

/** Runs until the signal aborts. */
export async function watchConfig(watch: ConfigWatch, signal: AbortSignal): Promise<void> {
  const reloader = createReloader(watch);
  let { stamp } = watch.current;
  while (!signal.aborted) {
    await watch.clock.sleep(LOOK_INTERVAL_MS, signal).catch(() => undefined);
    const next = await stampOf(watch.home.config);
    if (signal.aborted || next === stamp) continue;
    stamp = next;
    await reloader();
  }
}

/** Reloads, comparing with the last configuration that loaded. */
function createReloader(watch: ConfigWatch): () => Promise<void> {
  let current = watch.current;
  let lastProblem = '';

  return async () => {
    try {
      if ((await stampOf(watch.home.config)) === undefined) throw goneError();
      const next = await loadConfig(watch.home, watch.env, current.overrides);
      if (lastProblem !== '') watch.onRight();
      lastProblem = '';
      const { configChange, isUnchanged } = await import('../diff.ts');
      const change = configChange(current.config, next.config);
      current = next;
      if (!isUnchanged(change)) await watch.onChange(next, change);
    } catch (error) {
      const invalid = asConfigError(error);
      const problem = JSON.stringify(invalid.problems);
      if (problem !== lastProblem) watch.onInvalid(invalid, lastProblem === '');
      lastProblem = problem;
    }
  };
}

/** Without the file the defaults would apply, which is not intended. */
function goneError(): ConfigError {
  const remedy = t`Restore it; a copy of the last valid configuration is in the same folder.`;
  return new ConfigError(t`the configuration file is missing`, [
    { path: '', problem: t`the file is missing`, remedy },
  ]);
}

/** A file that cannot be read is treated as an invalid one. */
function asConfigError(error: unknown): ConfigError {
  if (error instanceof ConfigError) return error;
  const problem = error instanceof Error ? error.message : String(error);
  return new ConfigError(t`cannot read the configuration`, [
    { path: '', problem, remedy: t`Check that the file exists and this user may read it.` },
  ]);
}

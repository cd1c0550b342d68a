// The configuration in force, and what is derived from it: read through getters, so that a change
// holds from the next turn on without rebuilding the graph.

import { createRedactor, type Redactor } from '../../../lib/text/redact.ts';
import type { ConfigProblem } from '../../message/errors.ts';
import type { Config } from '../config.ts';
import type { Environment } from '../environment.ts';
import { secretValues } from '../secrets.ts';
import type { LoadedConfig } from './config-file.ts';

/** Environment variables whose values are kept out of logs and chats, as those of the configuration. */
const SECRET_NAME = /(?:_KEY|_TOKEN|_SECRET|_PASSWORD)$/;
/** Of an environment that others fill as well: no word, number or path that answers may hold too. */
const SECRET_VALUE = /^(?!\/)(?=.*\d|.*[a-z].*[A-Z]|.*[A-Z].*[a-z]).{8,}$/s;

export class LiveConfig {
  #loaded: LoadedConfig;
  #redact: Redactor;

  /** Of the file, where it cannot be used; the configuration here stays in force then. */
  problems: readonly ConfigProblem[] = [];

  readonly #envSecrets: readonly string[];

  constructor(loaded: LoadedConfig, env: Environment) {
    this.#loaded = loaded;
    this.#envSecrets = Object.entries(env).flatMap(([name, value]) =>
      value !== undefined && SECRET_NAME.test(name) && SECRET_VALUE.test(value) ? [value] : [],
    );
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

  /** Takes over a token that the home made anew. */
  useToken(token: string): void {
    const { config } = this.#loaded;
    const gateway = { ...config.gateway, token };
    this.replace({ ...this.#loaded, config: { ...config, gateway } });
  }

  #redactorFor(config: Config): Redactor {
    return createRedactor([...secretValues(config), ...this.#envSecrets]);
  }

  redact(text: string): string {
    return this.#redact(text);
  }
}

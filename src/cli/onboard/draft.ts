// The configuration while it is being set up: a step's settings are proved first and saved only then.

import { type CheckedConfig, checkConfig } from '../../kernel/config/check.ts';
import { type Config, configSchema } from '../../kernel/config/config.ts';
import { loadConfig } from '../../kernel/config/files/config-file.ts';
import { readRawConfig, saveConfig } from '../../kernel/config/files/config-store.ts';
import { findSecrets } from '../../kernel/config/files/secret-sources.ts';
import type { JsonObject, JsonValue } from '../../kernel/config/json.ts';
import { withValue } from '../../kernel/config/json-paths.ts';
import type { Terminal } from '../terminal.ts';

/** By dotted path. */
export type Settings = Readonly<Record<string, JsonValue>>;

export async function currentConfig({ home, env }: Terminal): Promise<Config> {
  return (await loadConfig(home, env)).config;
}

/** The configuration as it would be with these settings. @throws ConfigError */
export async function tryOut({ home, env }: Terminal, settings: Settings): Promise<Config> {
  const raw = applied(await readRawConfig(home), settings);
  const secrets = await findSecrets(raw, env, home);
  const checked: CheckedConfig = checkConfig(JSON.stringify(raw), env, {}, secrets);
  return configSchema.parse(checked.config);
}

export async function save({ home, env }: Terminal, settings: Settings): Promise<void> {
  await saveConfig(home, applied(await readRawConfig(home), settings), env);
}

function applied(raw: JsonObject, settings: Settings): JsonObject {
  return Object.entries(settings).reduce(
    (changed, [path, value]) => withValue(changed, path, value),
    raw,
  );
}

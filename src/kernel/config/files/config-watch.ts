// Notices changes of the configuration file while the gateway runs. A file that does not load keeps
// the old configuration in force and says so; who applies a change is the caller.

import { stat } from 'node:fs/promises';
import type { Clock } from '../../../lib/time/clock.ts';
import { ConfigError } from '../../message/errors.ts';
import { type ConfigChange, configChange, isUnchanged } from '../diff.ts';
import type { Environment } from '../environment.ts';
import { type LoadedConfig, loadConfig } from './config-file.ts';
import type { Home } from './home.ts';

/** One look at the file's stamp; an editor's several steps fall between two looks or are seen twice. */
const LOOK_INTERVAL_MS = 1000;

export type ConfigWatch = {
  readonly home: Home;
  readonly env: Environment;
  readonly current: LoadedConfig;
  readonly clock: Clock;
  /** Awaited before the next change is looked at. */
  onChange(next: LoadedConfig, change: ConfigChange): void | Promise<void>;
  /** The old configuration stays in force. `isFirst`: the file was right before. */
  onInvalid(error: ConfigError, isFirst: boolean): void;
  /** The file is right again. */
  onRight(): void;
};

/** Runs until the signal aborts. */
export async function watchConfig(watch: ConfigWatch, signal: AbortSignal): Promise<void> {
  const reloader = createReloader(watch);
  let stamp = await stampOf(watch.home.config);
  // What changed between the load and the first look would otherwise go unseen.
  await reloader();
  while (!signal.aborted) {
    await watch.clock.sleep(LOOK_INTERVAL_MS, signal).catch(() => undefined);
    const next = await stampOf(watch.home.config);
    if (signal.aborted || next === stamp) continue;
    stamp = next;
    await reloader();
  }
}

/** Changes whenever the file does, replaced ones included; undefined where there is none. */
async function stampOf(path: string): Promise<string | undefined> {
  const info = await stat(path, { bigint: true }).catch(() => undefined);
  return info === undefined ? undefined : `${info.ino} ${info.size} ${info.mtimeNs}`;
}

/** Reloads, each against the last configuration that loaded. */
function createReloader(watch: ConfigWatch): () => Promise<void> {
  let current = watch.current;
  let lastProblem = '';

  return async () => {
    try {
      if ((await stampOf(watch.home.config)) === undefined) throw goneError();
      const next = await loadConfig(watch.home, watch.env, current.overrides);
      if (lastProblem !== '') watch.onRight();
      lastProblem = '';
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

/** Without the file the defaults would count, which nobody asked for. */
function goneError(): ConfigError {
  const remedy = 'Put it back; the last one that loaded is beside it.';
  return new ConfigError('the configuration is gone', [
    { path: '', problem: 'the file is gone', remedy },
  ]);
}

/** A file that cannot be read is as good as one that is wrong. */
function asConfigError(error: unknown): ConfigError {
  if (error instanceof ConfigError) return error;
  const problem = error instanceof Error ? error.message : String(error);
  return new ConfigError('the configuration cannot be read', [
    { path: '', problem, remedy: 'See that the file is there and readable.' },
  ]);
}

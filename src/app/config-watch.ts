// Notices changes of the configuration file while the gateway runs. A file that does not load keeps
// the old configuration in force and says so; who applies a change is the caller.

import { basename } from 'node:path';
import { type ConfigChange, configChange, isUnchanged } from '../core/config-diff.ts';
import type { Environment } from '../core/environment.ts';
import { ConfigError } from '../core/errors.ts';
import type { Clock } from '../lib/clock.ts';
import { type LoadedConfig, loadConfig } from './config.ts';
import type { Home } from './home.ts';

/** Editors write in several steps; a file is read when it has been quiet this long. */
const QUIET_MS = 200;

export type ConfigWatch = {
  readonly home: Home;
  readonly env: Environment;
  readonly current: LoadedConfig;
  readonly clock: Clock;
  /** Awaited before the next change is looked at. */
  onChange(next: LoadedConfig, change: ConfigChange): void | Promise<void>;
  /** The old configuration stays in force. */
  onInvalid(error: ConfigError): void;
};

/** Runs until the signal aborts. */
export async function watchConfig(watch: ConfigWatch, signal: AbortSignal): Promise<void> {
  const { watch: watchFiles } = await import('chokidar');
  signal.throwIfAborted();
  // The folder, not the file: an atomic save replaces the file, and a watch on it would go with it.
  const watcher = watchFiles(watch.home.root, {
    depth: 0,
    ignoreInitial: true,
    ignored: (path) => path !== watch.home.root && basename(path) !== basename(watch.home.config),
  });
  const reloader = createReloader(watch);
  let quiet: Disposable | undefined;
  // What changed before the watch was ready would otherwise go unseen.
  watcher.on('ready', reloader);
  watcher.on('all', () => {
    quiet?.[Symbol.dispose]();
    quiet = watch.clock.timer(QUIET_MS, reloader);
  });
  await new Promise<void>((resolve, reject) => {
    watcher.on('error', reject);
    signal.addEventListener('abort', () => resolve(), { once: true });
  }).finally(async () => {
    quiet?.[Symbol.dispose]();
    await watcher.close();
  });
}

/** One reload after the other, each against the last configuration that loaded. */
function createReloader(watch: ConfigWatch): () => void {
  let current = watch.current;
  let lane = Promise.resolve();
  let lastProblem = '';

  async function reload() {
    try {
      const next = await loadConfig(watch.home, watch.env, current.overrides);
      lastProblem = '';
      const change = configChange(current.config, next.config);
      current = next;
      if (!isUnchanged(change)) await watch.onChange(next, change);
    } catch (error) {
      const invalid = asConfigError(error);
      const problem = JSON.stringify(invalid.problems);
      if (problem !== lastProblem) watch.onInvalid(invalid);
      lastProblem = problem;
    }
  }

  return () => {
    lane = lane.then(reload);
  };
}

/** A file that cannot be read is as good as one that is wrong. */
function asConfigError(error: unknown): ConfigError {
  if (error instanceof ConfigError) return error;
  const problem = error instanceof Error ? error.message : String(error);
  return new ConfigError('the configuration cannot be read', [
    { path: '', problem, remedy: 'See that the file is there and readable.' },
  ]);
}

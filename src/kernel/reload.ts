// Applies a changed configuration while the gateway runs: most of it at the next turn, a changed
// channel by restarting only that channel.

import { t } from '../lib/texts.ts';
import type { ConfigChange } from './config/diff.ts';
import type { LoadedConfig } from './config/files/config-file.ts';
import { watchConfig } from './config/files/live-config.ts';
import { problemLine, problemLines } from './config/issues.ts';
import type { Kernel } from './feature.ts';
import type { ConfigProblem } from './message/errors.ts';
import { verbatim } from './message/untrusted.ts';

interface Reloadable {
  /** By the name of an account. */
  restartChannel(name: string): Promise<boolean>;
  useToken(token: string): Promise<void>;
}

function wrongConfigText(problems: readonly ConfigProblem[]): string {
  const lines = problemLines(problems).map((line) => `- ${verbatim(line)}`);
  return [
    t`config.json was changed and is not valid; the previous configuration stays in use:`,
    ...lines,
    t`Correct the file and it counts at once; /status shows what is wrong until then.`,
  ].join('\n');
}

export async function followConfig(
  gateway: Reloadable,
  kernel: Kernel,
  signal: AbortSignal,
): Promise<void> {
  const { home, env, live, clock, log, permits, measuring, owners, contributed, options } = kernel;
  const { foreground } = options;

  async function apply(next: LoadedConfig, change: ConfigChange) {
    live.replace(next);
    await gateway.useToken(next.config.gateway.token);
    permits.resize(next.config.agents.defaults.maxConcurrentChats);
    for (const applied of contributed.reconfigured()) await applied();
    for (const channel of change.channels) await gateway.restartChannel(channel);
    const { channels, nextTurn, gateway: atStart } = change;
    log.info('configuration changed', { nextTurn, channels, atStart });
    measuring.audit.note({
      kind: 'configuration',
      fields: { changed: [...nextTurn, ...atStart].join(' '), channels: channels.join(' ') },
    });
    foreground([t`The changed configuration is in force.`, ...next.notes].join('\n  '));
    if (atStart.length > 0) foreground(t`Start the gateway again for: ${atStart.join(', ')}.`);
  }

  await watchConfig(
    {
      home,
      env,
      clock,
      current: live.loaded,
      onChange(next, change) {
        apply(next, change).catch((error) => {
          log.error('configuration not applied', { error });
          foreground(t`The changed configuration could not be applied; see the log.`);
        });
      },
      onRight() {
        live.problems = [];
        foreground(t`The configuration file can be used again.`);
      },
      onInvalid(error, isFirst) {
        live.problems = error.problems;
        if (isFirst) owners.tell(live.redact(wrongConfigText(error.problems)));
        log.warn('configuration invalid', { problems: error.problems.map(({ path }) => path) });
        foreground(t`The changed configuration cannot be used; the old one stays in force:`);
        for (const problem of error.problems) foreground(`  ${problemLine(problem)}`);
      },
    },
    signal,
  ).catch((error) => {
    if (!signal.aborted) log.error('configuration watch failed', { error });
  });
}

// The command `nanobot selftest --live`: sends a marked message through each channel of the running
// gateway and prints the time of each hop and a verdict by channel.

import { Command } from 'commander';
import { CommandFailure, EXIT, type Terminal, textTable } from '../../cli/terminal.ts';
import { t } from '../../lib/texts.ts';

type Flags = { readonly live: boolean; readonly json?: boolean };
type Verdict = {
  readonly channel: string;
  readonly passed: boolean;
  readonly hops: readonly { readonly hop: string; readonly ms: number }[];
  readonly reason?: string;
  readonly remedy?: string;
};

export function selfTestCommand(terminal: Terminal): Command {
  return new Command('selftest')
    .description(t`send a test message through each channel of the running gateway and back`)
    .requiredOption('--live', t`required: really send messages ("doctor" checks without sending)`)
    .option('--json', t`print as JSON`)
    .action((flags: Flags) => runSelfTest(terminal, flags.json === true));
}

async function runSelfTest(terminal: Terminal, json: boolean) {
  const verdicts: Verdict[] = [];
  for await (const verdict of verdictsOf(terminal)) {
    verdicts.push(verdict);
    if (!json) tell(terminal, verdict);
  }
  if (json) terminal.printJson(verdicts);
  if (verdicts.length < 2)
    terminal.note(t`No channel is connected. Connect one: nanobot channels login <name>`);
  const failed = verdicts.filter(({ passed }) => !passed).map(({ channel }) => channel);
  if (failed.length > 0) throw new CommandFailure(EXIT.failure, t`failed: ${failed.join(', ')}`);
}

function tell(terminal: Terminal, { channel, passed, hops, reason, remedy }: Verdict) {
  const times = hops.map(({ hop, ms }) => t`${hop} ${ms} ms`).join(', ');
  for (const line of textTable([[channel, passed ? 'passed' : 'FAILED', times]])) {
    terminal.print(line);
  }
  if (reason !== undefined) terminal.print(`  ${reason}. ${remedy}`);
}

/** Longer than a test in which every channel reaches its deadline. */
const MAX_TEST_MS = 10 * 60_000;
const CUT_OFF = {
  reason: t`the gateway stopped during the test`,
  remedy: t`Start it: nanobot gateway`,
};

/** Tests the web page first: the request and its event stream. */
async function* verdictsOf(terminal: Terminal): AsyncGenerator<Verdict, void, void> {
  const { remoteSelfTest, runningGateway } = await import('../../cli/login/remote-login.ts');
  const { clock } = terminal;
  const gateway = await runningGateway(terminal);
  const began = clock.monotonic();
  const hops = new Map<string, Verdict['hops']>();
  for await (const step of remoteSelfTest(gateway, AbortSignal.timeout(MAX_TEST_MS))) {
    if (step.kind === 'started') {
      const ms = Math.round(clock.monotonic() - began);
      yield { channel: 'web', passed: true, hops: [{ hop: 'answered', ms }] };
      continue;
    }
    const { channel } = step;
    const before = hops.get(channel) ?? [];
    if (step.kind === 'hop') {
      hops.set(channel, [...before, { hop: step.hop, ms: step.ms }]);
      continue;
    }
    hops.delete(channel);
    if (step.kind === 'passed') yield { channel, passed: true, hops: before };
    else yield { channel, passed: false, hops: before, reason: step.reason, remedy: step.remedy };
  }
  // A channel with hops but without a verdict was being tested when the gateway stopped.
  for (const [channel, before] of hops) yield { channel, passed: false, hops: before, ...CUT_OFF };
}

// The programs measured in one run: the two baselines, the package that is made of this checkout,
// optionally another checkout, and where it is asked for the sources of this one.

import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { setup, teardown } from '../test/support/packed.ts';
import { AT_ONCE, type Pace, type Peers, startPeers } from './peers.ts';
import {
  agentBot,
  bareBot,
  type NanobotOptions,
  nanobot,
  type Program,
  ROOT,
  type Subject,
} from './subject.ts';

/** A running program with simulated services of its own. */
export type Bot = {
  readonly program: Program;
  readonly subject: Subject;
  readonly peers: Peers;
};

export type Entrant = (peers: Peers) => Program | Promise<Program>;

export type Settings = Pick<NanobotOptions, 'quietMs' | 'maxConcurrentChats'>;

/** The coalescing window has a suite of its own; in the others its wait would hide the rest. */
export const UNLIMITED: Settings = { quietMs: 0, maxConcurrentChats: 1000 };

export interface Contest extends AsyncDisposable {
  readonly yardsticks: readonly Entrant[];
  /** The package of this checkout, and the checkout it is compared with. */
  nanobots(settings: Settings, suffix?: string): readonly Entrant[];
  sources(settings: Settings): Entrant;
}

/** @param against folder of another checkout, with its dependencies installed */
export async function openContest(against: string | undefined): Promise<Contest> {
  await setup();
  const packed = process.env['NANOBOT_TEST_PACKAGE'] ?? '';
  const checkouts = [{ name: 'nanobot', folder: packed }];
  if (against !== undefined) {
    const folder = resolve(against);
    if (!existsSync(join(folder, 'bin/nanobot.js'))) throw new Error(`no checkout in ${folder}`);
    checkouts.push({ name: `nanobot in ${basename(folder)}`, folder });
  }
  const scratch = await mkdtemp(join(tmpdir(), 'nanobot-bench-'));
  const request = join(scratch, 'request.json');
  await writeFile(request, await recordRequest(packed));
  return {
    yardsticks: [bareBot, (peers) => agentBot(peers, request)],
    nanobots: (settings, suffix = '') =>
      checkouts.map(
        ({ name, folder }) =>
          (peers) =>
            nanobot(peers, { name: `${name}${suffix}`, folder, ...settings }),
      ),
    sources: (settings) => (peers) =>
      nanobot(peers, { name: 'nanobot from its sources', folder: ROOT, ...settings }),
    async [Symbol.asyncDispose]() {
      await teardown();
      await rm(scratch, { recursive: true, force: true });
    },
  };
}

/** What nanobot sends to the model for a first message, as JSON. */
async function recordRequest(folder: string): Promise<string> {
  await using stack = new AsyncDisposableStack();
  const [bot] = await lineUp(stack, AT_ONCE, [
    (peers) => nanobot(peers, { name: 'nanobot', folder, ...UNLIMITED }),
  ]);
  await bot?.peers.ask(1);
  return JSON.stringify(bot?.peers.lastRequest());
}

/** All of them running until the stack is disposed. */
export async function lineUp(
  stack: AsyncDisposableStack,
  pace: Pace,
  entrants: readonly Entrant[],
): Promise<readonly Bot[]> {
  const bots: Bot[] = [];
  for (const entrant of entrants) {
    const peers = stack.use(await startPeers(pace));
    const program = stack.use(await entrant(peers));
    const subject = stack.use(program.start());
    await peers.firstPoll(subject.startedAt);
    bots.push({ program, subject, peers });
  }
  return bots;
}

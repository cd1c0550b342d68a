// Waits for the first use of a pairing link, which makes the person the channel's owner. Uses the
// running gateway; without one, runs one during the wait.

import { boot } from '../../boot.ts';
import { loadConfig } from '../../kernel/config/files/config-file.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { findRunningGateway, type OpenedState, withOpenState } from '../../kernel/home-state.ts';
import type { Approval } from '../../kernel/people/people-rows.ts';

const LOOK_MS = 300;
/** The confirmation to the owner: queued right after the pairing, then sent. */
const ANSWER_QUEUED_MS = 1000;
const ANSWER_SENT_MS = 10_000;

type OwnerWait = Pick<Kernel, 'home' | 'env' | 'clock'> & {
  readonly channel: string;
};

/** A code for the link. Only its hash is stored. */
export async function issueOwnerCode({ home, clock, channel }: OwnerWait): Promise<string> {
  const issue = ({ pairing }: OpenedState) => pairing.issueOwnerCode(channel);
  return (await withOpenState(home, clock, issue)).code;
}

/** The existing owner; undefined: none. */
export async function knownOwner({
  home,
  clock,
  channel,
}: OwnerWait): Promise<Approval | undefined> {
  return withOpenState(home, clock, async ({ pairing }) => {
    const { approved } = await pairing.list();
    return approved.find((person) => person.channel === channel && person.role === 'owner');
  });
}

/** The owner once a code was redeemed after `since`; undefined when aborted before. */
export async function waitForOwner(
  wait: OwnerWait,
  since: number,
  signal: AbortSignal,
): Promise<Approval | undefined> {
  if ((await findRunningGateway(wait.home)) !== undefined) return look(wait, since, signal);
  const { home, env, channel } = wait;
  const loaded = await loadConfig(home, env);
  const options = { home, env, channels: [channel], http: false, foreground: () => undefined };
  await using gateway = await boot(loaded, options);
  const found = new AbortController();
  const run = gateway.run(AbortSignal.any([signal, found.signal]));
  try {
    const owner = await look(wait, since, signal);
    if (owner !== undefined) await answered(wait, signal);
    return owner;
  } finally {
    found.abort();
    await run;
  }
}

async function look(
  { home, clock, channel }: OwnerWait,
  since: number,
  signal: AbortSignal,
): Promise<Approval | undefined> {
  return withOpenState(home, clock, async ({ pairing }) => {
    while (!signal.aborted) {
      const { approved } = await pairing.list();
      const owner = approved.find(
        (person) => person.channel === channel && person.role === 'owner' && person.at >= since,
      );
      if (owner !== undefined) return owner;
      await clock.sleep(LOOK_MS, signal).catch(() => undefined);
    }
    return undefined;
  });
}

/** Delivers the confirmation now rather than at the next start of the gateway. */
async function answered({ home, clock }: OwnerWait, signal: AbortSignal): Promise<void> {
  const until = clock.monotonic() + ANSWER_SENT_MS;
  await clock.sleep(ANSWER_QUEUED_MS, signal).catch(() => undefined);
  await withOpenState(home, clock, async ({ store }) => {
    while (!signal.aborted && clock.monotonic() < until) {
      if ((await store.stats()).outboundQueued === 0) return;
      await clock.sleep(LOOK_MS, signal).catch(() => undefined);
    }
  });
}

// Offers the pairing link of a channel: the first person who uses it becomes its owner.

import { issueOwnerCode, type OwnerWait, waitForOwner } from '../../app/owner-pairing.ts';
import type { Terminal } from '../terminal.ts';
import type { Asker } from './asker.ts';

const PERSON_WAIT_SECS = 600;

export type OwnerOffer = {
  readonly channel: string;
  /** What to do with the link, ending before it. */
  readonly request: string;
  /** What is awaited, as in "Waiting for the tap". */
  readonly sign: string;
  /** Seconds; a person waits ten minutes, a script not at all. */
  readonly waitSecs?: number;
  link(code: string): string;
};

/** In a script the link is printed and good for half an hour. */
export async function offerPairing(
  { home, env, clock }: Terminal,
  asker: Asker,
  offer: OwnerOffer,
): Promise<void> {
  const { channel, request, sign } = offer;
  const waitSecs = offer.waitSecs ?? (asker.interactive ? PERSON_WAIT_SECS : 0);
  const wait: OwnerWait = { home, env, clock, channel };
  const since = clock.now();
  asker.say(`${request}\n${offer.link(await issueOwnerCode(wait))}`);
  if (waitSecs <= 0) return;
  const signal = AbortSignal.timeout(waitSecs * 1000);
  await asker.during(
    `Waiting for ${sign}, at most ${waitSecs} s (Ctrl+C goes on later)`,
    () => waitForOwner(wait, since, signal),
    (owner) =>
      owner === undefined
        ? `There was none yet. The link stays good for 30 minutes.`
        : `Paired with ${owner.name === '' ? owner.userId : owner.name}.`,
  );
}

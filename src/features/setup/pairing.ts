// Offers the pairing link of a channel: the first person who uses it becomes its owner.

import type { Approval } from '../../kernel/people/people-rows.ts';
import { t } from '../../lib/texts.ts';
import type { Asker, SetupHost } from './asker.ts';

const PERSON_WAIT_SECS = 600;

type OwnerOffer = {
  readonly channel: string;
  /** What to do with the link; ends before the link. */
  readonly request: string;
  /** What is awaited, as in "Waiting up to 60 s for the tap". */
  readonly sign: string;
  /** Seconds; a person waits ten minutes, a script not at all. */
  readonly waitSecs?: number;
  link(code: string): string;
};

/** In a script the link is printed and valid for half an hour. */
export async function offerPairing(
  host: SetupHost,
  asker: Asker,
  offer: OwnerOffer,
): Promise<void> {
  const { home, env, clock } = host;
  const { channel, request, sign } = offer;
  const waitSecs = offer.waitSecs ?? (asker.interactive ? PERSON_WAIT_SECS : 0);
  const { issueOwnerCode, knownOwner, waitForOwner } = await import('../people/owner-pairing.ts');
  const wait = { home, env, clock, channel };
  const known = await knownOwner(wait);
  if (known !== undefined) return asker.say(alreadyOwned(known));
  const since = clock.now();
  const link = offer.link(await issueOwnerCode(wait));
  asker.link(request, link);
  if (waitSecs <= 0) return;
  await asker.during(
    t`Waiting up to ${waitSecs} s for ${sign} (${asker.later}; the link stays valid)`,
    () =>
      asker.untilStopped((stop) =>
        waitForOwner(wait, since, AbortSignal.any([stop, AbortSignal.timeout(waitSecs * 1000)])),
      ),
    (owner) =>
      owner === undefined
        ? t`Not used yet. It stays valid for 30 minutes.`
        : t`Paired with ${nameOf(owner)}.`,
  );
}

const nameOf = ({ name, userId }: Approval) => (name === '' ? userId : name);

/** A relinked account keeps its people; a second link would let in anybody who sees it. */
function alreadyOwned(owner: Approval): string {
  const { channel, userId } = owner;
  return (
    t`${nameOf(owner)} is already the owner. To change that, run ` +
    t`\`nanobot pair revoke ${channel} ${userId}\`, then this command again.`
  );
}

// Offers the pairing link of a channel: the first person who uses it becomes its owner.

import {
  issueOwnerCode,
  knownOwner,
  type OwnerWait,
  waitForOwner,
} from '../../features/people/owner-pairing.ts';
import type { Approval } from '../../features/people/pairing.ts';
import { qrMatrix, qrTerminalLines, qrTerminalSize } from '../../lib/qr-code.ts';
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
  terminal: Terminal,
  asker: Asker,
  offer: OwnerOffer,
): Promise<void> {
  const { home, env, clock } = terminal;
  const { channel, request, sign } = offer;
  const waitSecs = offer.waitSecs ?? (asker.interactive ? PERSON_WAIT_SECS : 0);
  const wait: OwnerWait = { home, env, clock, channel };
  const known = await knownOwner(wait);
  if (known !== undefined) return asker.say(alreadyOwned(known));
  const since = clock.now();
  const link = offer.link(await issueOwnerCode(wait));
  asker.say(`${request}\n${link}`);
  if (asker.interactive && link.startsWith('https:')) showQrCode(terminal, link);
  if (waitSecs <= 0) return;
  const signal = AbortSignal.timeout(waitSecs * 1000);
  await asker.during(
    `Waiting for ${sign}, at most ${waitSecs} s (Ctrl+C: not now; the link stays good)`,
    () => waitForOwner(wait, since, signal),
    (owner) =>
      owner === undefined
        ? `There was none yet. The link stays good for 30 minutes.`
        : `Paired with ${nameOf(owner)}.`,
  );
}

/** For the camera of a phone, where the window has room for it. */
function showQrCode({ output, env, print }: Terminal, link: string): void {
  const matrix = qrMatrix(link);
  const { columns, rows } = qrTerminalSize(matrix);
  const { columns: width = 0, rows: height = 0 } = output;
  if (columns > width || rows >= height) return;
  const colors = (env['NO_COLOR'] ?? '') === '';
  for (const line of qrTerminalLines(matrix, { colors })) print(line);
}

const nameOf = ({ name, userId }: Approval) => (name === '' ? userId : name);

/** A relinked account keeps its people; a second link would invite whoever sees it. */
function alreadyOwned(owner: Approval): string {
  const { channel, userId } = owner;
  return (
    `${nameOf(owner)} is its owner already. For another one, run ` +
    `\`nanobot pair revoke ${channel} ${userId}\` and then this again.`
  );
}

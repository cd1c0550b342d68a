// Parts of the setup that channels use: the draft of the configuration, saved only after it was proved,
// and the pairing link for the first owner.

import {
  issueOwnerCode,
  knownOwner,
  type OwnerWait,
  waitForOwner,
} from '../../features/people/owner-pairing.ts';
import type { Approval } from '../../features/people/people-rows.ts';
import { checkConfig } from '../../kernel/config/check.ts';
import type { Config } from '../../kernel/config/config.ts';
import { loadConfig } from '../../kernel/config/files/config-file.ts';
import { readRawConfig, saveConfig } from '../../kernel/config/files/config-store.ts';
import { findSecrets } from '../../kernel/config/files/secret-sources.ts';
import type { JsonObject, JsonValue } from '../../kernel/config/json.ts';
import { withValue } from '../../kernel/config/json-paths.ts';
import { qrMatrix, qrTerminalLines, qrTerminalSize } from '../../lib/qr-code.ts';
import type { Terminal } from '../terminal.ts';
import type { Asker } from './asker.ts';

/** By dotted path. */
export type Settings = Readonly<Record<string, JsonValue>>;

export async function currentConfig({ home, env }: Terminal): Promise<Config> {
  return (await loadConfig(home, env)).config;
}

/** The configuration as it would be with these settings. @throws ConfigError */
export async function tryOut({ home, env }: Terminal, settings: Settings): Promise<Config> {
  const raw = applied(await readRawConfig(home), settings);
  const secrets = await findSecrets(raw, env, home);
  return checkConfig(JSON.stringify(raw), env, {}, secrets).config;
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

// Offers the pairing link of a channel: the first person who uses it becomes its owner.

const PERSON_WAIT_SECS = 600;

type OwnerOffer = {
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

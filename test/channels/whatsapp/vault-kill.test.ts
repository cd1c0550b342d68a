// The vault in a process that is killed with -9 around its transactions, and started again each time:
// every message that was sent is read or stored, and nothing that went out uses a key twice.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { campaign } from '../../support/campaign.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import type { KeyBundle } from '../../support/whatsapp-server/seams.ts';
import { SignalDevice } from '../../support/whatsapp-server/signal-device.ts';
import type { ChildInput } from './vault-child.ts';
import { OWN, openRig } from './vault-rig.ts';

const CHILD = fileURLToPath(new URL('vault-child.ts', import.meta.url));
const KILLS = campaign({ short: 5, full: 360 });
const MESSAGES_PER_RUN = 4;
/** Spread over all stages of a run; the first runs die while the link and the keys are stored. */
const deathAt = (kill: number) => 1 + ((kill * 5) % 37);

type Said =
  | { readonly kind: 'bundle'; readonly value: HexBundle }
  | { readonly kind: 'receipt' | 'refused'; readonly value: string }
  | { readonly kind: 'answer'; readonly value: Omit<ChildInput, 'id' | 'from'> & { to: string } };

type HexBundle = {
  readonly registrationId: number;
  readonly identityKey: string;
  readonly signedPreKey: { readonly id: number; readonly key: string; readonly signature: string };
  readonly preKey: { readonly id: number; readonly key: string };
};

/** The server with its queue, and the people who write. */
class Outside {
  readonly #people = new Map<string, SignalDevice>();
  /** Not receipted: sent again to the next process. */
  readonly queue: ChildInput[] = [];
  readonly sent: string[] = [];
  readonly broken: string[] = [];
  readonly givenPreKeys: number[] = [];

  /** Somebody who met us by this bundle writes; so does everybody who has done so before. */
  async write(bundle: HexBundle): Promise<readonly ChildInput[]> {
    const stranger = new SignalDevice();
    await stranger.startSession(OWN.lid, parse(bundle));
    this.givenPreKeys.push(bundle.preKey.id);
    this.#people.set(`${7000001 + this.#people.size}@lid`, stranger);
    const writers = [...this.#people].slice(-MESSAGES_PER_RUN);
    const written: ChildInput[] = [];
    for (const [from, person] of writers) {
      const id = `M${this.sent.length}`;
      const { type, ciphertext } = await person.encrypt(OWN.lid, { conversation: id });
      this.sent.push(id);
      written.push({ id, from, type, ciphertext: Buffer.from(ciphertext).toString('base64') });
    }
    this.queue.push(...written);
    return written;
  }

  async hear(said: Said): Promise<void> {
    if (said.kind === 'receipt' || said.kind === 'refused') {
      const at = this.queue.findIndex(({ id }) => id === said.value);
      if (at >= 0) this.queue.splice(at, 1);
    }
    if (said.kind !== 'answer') return;
    const { to, type, ciphertext } = said.value;
    const sealed = {
      type: type === 'pkmsg' ? 'pkmsg' : 'msg',
      ciphertext: Buffer.from(ciphertext, 'base64'),
    } as const;
    await this.#people
      .get(to)
      ?.decrypt(OWN.lid, sealed)
      .catch(() => this.broken.push(to));
  }
}

async function runProcess(folder: string, outside: Outside, death: number): Promise<void> {
  const child = spawn(process.execPath, [CHILD, folder, String(death)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  // It may be dead already.
  child.stdin.on('error', () => {});
  const give = (inputs: readonly ChildInput[]) => {
    for (const input of inputs) child.stdin.write(`${JSON.stringify(input)}\n`);
  };
  give(outside.queue);
  for await (const line of createInterface({ input: child.stdout })) {
    const said: Said = JSON.parse(line);
    await outside.hear(said);
    if (said.kind !== 'bundle') continue;
    give(await outside.write(said.value));
    child.stdin.end();
  }
  const [code, signal] = await ended;
  expect(death === 0 ? code : signal).toBe(death === 0 ? 0 : 'SIGKILL');
}

function parse({ registrationId, identityKey, signedPreKey, preKey }: HexBundle): KeyBundle {
  const bytes = (hex: string) => Buffer.from(hex, 'hex');
  return {
    registrationId,
    identityKey: bytes(identityKey),
    signedPreKey: {
      id: signedPreKey.id,
      key: bytes(signedPreKey.key),
      signature: bytes(signedPreKey.signature),
    },
    preKey: { id: preKey.id, key: bytes(preKey.key) },
  };
}

it('loses no message, breaks no session and gives no pre-key twice', async () => {
  const folder = await temporaryFolder();
  const outside = new Outside();
  for (let kill = 0; kill < KILLS; kill += 1) {
    await runProcess(folder, outside, deathAt(kill));
  }
  await runProcess(folder, outside, 0);

  await using rig = await openRig(folder);
  const rows = await rig.ledger.list(10_000);
  const stored = new Set(rows.map(({ message }) => message.conversation ?? ''));
  expect(outside.sent.length).toBeGreaterThan(KILLS);
  expect(outside.sent.filter((id) => !stored.has(id))).toEqual([]);
  expect(outside.queue).toEqual([]);
  expect(outside.broken).toEqual([]);
  expect(new Set(outside.givenPreKeys).size).toBe(outside.givenPreKeys.length);
  expect(rig.vault.health()).toMatchObject({ damagedRecords: 0 });
  expect(rig.vault.account?.number).toBe('15550001');
});

// A process for the kill test: decrypts what it is given line by line, answers each message, gives a
// pre-key away as a retry receipt does, and kills itself at the stage it was told.

import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { quietConsole } from '../../../src/channels/whatsapp/transport.ts';
import type { KeyValueStore } from '../../../src/kernel/bus/store/store.ts';
import {
  bundleOf,
  encryptFor,
  makePreKeys,
  markLinked,
  openRig,
  receive,
  stanzaOf,
} from './vault-rig.ts';

export type ChildInput = {
  readonly id: string;
  readonly from: string;
  readonly type: string;
  readonly ciphertext: string;
};

const STDOUT = 1;
const [folder = '', deathAt = '0'] = process.argv.slice(2);
quietConsole();

const stages = { passed: 0 };
function stage(): void {
  stages.passed += 1;
  if (stages.passed === Number(deathAt)) process.kill(process.pid, 'SIGKILL');
}
function say(kind: string, value: unknown): void {
  stage();
  writeSync(STDOUT, `${JSON.stringify({ kind, value })}\n`);
  stage();
}

/** Dies before, while and after a transaction is written. */
const wrap = (state: KeyValueStore): KeyValueStore => ({
  ...state,
  async setMany(rows) {
    stage();
    const written = state.setMany(rows);
    stage();
    await written;
    stage();
  },
});

const rig = await openRig(folder, { wrap });
if (rig.vault.account === undefined) {
  markLinked(rig.vault.auth.creds);
  await rig.vault.save();
}
const connection = rig.connect();
// The first login uploads keys before anybody can write.
if (rig.vault.auth.creds.nextPreKeyId === 1) await makePreKeys(rig.vault, connection, 5);

await connection.keys.transaction(async () => {
  const bundle = await bundleOf(rig.vault, connection);
  const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
  say('bundle', {
    ...bundle,
    identityKey: hex(bundle.identityKey),
    signedPreKey: {
      ...bundle.signedPreKey,
      key: hex(bundle.signedPreKey.key),
      signature: hex(bundle.signedPreKey.signature),
    },
    preKey: { ...bundle.preKey, key: hex(bundle.preKey?.key ?? Buffer.alloc(0)) },
  });
}, 'a retry receipt');

async function handle({ id, from, type, ciphertext }: ChildInput): Promise<void> {
  const sealed = { type, ciphertext: Buffer.from(ciphertext, 'base64') };
  try {
    await receive(rig, connection, stanzaOf(id, from, sealed));
  } catch {
    say('refused', id);
    return;
  }
  say('receipt', id);
  const answer = await encryptFor(connection, from, `answer to ${id}`);
  const text = Buffer.from(answer.ciphertext).toString('base64');
  say('answer', { to: from, type: answer.type, ciphertext: text });
}

for await (const line of createInterface({ input: process.stdin })) await handle(JSON.parse(line));
await rig[Symbol.asyncDispose]();

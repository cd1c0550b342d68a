// A state.db that is lost with its newest WhatsApp keys: the gateway starts from a snapshot, whose keys are older, and
// people go on writing without a new link.

import { copyFile, rm, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startWhatsAppWorld } from '../support/whatsapp-gateway.ts';
import type { Contact } from '../support/whatsapp-server/contract.ts';

const WAIT_MS = 60_000;

async function ask(contact: Contact, nonce: string) {
  await contact.writes(`please say ${nonce}`);
  return contact.sees(({ text }) => text.includes(nonce), WAIT_MS);
}

it('answers with the WhatsApp keys of a snapshot after state.db was lost, and answers nothing twice', async () => {
  await using world = await startWhatsAppWorld();
  await world.link();
  const anna = await world.server.contact(world.phone);
  const ben = await world.server.contact(world.phone);
  await ask(anna, 'nonce-early');
  await world.gateway.stop();
  const state = join(world.home.path, 'state.db');
  await copyFile(state, `${state}.snapshot`);
  await world.start();
  await world.phone.online();
  // The keys move on with each message; Ben is not known to the snapshot at all.
  for (const nonce of ['nonce-1', 'nonce-2', 'nonce-3']) await ask(anna, nonce);
  await ask(ben, 'nonce-ben');
  await world.kill();
  await truncate(state, 0);
  for (const end of ['-wal', '-shm']) await rm(state + end, { force: true });
  await world.start();
  await world.phone.online(WAIT_MS);
  await ask(anna, 'nonce-late');
  await ask(ben, 'nonce-after');
  for (const nonce of ['nonce-early', 'nonce-1', 'nonce-2', 'nonce-3']) {
    expect(anna.seen.filter(({ text }) => text.includes(nonce))).toHaveLength(1);
  }
});

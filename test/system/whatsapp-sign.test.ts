// The sign on a question while it is worked on, from the whole program to the person in the chat.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { startWhatsAppWorld, type WhatsAppWorld } from '../support/whatsapp-gateway.ts';
import type { SeenMessage } from '../support/whatsapp-server/contract.ts';

const TIMEOUT_MS = 45_000;

let world: WhatsAppWorld;

beforeAll(async () => {
  world = await startWhatsAppWorld({ ackReaction: '👀' });
  await world.link();
});

afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

const isSign =
  (text: string, on: string) =>
  ({ message: { reactionMessage } }: SeenMessage) =>
    reactionMessage?.text === text && reactionMessage.key?.id === on;

it('stands there until the answer does, once, also over a crash', async () => {
  const anna = await world.server.contact(world.phone, { name: 'Anna' });
  const held = Promise.withResolvers<void>();
  world.model.respond(() => ({ chunks: ['nonce-answer'], gate: held.promise }));
  const question = await anna.writes('hello');
  await anna.sees(isSign('👀', question), TIMEOUT_MS);
  await world.kill();
  held.resolve();
  await world.start();
  await anna.sees(({ text }) => text === 'nonce-answer', TIMEOUT_MS);
  await anna.sees(isSign('', question), TIMEOUT_MS);
  expect(anna.seen).toHaveLength(3);
  const next = await anna.writes('and now');
  await anna.sees(isSign('', next), TIMEOUT_MS);
});

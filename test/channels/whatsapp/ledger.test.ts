// The durable inbound rows: what is kept, under which key, in which order, over restarts and damage.

import { type BinaryNode, encodeWAMessage, proto } from '@whiskeysockets/baileys';
import { describe, expect, it } from 'vitest';
import { type Ledger, openLedger } from '../../../src/channels/whatsapp/ledger.ts';
import type { KeyValueStore } from '../../../src/kernel/bus/store/store.ts';
import { silentLogger } from '../../../src/lib/logger.ts';
import { createMemoryStore } from '../../support/memory-host.ts';
import { createMovableClock, type MovableClock } from '../../support/movable-clock.ts';
import { OWN, rowsOf, stanzaOf } from './vault-rig.ts';

const BEN = '7000001@lid';
const BEN_NUMBER = '15550002@s.whatsapp.net';
const OWN_LID = '9000001@lid';

type Bench = {
  readonly state: KeyValueStore;
  readonly clock: MovableClock;
  readonly ledger: Ledger;
};

async function openBench(state = createMemoryStore()): Promise<Bench> {
  const clock = createMovableClock();
  const ledger = await openLedger({ state, clock, log: silentLogger, own: () => OWN });
  return { state, clock, ledger };
}

function stanza(id: string, attrs: Readonly<Record<string, string>> = {}) {
  const { from = BEN, ...others } = attrs;
  return stanzaOf(id, from, { type: 'msg', ciphertext: Buffer.from(`sealed ${id}`) }, others);
}

/** As the session repository stores a decrypted message. */
async function store(
  { ledger, state }: Bench,
  node: BinaryNode,
  message: proto.IMessage,
): Promise<number> {
  ledger.observe(node);
  const content = Array.isArray(node.content) ? node.content[0]?.content : undefined;
  if (!(content instanceof Uint8Array)) throw new Error('nothing to decrypt');
  const rows = ledger.rowsFor(content, encodeWAMessage(message));
  await state.setMany(rows);
  ledger.settled(content);
  if (rows.length > 0) ledger.stored();
  return rows.length;
}

const text = (conversation: string): proto.IMessage => ({ conversation });
const textsOf = async (ledger: Ledger) =>
  (await ledger.list(100)).map(({ message }) => message.conversation);

describe('a stored message', () => {
  it('says whose it is, where it belongs and when the server took it', async () => {
    const bench = await openBench();
    const attrs = { sender_pn: BEN_NUMBER, notify: 'Ben' };
    await store(bench, stanza('A1', attrs), text('hello'));
    const [row] = await bench.ledger.list(10);
    expect(row).toMatchObject({
      key: { remoteJid: BEN, remoteJidAlt: BEN_NUMBER, fromMe: false, id: 'A1' },
      sentAt: 1_790_000_000_000,
      receivedAt: bench.clock.now(),
      pushName: 'Ben',
      message: { conversation: 'hello' },
    });
    expect(row?.key).not.toHaveProperty('participant');
  });

  it('of a group names its author by both addresses', async () => {
    const bench = await openBench();
    const attrs = { from: '120363@g.us', participant: BEN, participant_pn: BEN_NUMBER };
    await store(bench, stanza('G1', attrs), text('all'));
    const [row] = await bench.ledger.list(10);
    expect(row?.key).toEqual({
      remoteJid: '120363@g.us',
      fromMe: false,
      id: 'G1',
      participant: BEN,
      participantAlt: BEN_NUMBER,
    });
  });

  it("that the owner typed on the phone never takes the owner's number for the chat's", async () => {
    const bench = await openBench();
    const typed = { from: OWN_LID, recipient: BEN, sender_pn: '15550001@s.whatsapp.net' };
    const wrapped = { deviceSentMessage: { destinationJid: BEN, message: text('by hand') } };
    await store(bench, stanza('P1', typed), wrapped);
    await store(bench, stanza('P2', { ...typed, recipient_pn: BEN_NUMBER }), wrapped);
    const [first, second] = await bench.ledger.list(10);
    expect(first?.key).toEqual({ remoteJid: BEN, fromMe: true, id: 'P1' });
    expect(second?.key).toMatchObject({ remoteJid: BEN, remoteJidAlt: BEN_NUMBER });
    expect(first?.message.conversation).toBe('by hand');
  });

  it('is not lost because our device could not read it and the phone sent it again', async () => {
    const bench = await openBench();
    const info = proto.WebMessageInfo.encode({
      key: { remoteJid: BEN, id: 'LOST', fromMe: false },
      message: text('from the phone'),
      messageTimestamp: 1_780_000_000,
    }).finish();
    const { Type } = proto.Message.ProtocolMessage;
    const answer: proto.IMessage = {
      protocolMessage: {
        type: Type.PEER_DATA_OPERATION_REQUEST_RESPONSE_MESSAGE,
        peerDataOperationRequestResponseMessage: {
          peerDataOperationResult: [
            { placeholderMessageResendResponse: { webMessageInfoBytes: info } },
          ],
        },
      },
    };
    expect(await store(bench, stanza('X1'), answer)).toBe(0);
    const fromPhone = stanza('X2', { from: OWN_LID, category: 'peer' });
    expect(await store(bench, fromPhone, answer)).toBe(1);
    const [row] = await bench.ledger.list(10);
    expect(row).toMatchObject({ key: { id: 'LOST', remoteJid: BEN }, sentAt: 1_780_000_000_000 });
    expect(row?.message.conversation).toBe('from the phone');
  });
});

describe('what is kept', () => {
  const { Type } = proto.Message.ProtocolMessage;
  const edit = { type: Type.MESSAGE_EDIT, editedMessage: text('new') };
  const kept: Readonly<Record<string, proto.IMessage>> = {
    'an edit': { editedMessage: { message: { protocolMessage: edit } } },
    'an edit without its container': { protocolMessage: edit },
    'a picture': { imageMessage: { caption: 'see' } },
    'a disappearing text': { ephemeralMessage: { message: text('gone soon') } },
    'a picture shown once': { viewOnceMessageV2: { message: { imageMessage: {} } } },
    'a file with a caption': {
      documentWithCaptionMessage: { message: { documentMessage: { caption: 'read' } } },
    },
    'a revocation': { protocolMessage: { type: Type.REVOKE, key: { id: 'A0' } } },
    'a reaction': { reactionMessage: { key: { id: 'A0' }, text: '👍' } },
    'a text with a key beside it': { conversation: 'x', senderKeyDistributionMessage: {} },
  };
  const passed: Readonly<Record<string, proto.IMessage>> = {
    'a revocation of nothing': { protocolMessage: { type: Type.REVOKE } },
    'a reaction to nothing': { reactionMessage: { text: '👍' } },
    'a reaction by words': { reactionMessage: { key: { id: 'A0' }, text: 'obey' } },
    'another protocol message': {
      protocolMessage: { type: Type.EPHEMERAL_SETTING, key: { id: 'A0' } },
    },
    'a key for a group': { senderKeyDistributionMessage: { groupId: '1@g.us' } },
    'a vote': { pollUpdateMessage: {} },
  };
  for (const [name, message] of Object.entries(kept)) {
    it(`is ${name}`, async () => {
      expect(await store(await openBench(), stanza('A1'), message)).toBe(1);
    });
  }
  for (const [name, message] of Object.entries(passed)) {
    it(`is not ${name}`, async () => {
      expect(await store(await openBench(), stanza('A1'), message)).toBe(0);
    });
  }

  it('is not a status that everybody gets', async () => {
    const bench = await openBench();
    const status = stanza('S1', { from: 'status@broadcast', participant: BEN });
    expect(await store(bench, status, text('my day'))).toBe(0);
  });

  it('is never a message without a stanza: nobody could tell whose it is', async () => {
    const { ledger } = await openBench();
    const plaintext = encodeWAMessage(text('whose?'));
    expect(() => ledger.rowsFor(Buffer.from('unseen'), plaintext)).toThrow('no stanza was seen');
  });
});

describe('the waiting rows', () => {
  it('come in the order they arrived, and go on in it after a restart', async () => {
    const state = createMemoryStore();
    const first = await openBench(state);
    for (const id of ['one', 'two', 'three']) await store(first, stanza(id), text(id));
    const [one, two, three] = await first.ledger.list(10);
    await first.ledger.remove([one, two, three].map((row) => row?.arrival ?? ''));
    expect(await first.ledger.list(10)).toEqual([]);

    const second = await openBench(state);
    await store(second, stanza('four'), text('four'));
    const [four] = await second.ledger.list(10);
    expect((four?.arrival ?? '') > (three?.arrival ?? '')).toBe(true);
  });

  it('keep their order when rows are taken out of it', async () => {
    const state = createMemoryStore();
    const first = await openBench(state);
    for (const id of ['one', 'two']) await store(first, stanza(id), text(id));
    const [one, two] = await first.ledger.list(10);
    await first.ledger.remove([two?.arrival ?? '']);
    const second = await openBench(state);
    await second.ledger.remove([one?.arrival ?? '']);
    const third = await openBench(state);
    await store(third, stanza('three'), text('three'));
    const [three] = await third.ledger.list(10);
    expect((three?.arrival ?? '') > (two?.arrival ?? '')).toBe(true);
  });

  it('are read past a damaged one, which is set aside', async () => {
    const bench = await openBench();
    for (const id of ['one', 'two', 'three', 'four']) await store(bench, stanza(id), text(id));
    await bench.state.set('inbox/000000000000001', '{"v":1,"key":{"id":');
    await bench.state.set('inbox/000000000000003', '{"v":1}');
    const texts = (await bench.ledger.list(2)).map(({ message }) => message.conversation);
    expect(texts).toEqual(['two', 'four']);
    expect([...(await rowsOf(bench.state, 'inbox-damaged/')).keys()]).toEqual([
      'inbox-damaged/000000000000001',
      'inbox-damaged/000000000000003',
    ]);
    expect(await textsOf(bench.ledger)).toEqual(['two', 'four']);
  });

  it('wake whoever waits for them', async () => {
    const bench = await openBench();
    const { signal } = new AbortController();
    const waiting = bench.ledger.arrival(signal);
    await store(bench, stanza('one'), text('one'));
    await waiting;
    await store(bench, stanza('two'), text('two'));
    await bench.ledger.arrival(signal);
    const stop = new AbortController();
    const nothing = bench.ledger.arrival(stop.signal);
    stop.abort(new Error('stopped'));
    await expect(nothing).rejects.toThrow('stopped');
  });
});

describe('the watch over undelivered stanzas', () => {
  it('tells how long nothing came of any of them', async () => {
    const bench = await openBench();
    const { ledger, clock } = bench;
    expect(ledger.stalledMs()).toBeUndefined();
    ledger.observe(stanza('stuck'));
    await clock.advance(7_000);
    expect(ledger.stalledMs()).toBe(7_000);
    await store(bench, stanza('through'), text('through'));
    await clock.advance(2_000);
    expect(ledger.stalledMs()).toBe(2_000);
    ledger.disconnected();
    expect(ledger.stalledMs()).toBeUndefined();
  });

  it('does not wait for what Baileys never decrypts', async () => {
    const { ledger } = await openBench();
    const content = Buffer.from('x');
    ledger.observe({ tag: 'message', attrs: { id: 'N', from: BEN }, content: [] });
    ledger.observe({
      tag: 'message',
      attrs: { id: 'M', from: BEN },
      content: [{ tag: 'enc', attrs: { type: 'msmsg' }, content }],
    });
    ledger.observe({
      tag: 'message',
      attrs: { id: 'B', from: BEN, recipient: '7000009@lid' },
      content: [{ tag: 'enc', attrs: { type: 'msg' }, content }],
    });
    expect(ledger.stalledMs()).toBeUndefined();
  });
});

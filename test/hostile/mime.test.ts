// More than 500 mails as strangers send them, through the parsing thread and every rule behind it: none
// breaks or blocks the program, none makes somebody of a forger, no machine gets an answer, and what a
// person wrote is what the agent reads. Cases E12 to E24 of the catalogue.

import { dkimSign } from 'mailauth/lib/dkim/sign.js';
import { afterAll, describe, expect, it } from 'vitest';
import { readIncoming } from '../../src/channels/email/inbound.ts';
import { extractFiles } from '../../src/channels/email/mail-files.ts';
import { MailReader } from '../../src/channels/email/mail-reader.ts';
import { MailRegister } from '../../src/channels/email/mail-register.ts';
import { parseHeaderBlock } from '../../src/channels/email/rules/address.ts';
import { admit } from '../../src/kernel/access/admission.ts';
import { channelName, DEFAULT_ACCOUNT } from '../../src/kernel/message/ids.ts';
import { splitHeader } from '../../src/lib/mail/raw-mail.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { watchStretches } from '../support/cpu-time.ts';
import { signingKey, testLookup } from '../support/mail-servers-host.ts';
import { AGENT } from '../support/mailbox-config.ts';
import { createMemoryStore } from '../support/memory-host.ts';
import {
  bombSamples,
  brokenSamples,
  charsetSamples,
  fileSamples,
  forgedSamples,
  hiddenSamples,
  machineSamples,
  mailOf,
  quotingSamples,
  type Sample,
  withFilesOf,
} from './mime-samples.ts';

const BOSS = 'boss@person.test';
/** The parsing thread may have 256 MB of heap; mails and the test's own samples come beside it. */
const MAX_GROWTH_BYTES = 600_000_000;
const MAX_LEAK_BYTES = 150_000_000;
/** Of processor time: the two cores of a test machine may be busy. */
const MAX_BLOCKED_MS = 1500;
const MAX_MAIL_MS = 30_000;

const reader = new MailReader({ clock: systemClock, lookup: testLookup });
const stretches = watchStretches();
const rssBefore = process.memoryUsage.rss();
let uid = 0;

/** What the channel hands over of a mail. */
async function arrive(raw: Buffer) {
  uid += 1;
  const receivedAt = Date.UTC(2026, 0, 15, 12, 5);
  const arrival = {
    ...{ uidValidity: '1', receivedAt, reading: await reader.read(raw) },
    summary: { uid, bytes: raw.length, arrivedAtMs: receivedAt, idFields: `${uid}` },
    headers: parseHeaderBlock(splitHeader(raw).block),
    ...{ tries: 0, isLast: true },
  };
  // Nothing of an earlier mail counts: the same words again would be a reason not to answer.
  const register = await MailRegister.open(createMemoryStore());
  const config = { acceptUnverified: false, quoteOriginal: true, authservId: '' };
  const incoming = await readIncoming(arrival, {
    ...{ at: { channel: channelName('email'), account: DEFAULT_ACCOUNT }, register },
    config: { ...config, replyAll: 'never' },
    ...{ account: { own: [AGENT] }, ours: () => [AGENT], allowFrom: () => [BOSS] },
    host: { answers: async () => true, isTrusted: async () => false },
  });
  if (incoming === 'unproven yet') throw new Error('the last look settles it');
  return incoming.entry;
}

async function textOf(raw: Buffer): Promise<string> {
  const entry = await arrive(raw);
  expect(entry).toMatchObject({ kind: 'queue' });
  return entry.message.text;
}

const GATE = {
  ...{ allowFrom: [BOSS], owners: [], role: undefined, acceptUnverified: false },
  strangers: 'closed',
} as const;

afterAll(() => {
  stretches.stop();
  return reader[Symbol.asyncDispose]();
});

const named = <T extends Sample>(samples: readonly T[]) =>
  samples.map((sample) => [sample.name, sample] as const);

function expectText({ text, contains, lacks }: Sample, found: string): void {
  if (text !== undefined) expect(found.trim()).toBe(text);
  if (contains !== undefined) expect(found).toContain(contains);
  if (lacks !== undefined) expect(found).not.toContain(lacks);
}

describe('the words of a mail arrive', () => {
  it.each(named(charsetSamples()))('%s', async (_, sample) => {
    expectText(sample, await textOf(sample.raw));
  });
  it.each(named(quotingSamples()))('%s', async (_, sample) => {
    expectText(sample, await textOf(sample.raw));
  });
});

describe('what a person does not see, the agent does not read', () => {
  it.each(named(hiddenSamples()))('%s', async (_, sample) => {
    expectText(sample, await textOf(sample.raw));
  });
});

describe('a broken mail breaks nothing', () => {
  it.each(named(brokenSamples()))('%s', async (_, sample) => {
    const { message } = await arrive(sample.raw);
    expect(message.text).not.toContain('\u0000');
    expect(message.text.isWellFormed()).toBe(true);
  });
});

describe('a bomb is read within its limits or named', () => {
  it.each(named(bombSamples()))(
    '%s',
    async (_, sample) => {
      const began = performance.now();
      const { message } = await arrive(sample.raw);
      expect(performance.now() - began).toBeLessThan(MAX_MAIL_MS);
      expect(message.text.length).toBeLessThan(150_000);
    },
    60_000,
  );
});

describe('nobody becomes the boss by', () => {
  it.each(named(forgedSamples()))('%s', async (_, sample) => {
    const entry = await arrive(sample.raw);
    if (entry.kind === 'record') return;
    expect(entry.message.sender).toMatchObject({ verified: 'unverified' });
    expect(admit(entry.message, GATE).kind).toBe('refuse');
  });

  it('anything but a signature of the boss’s own domain', async () => {
    const raw = mailOf(['Subject: Do it'], 'please', `From: ${BOSS}`);
    const signed = await dkimSign(raw, { ...signing, signatureData: [signing] });
    const entry = await arrive(Buffer.concat([Buffer.from(signed.signatures), raw]));
    expect(entry.message.sender).toMatchObject({ id: BOSS, verified: 'verified' });
    expect(admit(entry.message, GATE)).toEqual({ kind: 'admit', role: 'trusted' });
  });
});

const signing = {
  signingDomain: signingKey.domainName,
  selector: signingKey.keySelector,
  privateKey: signingKey.privateKey,
};

describe('a machine is never answered:', () => {
  it.each(named(machineSamples()))('%s', async (_, sample) => {
    expect((await arrive(sample.raw)).kind).toBe('record');
  });
});

describe('a file comes along under a name that is only shown:', () => {
  it.each(named(fileSamples()))('%s', async (_, sample) => {
    const { message } = await arrive(sample.raw);
    expectText(sample, message.text);
    const [attachment, ...more] = message.attachments ?? [];
    expect(more).toEqual([]);
    expect(attachment?.content).toMatchObject({ kind: 'remote' });
    expect(attachment?.name ?? '').not.toMatch(/[\r\n]/);
  });

  it('and has its content, whatever the name', async () => {
    const samples = fileSamples();
    expect(await contentsOf(withFilesOf(samples))).toEqual(samples.map(({ content }) => content));
  });
});

/** What the thread reads of a mail's files. */
async function contentsOf(raw: Buffer): Promise<readonly string[]> {
  const found = await extractFiles(raw, systemClock, AbortSignal.timeout(MAX_MAIL_MS));
  const texts: string[] = [];
  for (let index = 0; found.has(index); index += 1) {
    texts.push(Buffer.concat(await Array.fromAsync(found.read(index))).toString('utf8'));
  }
  found.close();
  return texts;
}

describe('after all of them', () => {
  it('there were more than 500, the program was never blocked, and its memory is bounded', async () => {
    const after = process.memoryUsage.rss();
    expect(uid).toBeGreaterThan(500);
    expect(stretches.longestMs()).toBeLessThan(MAX_BLOCKED_MS);
    expect(after - rssBefore).toBeLessThan(MAX_GROWTH_BYTES);
    for (const { raw } of bombSamples()) await arrive(raw);
    expect(process.memoryUsage.rss() - after).toBeLessThan(MAX_LEAK_BYTES);
  });
});

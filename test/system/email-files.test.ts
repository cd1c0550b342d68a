// Files that come with a mail and go out with its answer, through real servers and the whole program.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { simpleParser } from 'mailparser';
import sharp from 'sharp';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { docx } from '../media/documents.ts';
import { type GatewayProcess, makeTestHome, type TestHome } from '../support/gateway-process.ts';
import { callTools, type LlmServer, say, startLlmServer } from '../support/llm-server.ts';
import { describeWithMail, type MailServers, startMailServers } from '../support/mail-servers.ts';
import { sendAsPerson, withMailbox } from '../support/mail-servers-host.ts';
import { mailboxAt } from '../support/mailbox-config.ts';

const WAIT_MS = 45_000;
const ANNA = 'anna@person.test';
const PROVEN = { 'Authentication-Results': 'mx.test; dmarc=pass header.from=person.test' };

describeWithMail('the files of mails', () => {
  let servers: MailServers;
  let model: LlmServer;
  let home: TestHome;
  let gateway: GatewayProcess;

  beforeAll(async () => {
    servers = await startMailServers();
    model = await startLlmServer({ respond: () => say('Seen.') });
    home = await makeTestHome({
      gateway: { port: 0 },
      agents: { defaults: { model: 'openai/gpt-5' } },
      providers: { openai: { apiKey: 'sk-mail-files', apiBase: model.openaiBase } },
      channels: {
        email: {
          ...mailboxAt(servers),
          allowFrom: [ANNA],
          authservId: 'mx.test',
        },
      },
    });
    gateway = await home.start();
    await following(gateway);
  });
  afterAll(async () => {
    await home?.[Symbol.asyncDispose]();
    await model?.[Symbol.asyncDispose]();
    await servers?.[Symbol.asyncDispose]();
  });

  it('show the model the document, the forwarded mail and the picture, and not the logo of the signature', async () => {
    const photo = await sharp({
      create: { width: 900, height: 600, channels: 3, background: 'red' },
    })
      .png({ compressionLevel: 0 })
      .toBuffer();
    const logo = await sharp({ create: { width: 8, height: 8, channels: 3, background: 'blue' } })
      .png()
      .toBuffer();
    await sendAsPerson(servers, {
      from: ANNA,
      subject: 'The plan',
      html: '<p>See the plan <img src="cid:photo"> and <img src="cid:logo"></p>',
      headers: PROVEN,
      isSigned: false,
      attachments: [
        { filename: 'plan.docx', content: Buffer.from(docx(['Meet at the harbour at nine.'])) },
        {
          filename: 'offer.eml',
          content: Buffer.from(
            'From: Bo <bo@shop.test>\r\nDate: Mon, 2 Mar 2026 10:00:00 +0000\r\nSubject: Offer\r\nContent-Transfer-Encoding: base64\r\n\r\nQSBib2F0IGZvciA5MCBldXJvcw==\r\n',
          ),
        },
        { filename: 'photo.png', content: photo, cid: 'photo' },
        { filename: 'logo.png', content: logo, cid: 'logo' },
      ],
    });
    await model.received(1);
    const asked = model.requests.at(-1);
    expect(asked?.lastUserText).toContain('Meet at the harbour at nine.');
    expect(asked?.lastUserText).toContain('plan.docx');
    expect(asked?.lastUserText).toMatch(/From: "Bo" <bo@shop\.test>.*\n\nA boat for 90 euros/s);
    expect(asked?.lastUserText).toMatch(/inline image, not read: logo\.png/);
    expect(asked?.images).toHaveLength(1);
    await arrived(servers, ANNA, 1);
  });

  it('go out with the answer, under their own names', async () => {
    await mkdir(join(home.path, 'workspace'), { recursive: true });
    await writeFile(join(home.path, 'workspace', 'Übersicht.csv'), 'a,b\n1,2\n');
    model.respond((request) =>
      request.toolResults.length > 0
        ? say('Here it is.')
        : callTools({
            name: 'send_file',
            arguments: { paths: ['Übersicht.csv'], caption: 'The table' },
          }),
    );
    await sendAsPerson(servers, {
      from: ANNA,
      subject: 'The table',
      text: 'Send me the table, please.',
      headers: PROVEN,
      isSigned: false,
    });
    const mails = await arrived(servers, ANNA, 2);
    const parsed = await Promise.all(mails.slice(1).map((raw) => simpleParser(raw)));
    const files = parsed.flatMap(({ attachments }) => attachments);
    expect(files.map(({ filename, content }) => [filename, content.toString()])).toEqual([
      ['Übersicht.csv', 'a,b\n1,2\n'],
    ]);
    expect(parsed[0]?.text).toContain('Übersicht.csv: The table');
  });
});

async function following({ address, credentials: headers }: GatewayProcess): Promise<void> {
  const late = AbortSignal.timeout(WAIT_MS);
  for (;;) {
    const response = await fetch(`${address}/readyz`, { headers, signal: late });
    if (/"email".*"running"/s.test(await response.text())) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

const count = (servers: MailServers, address: string) =>
  withMailbox(servers, address, 'INBOX', async (client) =>
    client.mailbox === false ? 0 : client.mailbox.exists,
  );

async function arrived(servers: MailServers, address: string, expected: number) {
  const late = AbortSignal.timeout(WAIT_MS);
  while ((await count(servers, address)) < expected) {
    late.throwIfAborted();
    await servers.settle();
  }
  return withMailbox(servers, address, 'INBOX', async (client) => {
    const mails = await client.fetchAll('1:*', { source: true });
    return mails.map(({ source }) => source ?? Buffer.alloc(0));
  });
}

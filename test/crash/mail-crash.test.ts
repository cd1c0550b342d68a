// The process dies while mail and Telegram messages are in flight, with real Dovecot and Postfix at
// the other end: every mail gets one answer, every Telegram message one.

import { existsSync, watch } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type BotApi, startBotApi } from '../support/bot-api.ts';
import { type GatewayProcess, makeTestHome, type TestHome } from '../support/gateway-process.ts';
import { echo, type LlmServer, startLlmServer } from '../support/llm-server.ts';
import { describeWithMail, type MailServers, startMailServers } from '../support/mail-servers.ts';
import { mailsIn, sendAsPerson } from '../support/mail-servers-host.ts';
import { mailboxAt } from '../support/mailbox-config.ts';
import { laterBy } from '../support/shifted-clock.ts';

const ANSWER_TIMEOUT_MS = 60_000;
/** So long a mail of which it is not known whether it was taken is looked for, and then sent again. */
const IN_DOUBT_MS = 10 * 60_000;
const CHAT = 901;

describeWithMail('kill -9 with mail and Telegram in flight', () => {
  let servers: MailServers;
  let telegram: BotApi;
  let model: LlmServer;
  let home: TestHome;
  let gateway: GatewayProcess;

  beforeAll(async () => {
    servers = await startMailServers();
    telegram = await startBotApi();
    model = await startLlmServer({ respond: echo });
    home = await makeTestHome({
      agents: { defaults: { model: 'openai/sim-1' } },
      providers: { openai: { apiKey: 'crash-test-key', apiBase: model.openaiBase } },
      gateway: { port: 0 },
      coalesce: { quietMs: 50 },
      limits: { messages: { perMinute: 0, perDay: 0 } },
      channels: {
        telegram: {
          enabled: true,
          token: telegram.token,
          apiRoot: telegram.apiRoot,
          allowFrom: ['*'],
        },
        email: {
          ...mailboxAt(servers),
          allowFrom: ['*'],
          acceptUnverified: true,
          pollSecs: 5,
        },
      },
    });
    gateway = await home.start();
    await mailboxFollowed();
  });

  afterAll(async () => {
    await home?.[Symbol.asyncDispose]();
    await telegram?.[Symbol.asyncDispose]();
    await model?.[Symbol.asyncDispose]();
    await servers?.[Symbol.asyncDispose]();
  });

  /** Mail from before the first look at the mailbox is never answered. */
  async function mailboxFollowed() {
    const late = AbortSignal.timeout(45_000);
    for (;;) {
      const response = await fetch(`${gateway.address}/readyz`, {
        headers: gateway.credentials,
        signal: late,
      });
      if (/"email".*"running"/s.test(await response.text())) return;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  const addressOf = (stage: string, index: number) => `${stage}${index}@person.test`;
  const nonceOf = (stage: string, index: number) => `nonce-${stage}${index}`;

  async function write(stage: string) {
    for (const index of [1, 2]) {
      const from = addressOf(stage, index);
      const text = `please repeat ${nonceOf(stage, index)}`;
      await sendAsPerson(servers, { from, subject: `Stage ${stage}`, text, isSigned: false });
    }
    telegram.say(CHAT, `please repeat ${nonceOf(stage, 9)}`);
  }

  /** Resolves with every answer that lies in the person's mailbox, as soon as there is one. */
  async function answersTo(address: string): Promise<readonly string[]> {
    const folder = join(servers.maildir(address), 'new');
    const late = AbortSignal.timeout(ANSWER_TIMEOUT_MS);
    for (;;) {
      const mails = await mailsIn(servers, address);
      if (mails.length > 0) return mails;
      late.throwIfAborted();
      await nextChange(folder, late);
    }
  }

  const stages: Readonly<Record<string, () => Promise<unknown>>> = {
    arrived: () => servers.settle(),
    asked: () => model.received(model.requests.length + 1),
    answered: () => telegram.nextMessage(CHAT),
    sending: async () => {
      await model.received(model.requests.length + 2);
      await new Promise((resolve) => setImmediate(resolve));
    },
  };

  let shiftMs = 0;
  /** Starts the gateway again, later where the kill has cut off a mail that was being sent. */
  async function startAgain() {
    await servers.settle();
    using database = new DatabaseSync(join(home.path, 'state.db'), { readOnly: true });
    const sql = "SELECT body ->> '$.chat.chat' AS person FROM outbound WHERE state = 'sending'";
    for (const { person } of database.prepare(sql).all()) {
      const isMail = String(person).includes('@');
      if (isMail && (await mailsIn(servers, String(person))).length === 0) shiftMs += IN_DOUBT_MS;
    }
    gateway = await home.start(laterBy(shiftMs));
  }

  it.each(Object.keys(stages))(
    'answers everything once when it died as a mail was %s',
    async (stage) => {
      const moment = stages[stage]?.();
      await write(stage);
      await moment;
      await gateway.kill();
      await startAgain();
      for (const index of [1, 2]) {
        const mails = await answersTo(addressOf(stage, index));
        const answers = mails.filter((mail) => mail.includes(nonceOf(stage, index)));
        expect(answers).toHaveLength(1);
      }
      const isAnswer = (text: string) => text.includes(nonceOf(stage, 9));
      await telegram.waitFor(() =>
        telegram.chat(CHAT).messages.find(({ from, text }) => from === 'bot' && isAnswer(text)),
      );
    },
  );

  it('has doubled nothing by the end', async () => {
    for (const stage of Object.keys(stages)) {
      for (const index of [1, 2]) {
        expect(await mailsIn(servers, addressOf(stage, index))).toHaveLength(1);
      }
    }
    expect(telegram.violations).toEqual([]);
  });
});

/** The next change of a folder; a quiet second counts as one: the folder comes with its first mail. */
function nextChange(folder: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const done = () => {
      watcher?.close();
      clearTimeout(timer);
      resolve();
    };
    const watcher = existsSync(folder) ? watch(folder, { persistent: false }, done) : undefined;
    const timer = setTimeout(done, 1000);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

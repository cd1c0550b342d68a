// An owner asks by Telegram for a mail, presses Send below it, and it lies in the mailbox of whom it is
// for: once, under its subject. The whole program between a Bot API and a real mail server.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { runNanobot } from '../cli/run-nanobot.ts';
import { type BotApi, startBotApi } from '../support/bot-api.ts';
import { type GatewayProcess, makeTestHome, type TestHome } from '../support/gateway-process.ts';
import { type LlmServer, startLlmServer } from '../support/llm-server.ts';
import { describeWithMail, type MailServers, startMailServers } from '../support/mail-servers.ts';
import { mailsIn } from '../support/mail-servers-host.ts';
import { mailboxAt } from '../support/mailbox-config.ts';

const WAIT_MS = 45_000;
const OWNER = 900;
const ANNA = 'draft-anna@person.test';

describeWithMail('a mail that an owner asks for by Telegram', () => {
  let servers: MailServers;
  let telegram: BotApi;
  let model: LlmServer;
  let home: TestHome;
  let gateway: GatewayProcess;

  const hears = (pattern: RegExp) =>
    telegram.waitFor(
      () =>
        telegram
          .chat(OWNER)
          .messages.find(({ from, text }) => from === 'bot' && pattern.test(text)),
      WAIT_MS,
    );

  beforeAll(async () => {
    servers = await startMailServers();
    telegram = await startBotApi();
    model = await startLlmServer({
      respond({ lastUserText, toolResults }) {
        if (lastUserText.startsWith('[An owner sent')) return { chunks: ['It is on its way.'] };
        if (toolResults.length > 0) return { chunks: ['Please look at it.'] };
        const input = { to: ANNA, subject: 'Lunch on Friday – grüß dich', body: '**Noon**?' };
        return { toolCalls: [{ name: 'send_email', arguments: input }] };
      },
    });
    const { token, apiRoot } = telegram;
    home = await makeTestHome({
      agents: { defaults: { model: 'openai/sim-1' } },
      providers: { openai: { apiKey: 'draft-mail-key', apiBase: model.openaiBase } },
      channels: {
        telegram: { enabled: true, token, apiRoot },
        email: {
          ...mailboxAt(servers),
          allowFrom: ['somebody@person.test'],
        },
      },
      gateway: { port: 0 },
      coalesce: { quietMs: 50 },
    });
    gateway = await home.start();
    const args = ['pair', 'approve', 'telegram', `${OWNER}`, '--role', 'owner'];
    expect(await runNanobot(args, { home: home.path })).toMatchObject({ code: 0 });
  });

  afterAll(async () => {
    await home?.[Symbol.asyncDispose]();
    await telegram?.[Symbol.asyncDispose]();
    await model?.[Symbol.asyncDispose]();
    await servers?.[Symbol.asyncDispose]();
  });

  it('arrives once after Send, under its subject, also where the press comes again after a kill', async () => {
    telegram.say(OWNER, 'ask Anna to lunch');
    const { text } = await hears(/Send this mail/);
    expect(text).toContain(`Send this mail to ${ANNA} (email)?`);
    expect(text).toContain('Subject: Lunch on Friday – grüß dich');
    await hears(/Please look at it/);
    expect(await mailsIn(servers, ANNA)).toEqual([]);
    const press = telegram.press(OWNER, OWNER, 'Send');
    await hears(/Sent\.$/);
    await expect.poll(() => mailsIn(servers, ANNA), { timeout: WAIT_MS }).toHaveLength(1);
    await gateway.kill();
    gateway = await home.start();
    const query = press['callback_query'] as object;
    telegram.offer({ callback_query: { ...query, id: '4713' } });
    await hears(/It is on its way/);
    await hears(/can no longer be answered/);
    await servers.settle();
    const [mail = '', ...more] = await mailsIn(servers, ANNA);
    expect(more).toEqual([]);
    expect(mail).toMatch(/^Subject: =\?UTF-8\?Q\?Lunch_on_Friday/im);
    expect(mail).toMatch(new RegExp(`^To: ${ANNA}\r$`, 'm'));
    expect(mail).toContain('<strong>Noon</strong>');
  });
});

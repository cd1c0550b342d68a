// `nanobot agent`: one question from a script, with and without a running gateway.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeTestHome, type TestHome } from '../support/gateway-process.ts';
import { callTools, fail, type LlmServer, say, startLlmServer } from '../support/llm-server.ts';
import { runNanobot } from './run-nanobot.ts';

let server: LlmServer;
let home: TestHome;

const ask = (...args: string[]) => runNanobot(['agent', ...args], { home: home.path });

beforeAll(async () => {
  server = await startLlmServer();
  home = await makeTestHome({
    version: 1,
    agents: { defaults: { model: 'local/sim' } },
    providers: { local: { apiBase: server.openaiBase } },
    retry: { providerAttempts: 0 },
    gateway: { port: 0 },
  });
});
afterAll(async () => {
  await home[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

describe('without a gateway', () => {
  test('stdout holds the answer and nothing else', async () => {
    server.script(say('Forty-two, **precisely**.'));
    const { code, stdout } = await ask('-m', 'The answer?');
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'Forty-two, **precisely**.\n' });
  });

  test('what the agent does is told on stderr', async () => {
    server.script(callTools({ name: 'time', arguments: {} }), say('Late.'));
    const { code, stdout, stderr } = await ask('-m', 'What time is it?');
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'Late.\n' });
    expect(stderr).toContain('✓ time');
  });

  test('a model that fails is an exit code, not an answer', async () => {
    server.script(fail(401));
    const { code, stdout, stderr } = await ask('-m', 'Hello?');
    expect({ code, stdout }).toEqual({ code: 7, stdout: '' });
    expect(stderr.trim()).not.toBe('');
    server.takeComplaints();
  });

  test('the next question remembers the last one, another session does not', async () => {
    server.script(say('Noted.'), say('Blue.'), say('No idea.'));
    await ask('-m', 'My colour is blue.', '-s', 'one');
    await ask('-m', 'Which colour?', '-s', 'one');
    await ask('-m', 'Which colour?', '-s', 'two');
    const [, remembering, other] = server.requests.slice(-3).map((one) => JSON.stringify(one));
    expect(remembering).toContain('My colour is blue.');
    expect(other).not.toContain('My colour is blue.');
  });

  test('a question may come on standard input', async () => {
    server.script(say('Read.'));
    const { stdout } = await runNanobot(['agent', '-m', '-'], {
      home: home.path,
      input: 'long\ntext',
    });
    expect(stdout).toBe('Read.\n');
    expect(server.requests.at(-1)?.lastUserText).toContain('long\ntext');
  });

  test('lines on standard input are one conversation', async () => {
    server.script(say('One.'), say('Two.'));
    const { code, stdout } = await runNanobot(['agent', '-s', 'lines'], {
      home: home.path,
      input: 'first\nsecond\n/exit\nnever asked\n',
    });
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'One.\nTwo.\n' });
  });

  test('a question of a pipe that got no answer is an exit code too', async () => {
    server.script(fail(401), say('Two.'));
    const input = 'first\nsecond\n';
    const { code, stdout } = await runNanobot(['agent', '-s', 'piped'], { home: home.path, input });
    expect({ code, stdout }).toEqual({ code: 7, stdout: 'Two.\n' });
    server.takeComplaints();
  });

  test.each([
    ['an empty question', ['-m', ' ']],
    ['a session name with a path in it', ['-m', 'x', '-s', '../x']],
  ])('%s is a usage error', async (_name, args) => {
    expect((await ask(...args)).code).toBe(2);
  });
});

describe('with a gateway', () => {
  test('attaches to it, and both see the same conversation', async () => {
    const gateway = await home.start();
    server.script(say('From the gateway.'));
    const { code, stdout } = await ask('-m', 'Who answers?', '-s', 'attached');
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'From the gateway.\n' });
    const status = await runNanobot(['status', '--json'], { home: home.path });
    expect(JSON.parse(status.stdout)).toMatchObject({
      gateway: { address: gateway.address },
      model: 'local/sim',
    });
    const second = await runNanobot(['gateway'], { home: home.path });
    expect(second.code).toBe(4);
    expect(second.stderr).toContain(`process ${JSON.parse(status.stdout).gateway.pid}`);
    expect(await gateway.stop()).toBe(0);
  });
});

test('every model call was expected', () => {
  server.assertDone();
});

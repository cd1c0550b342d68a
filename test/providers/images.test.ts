// Images on their way to a model: what the service really receives, in both dialects.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { imagesTokens, seesImages } from '../../src/agent/rules/tokens.ts';
import { type ConfigInput, configSchema } from '../../src/kernel/config/config.ts';
import type { AttachedMedia } from '../../src/kernel/message/attachment.ts';
import { callId, mediaId } from '../../src/kernel/message/ids.ts';
import type { ModelMessage } from '../../src/kernel/message/transcript.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { createModelRegistry } from '../../src/providers/registry.ts';
import { fail, type LlmServer, say, startLlmServer } from '../support/llm-server.ts';
import { ask, finish, TEST_KEY } from './provider-setup.ts';

let server: LlmServer;
beforeEach(async () => {
  server = await startLlmServer({ respond: () => say('seen') });
});
afterEach(async () => {
  server.assertDone();
  await server[Symbol.asyncDispose]();
});

const DAMAGED = 'dd';
const HUGE = 'ee';
const LARGEST = 'A'.repeat(4_900_000);
const image = (byte: string, name?: string): AttachedMedia => ({
  media: mediaId(byte.repeat(32)),
  kind: 'image',
  mimeType: 'image/heic',
  ...(name === undefined ? {} : { name }),
});
const pictureOf = (id: string) => Buffer.from(`picture ${id.slice(0, 2)}`).toString('base64');

function resolve(model: string, config: ConfigInput = {}) {
  const loaded: string[] = [];
  const registry = createModelRegistry({
    config: configSchema.parse({
      ...config,
      providers: {
        openai: { apiKey: TEST_KEY, apiBase: server.openaiBase },
        groq: { apiKey: TEST_KEY, apiBase: server.openaiBase },
        anthropic: { apiKey: TEST_KEY, apiBase: server.url },
      },
    }),
    env: {},
    clock: systemClock,
    log: silentLogger,
    random: () => 0.5,
    async loadImage(id) {
      loaded.push(id);
      if (id.startsWith(HUGE)) return { kind: 'image', mimeType: 'image/png', base64: LARGEST };
      if (id.startsWith(DAMAGED)) return { kind: 'unreadable', reason: 'it is damaged' };
      return { kind: 'image', mimeType: 'image/jpeg', base64: pictureOf(id) };
    },
  });
  return { handle: registry.resolve(model), loaded };
}

const MODELS = ['openai/gpt-5', 'anthropic/claude-sonnet-4-5'] as const;
const user = (text: string, ...images: AttachedMedia[]): ModelMessage => ({
  role: 'user',
  text,
  images,
});

const sent = () => server.requests.at(-1)?.images.map(({ base64 }) => base64) ?? [];

describe.each(MODELS)('%s', (model) => {
  it('receives the very images, in their order, beside the words', async () => {
    const { handle } = resolve(model);
    const messages = [user('What is this?', image('aa'), image('bb'))];
    await finish(handle, ask('', { messages }));
    expect(sent()).toEqual([pictureOf('aa'), pictureOf('bb')]);
    expect(server.requests[0]?.lastUserText).toContain('What is this?');
    expect(server.requests[0]?.lastUserText).toContain('[image aaaaaaaa]');
    expect(handle.vision).toBe(true);
  });

  it('receives an image without any words', async () => {
    const messages = [user('', image('aa')), user('', image('bb'))];
    await finish(resolve(model).handle, ask('', { messages }));
    expect(sent()).toEqual([pictureOf('aa'), pictureOf('bb')]);
  });

  it('receives the newest images of a long conversation and is told how to see the others', async () => {
    const messages = Array.from({ length: 12 }, (_, n) => [
      user(`photo ${n}`, image((16 + n).toString(16), `p${n}.jpg`)),
      { role: 'assistant', text: 'nice', toolCalls: [], thinking: [] } as const,
    ]).flat();
    const { handle, loaded } = resolve(model);
    await finish(handle, ask('', { messages: [...messages, user('and now?')] }));
    expect(sent()).toEqual(['14', '15', '16', '17', '18', '19', '1a', '1b'].map(pictureOf));
    expect(loaded).toHaveLength(8);
    const body = JSON.stringify(server.requests[0]?.body);
    expect(body).toContain('[photo \\"p3.jpg\\", id 13131313: no longer shown; read_document');
    expect(imagesTokens(messages, 8)).toBe(8 * 1600);
  });

  it('is told of an image that cannot be shown, and sees the others', async () => {
    const messages = [user('Look', image(DAMAGED, 'x.heic'), image('aa'))];
    await finish(resolve(model).handle, ask('', { messages }));
    expect(sent()).toEqual([pictureOf('aa')]);
    expect(server.requests[0]?.lastUserText).toContain(
      '[photo "x.heic", id dddddddd: cannot be shown, it is damaged]',
    );
  });

  it('receives what tools show, each result still paired with its call', async () => {
    const call = (id: string) => ({ id: callId(id), name: 'time', arguments: '{}' });
    const messages: readonly ModelMessage[] = [
      { role: 'user', text: 'Show both.' },
      { role: 'assistant', text: '', toolCalls: [call('a'), call('b')], thinking: [] },
      {
        role: 'tool',
        callId: callId('a'),
        name: 'time',
        text: 'one',
        failed: false,
        images: [image('aa')],
      },
      {
        role: 'tool',
        callId: callId('b'),
        name: 'time',
        text: 'two',
        failed: false,
        images: [image('bb')],
      },
    ];
    await finish(resolve(model).handle, ask('', { messages }));
    expect(sent()).toEqual([pictureOf('aa'), pictureOf('bb')]);
    expect(server.requests[0]?.toolResults.map(({ text }) => text.slice(0, 3))).toEqual([
      'one',
      'two',
    ]);
  });

  it('is asked again without images when it turns out to take none', async () => {
    const message = 'This model does not support image input.';
    server.script(fail(400, { body: { error: { type: 'invalid_request_error', message } } }));
    const { handle } = resolve(model);
    const answer = await finish(handle, ask('', { messages: [user('Look', image('aa'))] }));
    expect(answer.text).toBe('seen');
    expect(server.requests.map(({ images }) => images.length)).toEqual([1, 0]);
    expect(server.requests[1]?.lastUserText).toContain(`which the model ${model} cannot see`);
  });

  it('receives no more than a request may hold, the newest first', async () => {
    const images = [image('aa'), ...Array.from({ length: 5 }, () => image(HUGE))];
    await finish(resolve(model).handle, ask('', { messages: [user('Look', ...images)] }));
    expect(sent().map(({ length }) => length)).toEqual(
      [LARGEST, LARGEST, LARGEST].map((l) => l.length),
    );
    expect(server.requests[0]?.lastUserText.match(/no longer shown/g)).toHaveLength(3);
  });

  it('receives none when images are turned off, and knows it', async () => {
    const { handle, loaded } = resolve(model, { media: { images: false } });
    await finish(handle, ask('', { messages: [user('Look', image('aa'))] }));
    expect(sent()).toEqual([]);
    expect(loaded).toEqual([]);
    expect(server.requests[0]?.lastUserText).toContain('images are turned off');
    expect(handle.vision).toBe(false);
  });
});

describe('a model that does not see', () => {
  it('is told so by its name, and the image does not leave the house', async () => {
    const { handle, loaded } = resolve('openai/o3-mini');
    await finish(handle, ask('', { messages: [user('Look', image('aa'))] }));
    expect(sent()).toEqual([]);
    expect(loaded).toEqual([]);
    const text = server.requests[0]?.lastUserText;
    expect(text).toBe('Look\n[an image, which the model openai/o3-mini cannot see]');
    expect(handle.vision).toBe(false);
  });

  it('sees where the configuration says so, and the other way round', async () => {
    const media = { visionModels: ['openai/o3-mini'], blindModels: ['openai/gpt-5'] };
    expect(resolve('openai/o3-mini', { media }).handle.vision).toBe(true);
    expect(resolve('openai/gpt-5', { media }).handle.vision).toBe(false);
  });

  it('is a matter of each model: a fallback is shown what the first could not see', async () => {
    server.script({ fault: { kind: 'status', status: 500 } });
    const { handle } = resolve('openai/o3-mini', {
      retry: { providerAttempts: 0 },
      agents: { defaults: { fallbackModels: ['anthropic/claude-sonnet-4-5'] } },
    });
    await finish(handle, ask('', { messages: [user('Look', image('aa'))] }));
    expect(server.requests.map(({ images }) => images.length)).toEqual([0, 1]);
  });

  it('takes fewer images where its vendor does', async () => {
    const { handle } = resolve('groq/meta-llama/llama-4-scout');
    const images = Array.from({ length: 7 }, (_, n) => image((16 + n).toString(16)));
    await finish(handle, ask('', { messages: [user('Look', ...images)] }));
    expect(sent()).toHaveLength(5);
  });
});

it('knows by name which of the models of today see', () => {
  const seeing =
    'anthropic/claude-sonnet-5-5 anthropic/claude-haiku-5-5 openai/gpt-6-sol openai/gpt-4o openai/o3 openai/o4-mini openrouter/anthropic/claude-haiku-4.5 gemini/gemini-flash-latest zhipu/glm-4.6v ollama/llama3.2-vision ollama/qwen2.5vl:7b ollama/gemma3:4b huggingface/Qwen/Qwen3-VL-8B groq/meta-llama/llama-4-scout lmstudio/pixtral-12b';
  const blind =
    'deepseek/deepseek-flash groq/openai/gpt-oss-120b zhipu/glm-4.7 zhipu/glm-4.5-air openai/o3-mini openai/gpt-3.5-turbo ollama/llama3.1 ollama/gemma3:1b ollama/qwen3:8b local/whatever groq/llama-3.3-70b-versatile';
  expect(seeing.split(' ').filter((model) => !seesImages(model))).toEqual([]);
  expect(blind.split(' ').filter(seesImages)).toEqual([]);
});

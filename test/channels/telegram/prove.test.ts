import { describe, expect, test } from 'vitest';
import { pairingLink, proveTelegram } from '../../../src/channels/telegram/prove.ts';
import { createTelegramChannel } from '../../../src/channels/telegram/telegram.ts';
import { configSchema } from '../../../src/kernel/config/config.ts';
import { systemClock } from '../../../src/lib/time/clock.ts';
import { startBotApi } from '../../support/bot-api.ts';

const signal = () => AbortSignal.timeout(45_000);

describe('setting Telegram up', () => {
  test('a good token tells whose it is', async () => {
    await using api = await startBotApi();
    const bot = await proveTelegram(api.token, api, signal());
    expect(bot).toMatchObject({ id: 4242, username: 'nano_sim_bot', name: 'Nano' });
    expect(pairingLink(bot.username, 'abc')).toBe('https://t.me/nano_sim_bot?start=abc');
    expect(api.violations).toEqual([]);
  });

  test.each([
    ['not a token', 'looks like'],
    ['4242:somebody-elses', 'refused this token'],
  ])('the token %j is refused in words', async (token, words) => {
    await using api = await startBotApi();
    await expect(proveTelegram(token, api, signal())).rejects.toThrow(words);
  });

  test('a server that is not there is not the token’s fault', async () => {
    const proof = proveTelegram('1:abc', { apiRoot: 'http://127.0.0.1:1' }, signal());
    await expect(proof).rejects.toMatchObject({ code: 'telegram_unreachable' });
  });

  test('an address that is none is refused without quoting the token', () => {
    const { telegram } = configSchema.parse({}).channels;
    const config = {
      ...telegram,
      enabled: true,
      token: '4242:planted-secret',
      apiRoot: 'no address',
    };
    const create = () => createTelegramChannel(config, { clock: systemClock, random: () => 0 });
    expect(create).toThrow('apiRoot');
    expect(create).not.toThrow('planted-secret');
  });
});

// The message field of the web page before the whole program: how the answers of a chat are made, the
// commands behind a slash, what is typed and not sent, files that are dropped and pasted.

import { expect, it } from 'vitest';
import { chatSettings, commandFacts } from '../../src/features/conversations/rules/chat-views.ts';
import { describeInChromium } from '../support/chromium.ts';
import { consoleWorld, fits, HOSTILE, SCREENS } from '../support/console-page.ts';
import { eventually } from '../support/web-page.ts';

const ADA = 1001;

describeInChromium('the message field of the web page', () => {
  const { world, api, open } = consoleWorld({
    respond: ({ lastUserText }) => ({ chunks: [`You said: ${lastUserText}`] }),
    config: {
      agents: { defaults: { model: 'openai/sim-1', fallbackModels: ['openai/sim-2'] } },
    },
    pair: { [ADA]: 'owner' },
  });

  const settingsOf = async (chat: string) =>
    chatSettings.parse((await api(`/api/v1/chats/${chat}/settings`)).body);

  async function openChat(chat: string, options = {}) {
    const rig = await open('#/schedules', options);
    await rig.page.goto(`${world().gateway.address}/#${chat}`);
    await rig.page.waitForSelector('.chat-options-button');
    return rig;
  }

  it('sets the model, the thinking, the mode and the approvals as the commands do', async () => {
    await using rig = await openChat('options');
    const { page } = rig;
    const button = page.locator('.chat-options-button');
    await eventually(async () => expect(await button.innerText()).toMatch(/^openai\/sim-1/));
    await page.fill('#text', '/model');
    await page.press('#text', 'Enter');
    await page.waitForSelector('.said .agent >> text=The model is openai/sim-1');
    await button.click();
    await expect
      .poll(() => page.evaluate('document.activeElement.placeholder'))
      .toBe('openai/sim-1');
    await page.waitForSelector('#model-names option[value="openai/sim-2"]', {
      state: 'attached',
    });
    await page.getByRole('combobox', { name: 'Model', exact: true }).fill('openai/sim-2');
    await page.keyboard.press('Enter');
    await eventually(async () => expect(await button.innerText()).toMatch(/^openai\/sim-2/));
    await page
      .getByRole('combobox', { name: 'Thinking', exact: true })
      .selectOption({ label: 'Normal (10,000 tokens)' });
    await eventually(async () => expect(await button.innerText()).toMatch(/thinking/));
    await page.getByRole('combobox', { name: 'Approvals', exact: true }).selectOption('strict');
    await page.getByRole('combobox', { name: 'Mode', exact: true }).selectOption('inline');
    await eventually(async () =>
      expect(await settingsOf('options')).toMatchObject({
        ...{ model: 'openai/sim-2', thinking: 10_000, mode: 'inline', approvals: 'strict' },
      }),
    );
    await page.getByRole('combobox', { name: 'Model', exact: true }).fill('nobody/nothing');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.chat-options-panel [role="alert"] >> text=nobody/nothing');
    await page.keyboard.press('Escape');
    await page.waitForSelector('.chat-options-panel', { state: 'detached' });
    await page.fill('#text', '/model');
    await page.press('#text', 'Enter');
    await page.waitForSelector('.said .agent >> text=The model is openai/sim-2');
    await page.fill('#text', '/think off');
    await page.press('#text', 'Enter');
    await page.waitForSelector('.said .agent >> text=Thinking is off.');
    expect((await settingsOf('options')).thinking).toBe(0);
    expect((await settingsOf('another')).model).toBeUndefined();
    await api('/api/v1/chats/options/settings', { approvals: 'auto', model: 'default' });
    const { approvals, model } = await settingsOf('options');
    expect([approvals, model]).toEqual([undefined, undefined]);
    expect(rig.problems).toEqual([]);
  });

  it('refuses what no model, mode or policy is, and changes nothing', async () => {
    for (const body of [
      { model: 'nobody/nothing' },
      { model: '' },
      { mode: 'turbo' },
      { thinking: -1 },
      { approvals: 'never' },
      { other: 1 },
    ]) {
      const { status } = await api('/api/v1/chats/refused/settings', body);
      expect([body, status]).toEqual([body, 400]);
    }
    expect((await api('/api/v1/chats/..%2Fx/settings')).status).toBe(400);
    const { model, mode, thinking } = await settingsOf('refused');
    expect([model, mode, thinking]).toEqual([undefined, undefined, undefined]);
  });

  it('lists the commands behind a slash, chosen by the keyboard', async () => {
    const { commands } = commandFacts.parse((await api('/api/v1/commands')).body);
    expect(commands.map(({ name }) => name)).toContain('model');
    await using rig = await openChat('slash');
    const { page } = rig;
    await page.focus('#text');
    await page.keyboard.type('/sta');
    await page.waitForSelector('.completions >> text=/status');
    await page.keyboard.press('Tab');
    expect(await page.inputValue('#text')).toMatch(/^\/sta(?:rt|tus)/);
    await page.fill('#text', '/s');
    await page.waitForSelector('.completions [aria-selected="true"]');
    const second = await page.locator('.completions code').nth(1).innerText();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    expect((await page.inputValue('#text')).trim()).toBe(second);
    await page.fill('#text', '/no-such');
    await page.waitForSelector('.completions', { state: 'hidden' });
    await page.fill('#text', '/he');
    await page.waitForSelector('.completions >> text=/help');
    await page.keyboard.press('Escape');
    await page.waitForSelector('.completions', { state: 'hidden' });
    await page.fill('#text', '/help');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.said .agent >> text=This conversation');
    expect(rig.problems).toEqual([]);
  });

  it('answers the last message again: the earlier answer stays as replaced, over a kill and a reload too', async () => {
    await using rig = await openChat('again');
    const { page } = rig;
    const { model } = world();
    const bodies = () => page.locator('.said .agent .body').allInnerTexts();
    const again = page.getByRole('button', { name: /^Answer again/ });
    const folded = '.said > .replaced';
    model.script(
      { toolCalls: [{ name: 'write_file', arguments: { path: 'once.txt', content: 'x' } }] },
      { chunks: ['first answer'] },
    );
    const say = (clientId: string, body: object) =>
      api('/api/v1/chats/again/messages', { clientId, ...body });
    await say('c1', { text: 'write it down' });
    await page.waitForSelector('.said .agent >> text=first answer');
    await expect.poll(() => again.count()).toBe(1);
    model.script({ chunks: ['second answer'] });
    await again.click();
    await page.waitForSelector('.said > .agent >> text=second answer');
    expect(await page.innerText(`${folded} summary`)).toBe(
      'Replaced answer. What its tools did was not undone.',
    );
    expect(await page.isVisible(`${folded} >> text=first answer`)).toBe(false);
    const asked = JSON.stringify(model.requests.at(-1)?.body);
    expect(asked).not.toContain('first answer');
    expect(asked).toContain('stands: write_file. Do not do it twice.');
    const { promise: never } = Promise.withResolvers<void>();
    const before = model.requests.length;
    model.script({ chunks: ['cut off'], gate: never }, { chunks: ['third answer'] });
    await again.click();
    await model.received(before + 1);
    await world().gateway.kill();
    await world().restart();
    await page.waitForSelector('.said > .agent >> text=third answer');
    await page.reload();
    await page.waitForSelector('.said > .agent >> text=third answer');
    await expect.poll(() => page.locator(folded).count()).toBe(2);
    await page.click(`${folded} summary`);
    expect((await bodies()).map((text) => text.trim())).toEqual([
      'first answer',
      '',
      'third answer',
    ]);
    await say('c2', { text: 'and now' });
    await page.waitForSelector('.said > .agent >> text=You said: and now');
    await say('c3', { text: '', amends: { id: 'web:default:again:c1', kind: 'again' } });
    await page.waitForSelector('.said > .agent >> text=only the newest exchange is');
    await expect.poll(() => page.locator(folded).count()).toBe(2);
    expect(rig.problems).toEqual([]);
  });

  it('keeps what is typed for each chat, over a reload too, until it is sent', async () => {
    await using rig = await openChat('draft');
    const { page } = rig;
    await page.fill('#text', `half a thought ${HOSTILE}`);
    await page.goto(`${world().gateway.address}/#other`);
    await eventually(async () => expect(await page.inputValue('#text')).toBe(''));
    await page.goto(`${world().gateway.address}/#draft`);
    await page.reload();
    await eventually(async () =>
      expect(await page.inputValue('#text')).toBe(`half a thought ${HOSTILE}`),
    );
    await page.press('#text', 'Enter');
    await page.waitForSelector('.said .agent >> text=You said: half a thought');
    await page.reload();
    await page.waitForSelector('.said .agent');
    expect(await page.inputValue('#text')).toBe('');
    expect(rig.problems).toEqual([]);
  });

  it('attaches what is dropped on the page and pasted', async () => {
    await using rig = await openChat('files');
    const { page } = rig;
    for (const type of ['drop', 'paste']) {
      await page.evaluate(`{
        const data = new DataTransfer();
        data.items.add(new File(['some text'], '${type}.txt', { type: 'text/plain' }));
        const Kind = '${type}' === 'drop' ? DragEvent : ClipboardEvent;
        const carried = { bubbles: true, cancelable: true, dataTransfer: data, clipboardData: data };
        document.getElementById('text').dispatchEvent(new Kind('${type}', carried));
      }`);
      await page.waitForSelector(`#composer-files .file >> text=${type}.txt`);
    }
    await eventually(async () =>
      expect(await page.locator('#composer-files >> text=9 bytes').count()).toBe(2),
    );
    await page.press('#text', 'Enter');
    await eventually(async () => expect(await page.locator('.said .person .file').count()).toBe(2));
    expect(rig.problems).toEqual([]);
  });

  it('records a voice message, which can be played after it was sent', async () => {
    await using rig = await openChat('voice', { permissions: ['microphone'] });
    const { page } = rig;
    await page.getByRole('button', { name: 'Record a voice message' }).click();
    await page.getByRole('button', { name: /End the recording \([1-9]\d* s\)/ }).click();
    await page.waitForSelector('#composer-files .file >> text=voice-message.wav');
    await page.waitForSelector('#composer-files .file >> text=/kB$/');
    await page.press('#text', 'Enter');
    const player = page.locator('.said .person audio');
    await player.waitFor();
    await eventually(async () =>
      expect(await player.evaluate((sound: HTMLAudioElement) => sound.duration)).toBeGreaterThan(0),
    );
    expect(rig.problems).toEqual([]);
  });

  it('fits each screen with its options and its list of commands open', async () => {
    for (const { viewport, themes } of SCREENS) {
      await using rig = await openChat('fits', { viewport, bypassCSP: true });
      const { page } = rig;
      for (const colorScheme of themes) {
        await page.emulateMedia({ colorScheme });
        await page.fill('#text', '/');
        await page.waitForSelector('.completions >> text=/help');
        await fits(page, `composer-commands-${viewport.width}-${colorScheme}`);
        await page.fill('#text', '');
        await page.click('.chat-options-button');
        await fits(page, `composer-options-${viewport.width}-${colorScheme}`);
        await page.keyboard.press('Escape');
      }
    }
  });
});

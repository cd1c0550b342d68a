// The chats of the web page before the whole program: found by their titles and texts, renamed, exported,
// archived and brought back; a jump by the keyboard to a chat, a page or a command.

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { describeInChromium } from '../support/chromium.ts';
import { consoleWorld, fits, HOSTILE, SCREENS } from '../support/console-page.ts';
import { eventually } from '../support/web-page.ts';

const ADA = 1001;

describeInChromium('the chats of the web page', () => {
  const { world, api, open } = consoleWorld({
    respond: ({ lastUserText }) => ({ chunks: [`You said: ${lastUserText}`] }),
    pair: { [ADA]: 'owner' },
  });

  beforeAll(async () => {
    for (const [chat, text] of [
      ['garden', 'where do the tulips go'],
      ['hostile', HOSTILE],
      ['boat', 'the sails are torn'],
    ]) {
      const path = `/api/v1/chats/${chat}/messages`;
      expect((await api(path, { clientId: 'c1', text })).status).toBe(202);
    }
  });

  async function openChat(chat: string, options = {}) {
    const rig = await open('#/schedules', options);
    await rig.page.goto(`${world().gateway.address}/#${chat}`);
    await rig.page.waitForSelector('.said .agent');
    return rig;
  }

  it('renames a chat, exports it, archives it and brings it back', async () => {
    await using rig = await openChat('garden');
    const { page } = rig;
    const row = page.locator('#chats li', { hasText: 'where do the tulips go' });
    await row.hover();
    await row.getByRole('button', { name: /^Rename, export or archive/ }).click();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      row.getByRole('button', { name: 'Export', exact: true }).click(),
    ]);
    expect(download.suggestedFilename()).toBe('web-garden.md');
    expect(await readFile(await download.path(), 'utf8')).toContain('You said: where do');
    await row.hover();
    await row.getByRole('button', { name: /^Rename, export or archive/ }).click();
    await row.getByRole('button', { name: 'Rename', exact: true }).click();
    await page.keyboard.type(`Tulips ${HOSTILE}`);
    await page.keyboard.press('Enter');
    const renamed = page.locator('#chats li', { hasText: 'Tulips' });
    await renamed.waitFor();
    await eventually(async () => expect(await page.innerText('#title')).toMatch(/^Tulips </));
    await renamed.hover();
    await renamed.getByRole('button', { name: /^Rename, export or archive/ }).click();
    await renamed.getByRole('button', { name: 'Archive', exact: true }).click();
    await renamed.waitFor({ state: 'detached' });
    await page.reload();
    await page.click('text=Archived chats');
    const archived = page.locator('.chats-archived li', { hasText: 'Tulips' });
    await archived.hover();
    await archived.getByRole('button', { name: /^Rename, export or archive/ }).click();
    await archived.getByRole('button', { name: 'Bring back', exact: true }).click();
    await renamed.waitFor();
    expect(rig.problems).toEqual([]);
  });

  it('brings an archived chat back with its next message, and keeps its title', async () => {
    expect((await api('/api/v1/chats/boat', { title: 'Sails', isArchived: true })).status).toBe(
      200,
    );
    const titles = async (which: string) => {
      const { chats } = (await api(`/api/v1/chats?which=${which}`)).body;
      return chats.map(({ title }: { title: string }) => title);
    };
    expect(await titles('archived')).toEqual(['Sails']);
    expect(await titles('open')).not.toContain('Sails');
    await api('/api/v1/chats/boat/messages', { clientId: 'c2', text: 'and the mast' });
    expect((await titles('open'))[0]).toBe('Sails');
    expect(await titles('archived')).toEqual([]);
    expect((await api('/api/v1/chats/nobody', { title: 'x' })).status).toBe(404);
    expect((await api('/api/v1/chats/boat', {})).status).toBe(400);
    const { paths } = (await api('/api/v1/openapi.json')).body;
    expect(Object.keys(paths)).toContain('/api/v1/chats/{chat}/messages');
    const { post } = paths['/api/v1/files'];
    expect(post.requestBody.content['multipart/form-data'].schema.properties.file).toMatchObject({
      format: 'binary',
    });
    expect(paths['/api/v1/files/{media}'].get.responses['200'].content).toHaveProperty([
      'application/octet-stream',
    ]);
    const events = paths['/api/v1/chats/{chat}/events'].get.parameters;
    expect(events.map(({ name }: { name: string }) => name)).toEqual(['chat', 'after', 'live']);
  });

  it('asks for nothing that the OpenAPI document does not have', async () => {
    const { paths } = (await api('/api/v1/openapi.json')).body;
    const documented = ['/api/v1/openapi.json', ...Object.keys(paths)];
    const page = join(import.meta.dirname, '../../src/http/page');
    const sources = (await readdir(page, { recursive: true })).filter((name) =>
      /\.(?:js|tsx?)$/.test(name),
    );
    const texts = await Promise.all(sources.map((name) => readFile(join(page, name), 'utf8')));
    const asked = texts.flatMap((text) =>
      [...text.matchAll(/['`](\/api\/[\w/.-]*)/g)].map(([, path = '']) => path),
    );
    expect(asked.length).toBeGreaterThan(20);
    expect(asked.filter((path) => !documented.some((one) => one.startsWith(path)))).toEqual([]);
  });

  it('finds chats by their titles and by what was said', async () => {
    await using rig = await openChat('boat');
    const { page } = rig;
    await page.fill('.chat-search', 'torn');
    await page.waitForSelector('.chat-hits a[href="#boat"]');
    expect(await page.locator('#chats li').count()).toBe(0);
    await page.fill('.chat-search', 'img src');
    await page.waitForSelector('#chats >> text=<img src=x');
    expect(await page.getByText('No matches').count()).toBe(0);
    await page.fill('.chat-search', 'nothing says this');
    await page.getByText('No matches').waitFor();
    await page.fill('.chat-search', '');
    await eventually(async () => expect(await page.locator('#chats li').count()).toBe(3));
    expect(rig.problems).toEqual([]);
  });

  it('jumps to a chat, a page or a command by the keyboard', async () => {
    await using rig = await openChat('boat');
    const { page } = rig;
    await page.keyboard.press('ControlOrMeta+k');
    await page.keyboard.type('usage');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.view h1 >> text=Usage');
    await page.keyboard.press('ControlOrMeta+k');
    await page.keyboard.type('tulips');
    await page.keyboard.press('Enter');
    await eventually(async () => expect(new URL(page.url()).hash).toBe('#garden'));
    await page.waitForSelector('.said .agent');
    await page.keyboard.press('ControlOrMeta+k');
    await page.keyboard.type('/status');
    await page.waitForSelector('#places >> text=/status');
    await page.keyboard.press('Enter');
    await eventually(async () => expect(await page.inputValue('#text')).toBe('/status'));
    await page.keyboard.press('ControlOrMeta+k');
    await page.keyboard.press('Escape');
    await page.waitForSelector('.palette', { state: 'hidden' });
    expect(rig.problems).toEqual([]);
    expect(await page.evaluate('window.pwned')).toBeUndefined();
  });

  it('fits each screen with a chat opened and with the jump', async () => {
    for (const { viewport } of SCREENS) {
      await using rig = await openChat('boat', { viewport, bypassCSP: true });
      const { page } = rig;
      if (viewport.width < 1000) await page.click('.menu');
      const row = page.locator('#chats li', { hasText: 'Sails' });
      await row.hover();
      await row.getByRole('button', { name: /^Rename, export or archive/ }).click();
      await fits(page, `chats-actions-${viewport.width}`);
      await page.keyboard.press('ControlOrMeta+k');
      await page.keyboard.type('help');
      await page.waitForSelector('#places >> text=/help');
      await fits(page, `chats-jump-${viewport.width}`);
    }
  });
});

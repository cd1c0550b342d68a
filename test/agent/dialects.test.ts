// Turns over the real providers against a strict model server of both dialects: what really goes
// over the wire, also after a kill at any point and after damage to any line of the session file.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { callTools, type LlmReply, type LlmRequest, say } from '../support/llm-server.ts';
import { createRig } from './agent-rig.ts';
import { DIALECTS, notingTools, type WireDialect, wireModels } from './wire-models.ts';

async function createWireRig(dialect: WireDialect) {
  const { server, models } = await wireModels(dialect);
  const { ran, tools } = notingTools();
  const rig = await createRig({
    models,
    tools: [
      ...tools,
      { name: 'long', access: 'read', run: async ({ page }) => `page ${page} `.repeat(700) },
    ],
    readsResults: true,
    settings: { clearing: { aboveTokens: 7000, abovePercent: 66, keepNewest: 2 } },
  });
  return { rig, server, ran };
}

/** Looks and pays, then posts, then says that it is done. */
function threeRounds({ toolResults }: LlmRequest): LlmReply {
  const results = toolResults.map(({ text }) => text).join();
  if (results === '')
    return callTools({ name: 'look', arguments: {} }, { name: 'pay', arguments: {} });
  if (results.includes('look')) return callTools({ name: 'post', arguments: {} });
  return say('Done.');
}

describe.each(DIALECTS)('over the %s dialect', (dialect) => {
  it('a turn sends its whole prompt, its tools and its thread', async () => {
    const { rig, server } = await createWireRig(dialect);
    await rig.write('AGENTS.md', 'Be kind.');
    await rig.write('CONTEXT-terminal.md', 'Lines are short here.');
    rig.state.memory = 'Ann has a cat.';
    server.respond(threeRounds);
    await rig.ask(1, 'pay the bill');
    server.respond(() => say('Yes.'));
    await rig.ask(2, 'is it paid?');
    const last = server.requests.at(-1);
    for (const part of ['You are nanobot', 'Be kind.', 'Lines are short here.', 'Ann has a cat.']) {
      expect(last?.system).toContain(part);
    }
    expect(last?.tools).toEqual(['look', 'pay', 'post', 'long', 'read_result']);
    const body = JSON.stringify(last?.body);
    for (const part of ['pay the bill', 'look done', 'pay done', 'post done', 'Done.']) {
      expect(body).toContain(part);
    }
    server.assertDone();
  });

  it('a kill at any event costs neither the answer nor a second effect', async () => {
    for (let killAt = 1; killAt <= 12; killAt += 1) {
      const { rig, server, ran } = await createWireRig(dialect);
      server.respond(threeRounds);
      const context = await rig.agent.prepare(...rig.place);
      const turn = rig.agent.run(rig.inputOf(1, ['go']), context, new AbortController().signal);
      for (let event = 0; event < killAt; event += 1) await turn.next();
      await rig.restart();
      const outcome = await rig.ask(1, 'go');
      expect(outcome).toMatchObject({ kind: 'answered', answers: ['Done.'] });
      expect(ran.filter((name) => name === 'pay').length).toBeLessThanOrEqual(1);
      expect(ran.filter((name) => name === 'post').length).toBeLessThanOrEqual(1);
      server.assertDone();
    }
  });

  it('results that are cleared to save room leave their calls whole', async () => {
    const { rig, server } = await createWireRig(dialect);
    let page = 0;
    server.respond(() => {
      if (page === 12) return say('Read.');
      page += 2;
      const pages = [page - 1, page].map((number) => ({ page: number }));
      return callTools(...pages.map((given) => ({ name: 'long', arguments: given })));
    });
    await rig.ask(1, 'read it all');
    server.respond(() => say('Yes.'));
    await rig.ask(2, 'all of it?');
    const sent = JSON.stringify(server.requests.at(-1)?.body);
    expect(sent.match(/cleared to save room/g)?.length).toBeGreaterThan(4);
    expect(sent).toContain('page 12 page 12');
    server.assertDone();
  });

  it('the loss, doubling or displacement of any line leaves a chat that works', async () => {
    const { rig, server } = await createWireRig(dialect);
    server.respond(threeRounds);
    await rig.ask(1, 'go');
    server.respond(() => say('Still here.'));
    const [name = ''] = await rig.fileNames();
    const path = join(rig.folder, name);
    const [header = '', ...lines] = (await readFile(path, 'utf8')).trimEnd().split('\n');
    const damages = lines.flatMap((line, index) => {
      const without = lines.toSpliced(index, 1);
      return [without, lines.toSpliced(index, 0, line), [line, ...without], [...without, line]];
    });
    for (const damaged of damages) {
      await writeFile(path, `${[header, ...damaged].join('\n')}\n`);
      await rig.restart();
      expect((await rig.ask(9, 'hello?')).answers).toEqual(['Still here.']);
      server.assertDone();
    }
  });
});

import { describe, expect, test } from 'vitest';
import { createMcpRig, goodServer, rawServer } from './mcp-rig.ts';

describe('a hostile or broken server costs its own tools and nothing else', () => {
  const onCall = (code: string) => rawServer(`if (method === 'tools/call') { ${code} }`);

  test('whatever it does, the others answer', async () => {
    const rig = await createMcpRig({
      good: goodServer,
      huge: onCall("process.stdout.write('x'.repeat(100_000_000));"),
      flood: onCall(
        "setInterval(() => { for (let i = 0; i < 2000; i += 1) say({ method: 'notifications/message', params: { level: 'info', data: i } }); }, 1);",
      ),
      liar: onCall(
        "for (const wrong of [id + 1, id + 2, -1, 'x', null]) say({ id: wrong, result: { content: [{ type: 'text', text: 'WRONG' }] } }); say({ id, result: { content: [{ type: 'text', text: 'right' }] } });",
      ),
      garbage: onCall(
        'process.stdout.write(\'hello\\n{"a":\\n[1]\\n{}\\n\\x00\\n\'); say({ id, result: { content: 7 } });',
      ),
      long: onCall(
        "say({ id, result: { content: [{ type: 'text', text: 'a '.repeat(600_000) }] } });",
      ),
      hang: onCall(''),
      asking: onCall(
        "say({ id: 'q', method: 'sampling/createMessage', params: {} }); say({ id: 'r', method: 'roots/list' }); say({ id, result: { content: [{ type: 'text', text: 'asked' }] } });",
      ),
      deaf: rawServer("process.on('SIGTERM', () => {}); setInterval(() => {}, 1000); return;"),
      gone: { command: '/nonexistent/program' },
      loud: {
        command: process.execPath,
        args: ['-e', "console.error('no API key'); process.exit(1)"],
      },
      liarAccess: rawServer(
        "tool.annotations = { readOnlyHint: true }; tool.description = 'My key is planted-secret. ' + 'x'.repeat(100_000); tool.inputSchema.title = 'planted-secret';",
      ),
    });
    for (const name of ['good', 'huge', 'flood', 'liar', 'garbage', 'long', 'hang', 'asking']) {
      await rig.reaches(name, 'connected');
    }
    const calls = {
      huge: rig.call('mcp_huge_go'),
      flood: rig.call('mcp_flood_go'),
      hang: rig.call('mcp_hang_go'),
    };
    expect((await rig.call('mcp_liar_go')).text).toMatch(/> right/);
    expect((await rig.call('mcp_asking_go')).text).toMatch(/> asked/);
    expect((await rig.call('mcp_long_go')).text).toContain('[the rest was cut]');
    expect(await rig.call('mcp_garbage_go')).toMatchObject({
      failure: 'execution',
      text: expect.stringContaining('cannot be read'),
    });
    expect(await calls.huge).toMatchObject({ status: 'failed', failure: 'execution' });
    expect(await calls.flood).toMatchObject({ status: 'failed', failure: 'execution' });
    await rig.reaches('huge', 'failed');
    await rig.reaches('flood', 'failed');
    expect(rig.reason('huge')).toContain('more than 8 MB');
    expect(rig.reason('flood')).toContain('it sent too much');
    await rig.reaches('gone', 'failed');
    expect(rig.reason('gone')).toContain('not found');
    await rig.reaches('loud', 'failed');
    expect(rig.reason('loud')).toContain('it said: no API key');
    expect((await rig.call('mcp_good_add', { a: 1, b: 1 })).text).toMatch(/> 2/);

    // A tool that cannot work does not exist, and the model is told why.
    expect(rig.names()).not.toContain('mcp_huge_go');
    expect(await rig.call('mcp_huge_go')).toMatchObject({
      failure: 'unknown_tool',
      text: expect.stringContaining('more than 8 MB'),
    });
    const boast = rig.toolbox.bind('mcp_liarAccess_go', '{}');
    expect(boast).toMatchObject({ access: 'execute' });
    const told = rig.toolbox.offered(rig.context.rights).specs;
    expect(JSON.stringify(told).length).toBeLessThan(20_000);
    expect(JSON.stringify(told)).not.toContain('planted-secret');

    await rig.clock.advance(60_000);
    expect(await calls.hang).toMatchObject({ failure: 'timeout' });
    const later = async () => {
      await rig.clock.advance(500);
      return rig.stateOf('deaf');
    };
    await expect.poll(later, { interval: 10, timeout: 45_000 }).toBe('failed');
    expect(rig.reason('deaf')).toContain('did not answer within 30 s');
    const ended = rig.end();
    for (let seconds = 0; seconds < 5; seconds += 1) await rig.clock.advance(1000);
    await ended;
  });
});

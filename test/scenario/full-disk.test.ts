// Two processes on a PostgreSQL server whose disk is full for a while, until it ends: what cannot be stored is not
// acknowledged, and is answered once when there is room again. At most the owner hears of it.

import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startBotApi } from '../support/bot-api.ts';
import { echo, type LlmReply, type LlmRequest, startLlmServer } from '../support/llm-server.ts';
import { hasPostgres, startPostgres } from '../support/postgres.ts';
import { answersEach, makeProcessCluster } from '../support/process-cluster.ts';
import { canMount, mountSmallDisk } from '../support/small-disk.ts';

const OWNER = 900;
const CHATS = [OWNER, 901, 902];
const WAIT_MS = 60_000;
const DISK_MB = 24;

/** The text begins with the nonce and cannot be compressed. */
const large = (nonce: string) => `nonce-${nonce} ${randomBytes(1400).toString('hex')}`;

it.skipIf(!hasPostgres || !canMount())(
  'a full disk of the database loses nothing and doubles nothing',
  async () => {
    using disk = mountSmallDisk(DISK_MB);
    const log = join(disk.folder, 'log');
    await using server = await startPostgres(['max_connections=40'], log);
    const space = join(disk.folder, 'space');
    mkdirSync(space);
    server.own(space);
    const admin = await server.emptied();
    await server.query(admin, `CREATE TABLESPACE small LOCATION '${space}'`);
    await server.query(admin, 'CREATE DATABASE small TABLESPACE small');
    await using telegram = await startBotApi();
    await using model = await startLlmServer({ respond: echo });
    await using cluster = await makeProcessCluster(admin.replace(/\w+$/, 'small'), () =>
      answersEach(telegram, model),
    );
    for (const role of ['all', 'all'] as const) await (await cluster.add(role)).start();
    await cluster.nanobot('pair', 'approve', 'telegram', String(OWNER), '--role', 'owner');
    const logs = async () =>
      (await Promise.all(cluster.members.map(({ home }) => home.logs()))).join('');
    const texts = (chat: number) =>
      telegram
        .chat(chat)
        .messages.filter(({ from }) => from === 'bot')
        .map(({ text }) => text);
    const isMarked = (text: string) => text.includes('the first try was not confirmed');
    const isNotice = (text: string) => text.includes('is low on disk space for its database');
    const said = new Map<number, string[]>();
    const say = (chat: number, nonce: string) => {
      telegram.say(chat, `repeat ${large(nonce)}`);
      said.set(chat, [...(said.get(chat) ?? []), `nonce-${nonce}`]);
    };

    const begun = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    const answer = ({ lastUserText }: LlmRequest): LlmReply => ({
      chunks: [large(/nonce-(\w+)/.exec(lastUserText)?.[1] ?? '')],
    });
    model.respond((request) => {
      begun.resolve();
      return { ...answer(request), gate: held.promise };
    });
    for (const chat of CHATS) say(chat, 'a');
    await begun.promise;
    model.respond(answer);
    disk.fill();
    const isRefused = async () => (await logs()).includes('"task":"receive"');
    for (let each = 0; !(await isRefused()); each += 1) {
      for (const chat of CHATS) say(chat, `b${each}`);
      await expect
        .poll(async () => telegram.unconfirmed.length === 0 || (await isRefused()))
        .toBe(true);
    }
    held.resolve();
    await expect.poll(logs).toContain('the process is short of something');
    // Without room for its log the server ends.
    const isUp = () =>
      server
        .query(
          admin,
          `SELECT pg_logical_emit_message(false, '', repeat('x', 900000)), pg_switch_wal()`,
        )
        .then(
          () => true,
          () => false,
        );
    await expect.poll(isUp).toBe(false);
    await expect.poll(logs).toContain('database not reachable');
    expect(telegram.unconfirmed).not.toEqual([]);
    disk.empty();
    await server.crash();
    await server.start();
    for (const [chat, nonces] of said) {
      const isSaid = (nonce: string) => texts(chat).some((text) => text.includes(`${nonce} `));
      await telegram.waitFor(() => nonces.every(isSaid), WAIT_MS);
      const heard = texts(chat).filter((text) => !isMarked(text) && !isNotice(text));
      expect(heard.map((text) => text.split(' ')[0])).toEqual(nonces);
    }
    // Only the owner is told, if there is room for the notice: by each process once.
    const told = CHATS.map((chat) => texts(chat).filter(isNotice).length);
    expect(told[0]).toBeLessThanOrEqual(cluster.members.length);
    expect(told.slice(1)).toEqual([0, 0]);
    expect(telegram.violations).toEqual([]);
  },
  120_000,
);

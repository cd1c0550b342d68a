// A home in which everything is wrong that `nanobot doctor --fix` can put right, except a damaged store.

import { appendFile, chmod, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { MIGRATIONS } from '../../src/kernel/bus/store/database.ts';
import { openEmbeddedStore } from '../../src/kernel/bus/store/embedded.ts';
import type { Home } from '../../src/kernel/config/files/home.ts';
import {
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  sessionKey,
  turnIdOf,
} from '../../src/kernel/message/ids.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import type { BotApi } from './bot-api.ts';

/** Names of the checks that find it, in the order of the doctor; `drafts` once the store is migrated. */
export const FOUND_AT_ONCE = [
  ...['permissions', 'lock', 'schema', 'index', 'conversations', 'temporary', 'folders'],
  'telegram-webhook',
];
export const FOUND_LATER = ['drafts'];

const TWO_DAYS_S = 2 * 86_400;

/** @param home of a gateway that has answered and does not run; its configuration names the bot */
export async function breakHome(home: Home, telegram: BotApi): Promise<void> {
  telegram.setWebhook('https://old.example.org/a-secret-path');
  await forgottenDraft(home);
  const older = new DatabaseSync(home.state);
  older.exec(`DROP TABLE session_entry; PRAGMA user_version = ${MIGRATIONS.length - 1}`);
  older.close();
  const [session = ''] = (await readdir(home.sessions)).filter((name) => name.endsWith('.jsonl'));
  await appendFile(join(home.sessions, session), '{"role":"user","content":"half a wo');
  await rm(home.workspace, { recursive: true });
  await writeFile(home.runtime, JSON.stringify({ pid: 999_999_999, startedAt: 1 }));
  await writeFile(home.index, 'not an index '.repeat(500));
  const temporary = join(home.root, '.config.json.2a0c7d7e-0000-4000-8000-000000000000.tmp');
  await writeFile(temporary, 'x');
  const before = Date.now() / 1000 - TWO_DAYS_S;
  await utimes(temporary, before, before);
  await chmod(home.config, 0o644);
}

/** Of a channel that is off. */
async function forgottenDraft({ state }: Home): Promise<void> {
  const store = await openEmbeddedStore({ path: state, clock: systemClock, log: silentLogger });
  const chat = { channel: channelName('lark'), account: DEFAULT_ACCOUNT, chat: chatId('oc_1') };
  await store.recordDraft({ turnId: turnIdOf(sessionKey('lark:default:oc_1'), 5), chat });
  await store[Symbol.asyncDispose]();
}

// What Telegram shows of the bot: who it is (asked once a day) and its command menu (set when it
// changed). Neither may hold up the first poll.

import { mayGive } from '../../kernel/access/command-access.ts';
import { fieldsOf, integerOf, parseJson, textOf } from '../../lib/json/json.ts';
import type { ChannelHost } from '../channel.ts';
import type { BotApi } from './client.ts';

const IDENTITY_LIFETIME_MS = 24 * 3600 * 1000;

const COMMANDS = [
  { command: 'help', description: 'What I can do' },
  { command: 'new', description: 'Begin a new conversation' },
  { command: 'restore', description: 'Bring back what /new or /undo took away' },
  { command: 'undo', description: 'Take the last answer back' },
  { command: 'stop', description: 'Stop the answer' },
  { command: 'status', description: 'How things stand' },
  { command: 'context', description: 'What fills my memory of this conversation' },
  { command: 'sessions', description: 'Your conversations' },
  { command: 'memory', description: 'What I keep in mind' },
  { command: 'cron', description: 'Your scheduled jobs' },
  { command: 'agents', description: 'The helpers at work for you' },
  { command: 'model', description: 'Show or change the model' },
  { command: 'think', description: 'Switch thinking on or off' },
  { command: 'start', description: 'Say hello' },
];

/** Per kind of chat those that somebody who is trusted may give there. */
const MENUS = (['direct', 'group'] as const).map((place) => ({
  commands: COMMANDS.filter(
    ({ command }) => mayGive(command, { role: 'trusted', place, verified: 'verified' }) === 'yes',
  ),
  scope: { type: place === 'direct' ? ('default' as const) : ('all_group_chats' as const) },
}));

export async function rememberedName(
  host: ChannelHost,
  botId: number,
): Promise<string | undefined> {
  return (await readIdentity(host, botId))?.username;
}

/** Brings identity and menu up to date; returns the bot's user name. @throws BotCallError */
export async function refreshProfile(
  api: BotApi,
  host: ChannelHost,
  botId: number,
  signal: AbortSignal,
): Promise<string | undefined> {
  const known = await readIdentity(host, botId);
  const isFresh = known !== undefined && host.clock.now() - known.at < IDENTITY_LIFETIME_MS;
  const username = isFresh ? known.username : (await api.getMe(signal)).username;
  if (!isFresh) {
    await host.state.set(`me:${botId}`, JSON.stringify({ username, at: host.clock.now() }));
  }
  const menu = JSON.stringify(MENUS);
  if ((await host.state.get(`menu:${botId}`)) !== menu) {
    for (const each of MENUS) await api.setMyCommands(each, signal);
    await host.state.set(`menu:${botId}`, menu);
  }
  return username;
}

async function readIdentity(host: ChannelHost, botId: number) {
  const stored = await host.state.get(`me:${botId}`);
  const fields = stored === undefined ? undefined : fieldsOf(parseJson(stored));
  const username = textOf(fields?.['username']);
  const at = integerOf(fields?.['at']);
  return username === undefined || at === undefined ? undefined : { username, at };
}

// What each Bot API method does to the ledger and which requests it refuses, with Telegram's words.
// getUpdates, which waits, is in bot-api-polls.ts.

import { TELEGRAM_REACTIONS } from '../../src/channels/telegram/settings.ts';
import { buttonsOf, isRecord, sameButtons } from './bot-api-buttons.ts';
import type { Files } from './bot-api-files.ts';
import { chatObject } from './bot-api-groups.ts';
import { type Entity, parseHtml } from './bot-api-html.ts';
import { type Ledger, nowMs, type Person } from './bot-api-ledger.ts';

export type Payload = Readonly<Record<string, unknown>>;

export type Answer =
  | { readonly ok: true; readonly result: unknown }
  | {
      readonly ok: false;
      readonly error_code: number;
      readonly description: string;
      readonly parameters?: { readonly retry_after?: number; readonly migrate_to_chat_id?: number };
    };

/** What the methods may touch. */
export type World = {
  readonly ledger: Ledger;
  readonly bot: Person;
  readonly commands: unknown[];
  webhook: string;
  /** Sends and edits one chat may get within a second. */
  readonly perChatPerSecond: number;
  readonly recentSends: Map<number, number[]>;
  readonly files: Files;
  /** Presses that the bot has not answered yet, by query id. */
  readonly pressed: Set<string>;
  /** Calls refused because the message shows that already. */
  unmodified: number;
  /** What was shown at pressed buttons; empty where nothing was. */
  readonly toasts: string[];
  /** Messages the bot may not delete any more. */
  readonly undeletable: Set<number>;
  violate(text: string): void;
};

export const MESSAGE_UNITS = 4096;
/** Bot API, answerCallbackQuery. */
const TOAST_UNITS = 200;

export type Method = {
  readonly params: readonly string[];
  run(payload: Payload, world: World): Answer;
};

export const ok = (result: unknown): Answer => ({ ok: true, result });
export const refuse = (error_code: number, text: string): Answer => ({
  ok: false,
  error_code,
  description: `${error_code === 403 ? 'Forbidden' : 'Bad Request'}: ${text}`,
});

export const METHODS: Readonly<Record<string, Method>> = {
  getMe: {
    params: [],
    run: (_, { bot }) =>
      ok({ ...bot, is_bot: true, can_join_groups: true, can_read_all_group_messages: false }),
  },
  deleteWebhook: {
    params: ['drop_pending_updates'],
    run: (payload, world) => {
      world.webhook = '';
      if (payload['drop_pending_updates'] === true) world.ledger.forgetUpdates();
      return ok(true);
    },
  },
  getWebhookInfo: {
    params: [],
    run: (_, { webhook }) =>
      ok({ url: webhook, has_custom_certificate: false, pending_update_count: 0 }),
  },
  setMyCommands: { params: ['commands', 'scope', 'language_code'], run: setCommands },
  sendMessage: {
    params: [
      'chat_id',
      'message_thread_id',
      'text',
      'parse_mode',
      'reply_parameters',
      'link_preview_options',
      'disable_notification',
      'reply_markup',
    ],
    run: sendMessage,
  },
  editMessageText: {
    params: ['chat_id', 'message_id', 'text', 'parse_mode', 'link_preview_options', 'reply_markup'],
    run: editMessage,
  },
  editMessageReplyMarkup: { params: ['chat_id', 'message_id', 'reply_markup'], run: editButtons },
  answerCallbackQuery: {
    params: ['callback_query_id', 'text', 'show_alert'],
    run: answerQuery,
  },
  setMessageReaction: { params: ['chat_id', 'message_id', 'reaction', 'is_big'], run: react },
  deleteMessage: { params: ['chat_id', 'message_id'], run: deleteMessage },
  sendChatAction: { params: ['chat_id', 'message_thread_id', 'action'], run: sendAction },
};

export type Target = { readonly id: number } | Answer;
export const isAnswer = (value: object): value is Answer => 'ok' in value;

export function targetOf(payload: Payload, world: World): Target {
  const given = payload['chat_id'];
  const isId = typeof given === 'number' || (typeof given === 'string' && /^-?\d+$/.test(given));
  const id = Number(given);
  if (!isId || world.ledger.chat(id) === undefined) return refuse(400, 'chat not found');
  const chat = world.ledger.chat(id);
  if (chat?.isBlocked) return refuse(403, 'bot was blocked by the user');
  const migrate_to_chat_id = chat?.migratedTo;
  if (migrate_to_chat_id !== undefined) {
    const description = 'Bad Request: group chat was upgraded to a supergroup chat';
    return { ok: false, error_code: 400, description, parameters: { migrate_to_chat_id } };
  }
  const thread = payload['message_thread_id'];
  if (thread !== undefined && !chat?.topics.includes(Number(thread))) {
    return refuse(400, 'message thread not found');
  }
  return { id };
}

export const threadOf = (payload: Payload) =>
  payload['message_thread_id'] === undefined ? undefined : Number(payload['message_thread_id']);

type Body = {
  readonly text: string;
  readonly entities: readonly Entity[];
  readonly source: string;
};

function bodyOf(payload: Payload, world: World, tooLong: string): Body | Answer {
  const source = payload['text'];
  if (typeof source !== 'string') return refuse(400, 'message text is empty');
  if (!source.isWellFormed()) {
    world.violate('text with half a surrogate pair');
    return refuse(400, 'text must be encoded in UTF-8');
  }
  const mode = payload['parse_mode'];
  if (mode !== undefined && mode !== 'HTML') world.violate(`parse_mode ${String(mode)}`);
  const parsed =
    mode === 'HTML'
      ? parseHtml(source)
      : { ok: true as const, text: source.trim(), entities: [], breaches: [] };
  if (!parsed.ok) return { ok: false, error_code: 400, description: parsed.description };
  for (const breach of parsed.breaches) world.violate(breach);
  if (parsed.text === '') return refuse(400, 'message text is empty');
  if (parsed.text.length > MESSAGE_UNITS) return refuse(400, tooLong);
  return { text: parsed.text, entities: parsed.entities, source };
}

/** 429 once a chat gets more than its share; the wait is in whole seconds. */
export function flooded(chatId: number, world: World): Answer | undefined {
  const now = nowMs();
  const recent = (world.recentSends.get(chatId) ?? []).filter((at) => now - at < 1000);
  if (recent.length >= world.perChatPerSecond) {
    const retry_after = 1;
    const description = `Too Many Requests: retry after ${retry_after}`;
    return { ok: false, error_code: 429, description, parameters: { retry_after } };
  }
  world.recentSends.set(chatId, [...recent, now]);
  return undefined;
}

function sendMessage(payload: Payload, world: World): Answer {
  const target = targetOf(payload, world);
  if (isAnswer(target)) return target;
  const body = bodyOf(payload, world, 'message is too long');
  if (isAnswer(body)) return body;
  const reply = payload['reply_parameters'];
  const replyTo = isRecord(reply) ? Number(reply['message_id']) : undefined;
  const known = world.ledger.chat(target.id)?.messages.some(({ id }) => id === replyTo);
  const isOptional = isRecord(reply) && reply['allow_sending_without_reply'] === true;
  if (replyTo !== undefined && !known && !isOptional) {
    return refuse(400, 'message to be replied not found');
  }
  const buttons = buttonsOf(payload);
  if (buttons === 'invalid') return refuse(400, 'BUTTON_DATA_INVALID');
  const limited = flooded(target.id, world);
  if (limited !== undefined) return limited;
  const seen = world.ledger.add(target.id, {
    ...body,
    from: 'bot',
    parseMode: payload['parse_mode'] === 'HTML' ? 'HTML' : undefined,
    replyTo: known ? replyTo : undefined,
    thread: threadOf(payload),
    buttons,
  });
  return ok(asMessage(target.id, seen.id, seen.text, world));
}

function editMessage(payload: Payload, world: World): Answer {
  const target = targetOf(payload, world);
  if (isAnswer(target)) return target;
  const id = Number(payload['message_id']);
  const old = world.ledger.chat(target.id)?.messages.find((message) => message.id === id);
  if (old === undefined) return refuse(400, 'message to edit not found');
  if (old.from !== 'bot') return refuse(400, "message can't be edited");
  const body = bodyOf(payload, world, 'MESSAGE_TOO_LONG');
  if (isAnswer(body)) return body;
  const buttons = buttonsOf(payload);
  if (buttons === 'invalid') return refuse(400, 'BUTTON_DATA_INVALID');
  const isSame =
    sameButtons(buttons, old.buttons) &&
    body.text === old.text &&
    JSON.stringify(body.entities) === JSON.stringify(old.entities);
  if (isSame) return unmodified(world);
  const limited = flooded(target.id, world);
  if (limited !== undefined) return limited;
  const parseMode = payload['parse_mode'] === 'HTML' ? 'HTML' : undefined;
  world.ledger.change(target.id, id, { ...body, parseMode, buttons });
  return ok(asMessage(target.id, id, body.text, world));
}

/** Counted: a bot that asks for it has sent a request for nothing. */
function unmodified(world: World): Answer {
  world.unmodified += 1;
  return refuse(
    400,
    'message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message',
  );
}

function editButtons(payload: Payload, world: World): Answer {
  const target = targetOf(payload, world);
  if (isAnswer(target)) return target;
  const id = Number(payload['message_id']);
  const old = world.ledger.chat(target.id)?.messages.find((message) => message.id === id);
  if (old === undefined) return refuse(400, 'message to edit not found');
  const buttons = buttonsOf(payload);
  if (buttons === 'invalid') return refuse(400, 'BUTTON_DATA_INVALID');
  if (sameButtons(buttons, old.buttons)) return unmodified(world);
  world.ledger.change(target.id, id, { buttons });
  return ok(asMessage(target.id, id, old.text, world));
}

function answerQuery(payload: Payload, world: World): Answer {
  const text = String(payload['text'] ?? '');
  if (text.length > TOAST_UNITS) {
    world.violate(`answerCallbackQuery with ${text.length} characters`);
    return refuse(400, 'MESSAGE_TOO_LONG');
  }
  const known = world.pressed.delete(String(payload['callback_query_id']));
  if (known) world.toasts.push(text);
  world.ledger.changed();
  return known
    ? ok(true)
    : refuse(400, 'query is too old and response timeout expired or query ID is invalid');
}

/** Bots may set one emoji of a fixed list. */
function react(payload: Payload, world: World): Answer {
  const target = targetOf(payload, world);
  if (isAnswer(target)) return target;
  const given = payload['reaction'];
  const signs = Array.isArray(given) ? given : [];
  const [sign] = signs.map((one: unknown) => (isRecord(one) ? one['emoji'] : undefined));
  const isGood =
    signs.length === 0 ||
    (signs.length === 1 && TELEGRAM_REACTIONS.some((emoji) => emoji === sign));
  if (!isGood) return refuse(400, 'REACTION_INVALID');
  const id = Number(payload['message_id']);
  const reaction = sign === undefined ? undefined : String(sign);
  const changed = world.ledger.sign(target.id, id, reaction);
  return changed ? ok(true) : refuse(400, 'message to react not found');
}

function deleteMessage(payload: Payload, world: World): Answer {
  const target = targetOf(payload, world);
  if (isAnswer(target)) return target;
  const id = Number(payload['message_id']);
  if (world.undeletable.has(id)) return refuse(400, "message can't be deleted");
  const gone = world.ledger.remove(target.id, id);
  return gone ? ok(true) : refuse(400, 'message to delete not found');
}

function sendAction(payload: Payload, world: World): Answer {
  const target = targetOf(payload, world);
  if (isAnswer(target)) return target;
  if (payload['action'] !== 'typing') return refuse(400, 'wrong parameter action in request');
  const thread = threadOf(payload);
  world.ledger.open(target.id).actions.push({ action: 'typing', at: nowMs(), thread });
  world.ledger.changed();
  return ok(true);
}

function setCommands(payload: Payload, world: World): Answer {
  const commands = payload['commands'];
  const isGood =
    Array.isArray(commands) &&
    commands.length <= 100 &&
    commands.every(
      (item: unknown) =>
        isRecord(item) &&
        /^[a-z0-9_]{1,32}$/.test(String(item['command'])) &&
        /^.{1,256}$/.test(String(item['description'])),
    );
  if (!isGood) return refuse(400, 'BOT_COMMAND_INVALID');
  world.commands.splice(0, world.commands.length, ...commands);
  world.ledger.changed();
  return ok(true);
}

export function asMessage(chatId: number, id: number, text: string, world: World) {
  return {
    message_id: id,
    from: { ...world.bot, is_bot: true },
    chat: chatObject(world.ledger.open(chatId)),
    date: Math.floor(Date.now() / 1000),
    text,
  };
}

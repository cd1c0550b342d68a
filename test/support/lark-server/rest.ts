// The REST calls of open.feishu.cn that we use, as strict as the documentation: an unknown call or field
// is a violation.

import { randomUUID } from 'node:crypto';
import { readCard } from './cards.ts';
import type { LarkMessage } from './contract.ts';
import { parseForm } from './multipart.ts';
import type { World } from './world.ts';

export type RestRequest = {
  readonly method: string;
  /** Behind `/open-apis/`. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
};

export type RestAnswer = { readonly status: number; readonly body: unknown | Buffer };

export type RestContext = {
  readonly world: World;
  readonly appId: string;
  readonly appSecret: string;
  readonly botId: string;
  readonly tokens: Set<string>;
  readonly secrets: string[];
  violate(text: string): void;
};

const ok = (data: unknown = {}): RestAnswer => ({
  status: 200,
  body: { code: 0, msg: 'success', data },
});
const no = (code: number, msg: string, status = 400): RestAnswer => ({
  status,
  body: { code, msg },
});

export function answerRest(request: RestRequest, context: RestContext): RestAnswer {
  const { method, path } = request;
  if (path === 'auth/v3/tenant_access_token/internal') return issueToken(request, context);
  const token = String(request.headers['authorization'] ?? '').replace(/^Bearer /, '');
  if (!context.tokens.has(token)) return no(99991663, 'Invalid access token');
  for (const [verb, pattern, route] of ROUTES) {
    const match = pattern.exec(path);
    if (verb === method && match !== null)
      return route(request, context, match[1] ?? '', match[2] ?? '');
  }
  context.violate(`unknown call ${method} ${path}`);
  return no(404, 'not found', 404);
}

function issueToken({ body }: RestRequest, context: RestContext): RestAnswer {
  const { app_id: id, app_secret: secret } = JSON.parse(body.toString());
  if (id !== context.appId) return { status: 200, body: { code: 10003, msg: 'invalid param' } };
  if (secret !== context.appSecret) {
    return { status: 200, body: { code: 10014, msg: 'app secret invalid' } };
  }
  const token = `t-${randomUUID()}`;
  context.tokens.add(token);
  context.secrets.push(token);
  return { status: 200, body: { code: 0, msg: 'ok', tenant_access_token: token, expire: 7200 } };
}

type Route = (
  request: RestRequest,
  context: RestContext,
  first: string,
  second: string,
) => RestAnswer;

const ROUTES: readonly (readonly [string, RegExp, Route])[] = [
  [
    'GET',
    /^bot\/v3\/info$/,
    (_request, { botId }) => ({
      status: 200,
      body: { code: 0, msg: 'ok', bot: { app_name: 'Nano', open_id: botId, activate_status: 2 } },
    }),
  ],
  [
    'GET',
    /^contact\/v3\/users\/(\w+)$/,
    (_request, { world }, id) => {
      const person = world.people.get(id);
      return person === undefined
        ? no(41050, 'no user authority')
        : ok({ user: { name: person.name } });
    },
  ],
  [
    'GET',
    /^im\/v1\/chats\/(\w+)$/,
    (_request, { world }, id) => {
      const chat = world.chats.get(id);
      if (chat === undefined) return no(232006, 'no such chat');
      return ok({ name: chat.title, chat_mode: chat.kind });
    },
  ],
  [
    'GET',
    /^im\/v1\/messages\/(\w+)$/,
    ({ query }, { world, appId }, id) => {
      const message = world.messages.get(id);
      if (message === undefined || message.isDeleted) return no(230110, 'the message was deleted');
      return ok({ items: [world.shown(message, appId, query.get('card_msg_content_type'))] });
    },
  ],
  ['POST', /^im\/v1\/messages$/, create],
  ['POST', /^im\/v1\/messages\/(\w+)\/reply$/, reply],
  ['PATCH', /^im\/v1\/messages\/(\w+)$/, patch],
  [
    'DELETE',
    /^im\/v1\/messages\/(\w+)$/,
    (_request, { world }, id) => {
      const message = world.messages.get(id);
      if (message === undefined || message.isDeleted)
        return no(230011, 'the message was withdrawn');
      if (message.from !== 'bot') return no(230026, 'no permission to recall');
      message.isDeleted = true;
      return ok();
    },
  ],
  [
    'POST',
    /^im\/v1\/messages\/(\w+)\/reactions$/,
    ({ body }, { world }, id) => {
      const { reaction_type: kind } = JSON.parse(body.toString());
      const reaction = { id: world.id('rea'), type: String(kind.emoji_type), by: 'bot' };
      world.messages.get(id)?.reactions.push(reaction);
      return ok({ reaction_id: reaction.id });
    },
  ],
  [
    'GET',
    /^im\/v1\/messages\/(\w+)\/reactions$/,
    (_request, { world, appId }, id) => {
      const items = (world.messages.get(id)?.reactions ?? []).map((one) => ({
        reaction_id: one.id,
        operator: { operator_id: one.by === 'bot' ? appId : one.by },
      }));
      return ok({ items, has_more: false });
    },
  ],
  [
    'DELETE',
    /^im\/v1\/messages\/(\w+)\/reactions\/(\w+)$/,
    (_request, { world }, id, reaction) => {
      const all = world.messages.get(id)?.reactions ?? [];
      all.splice(
        all.findIndex((one) => one.id === reaction),
        1,
      );
      return ok();
    },
  ],
  [
    'POST',
    /^im\/v1\/images$/,
    (request, { world }) => {
      const form = parseForm(request.body, String(request.headers['content-type']));
      if (form.get('image_type')?.toString() !== 'message') return no(234001, 'invalid param');
      const content = form.get('image') ?? Buffer.alloc(0);
      return ok({ image_key: world.file('img_', '', content, 'image') });
    },
  ],
  [
    'POST',
    /^im\/v1\/files$/,
    (request, { world, violate }) => {
      const form = parseForm(request.body, String(request.headers['content-type']));
      const kind = form.get('file_type')?.toString() ?? '';
      const name = form.get('file_name')?.toString() ?? '';
      if (!['opus', 'mp4', 'stream'].includes(kind) || name === '')
        return no(234001, 'invalid param');
      const content = form.get('file') ?? Buffer.alloc(0);
      if (kind === 'opus' && !content.subarray(0, 100).includes('OpusHead')) {
        violate('a voice message that is not Opus');
      }
      return ok({ file_key: world.file('file_', name, content, kind) });
    },
  ],
  [
    'GET',
    /^im\/v1\/messages\/(\w+)\/resources\/(\w+)$/,
    ({ query }, { world }, id, key) => {
      const isThere = world.messages.get(id)?.content.includes(key) === true;
      const isRight = query.get('type') === (key.startsWith('img_') ? 'image' : 'file');
      const content = world.files.get(key)?.content;
      if (!isThere || !isRight || content === undefined) return no(234003, 'file not in msg');
      return { status: 200, body: content };
    },
  ],
];

type Posted = {
  readonly receive_id?: string;
  readonly msg_type?: string;
  readonly content?: string;
  readonly uuid?: string;
  readonly reply_in_thread?: boolean;
};

function create({ body, query }: RestRequest, context: RestContext): RestAnswer {
  const posted = readPosted(body, ['receive_id', 'msg_type', 'content', 'uuid'], context);
  const { world } = context;
  const kind = query.get('receive_id_type');
  const person = world.people.get(posted.receive_id ?? '');
  const chat =
    kind === 'open_id' && person !== undefined
      ? world.direct(person)
      : world.chats.get(posted.receive_id ?? '');
  if (chat === undefined) return no(230001, 'invalid receive_id');
  return put(posted, { chat: chat.id }, context);
}

function reply({ body }: RestRequest, context: RestContext, id: string): RestAnswer {
  const known = ['msg_type', 'content', 'uuid', 'reply_in_thread'];
  const posted = readPosted(body, known, context);
  const parent = context.world.messages.get(id);
  if (parent === undefined || parent.isDeleted) return no(230011, 'the message was withdrawn');
  const thread = posted.reply_in_thread
    ? (parent.thread ?? context.world.id('omt_'))
    : parent.thread;
  const place = { chat: parent.chat, parent: parent.id, root: parent.root ?? parent.id };
  return put(posted, { ...place, ...(thread === undefined ? {} : { thread }) }, context);
}

function patch({ body }: RestRequest, context: RestContext, id: string): RestAnswer {
  const { content = '' } = readPosted(body, ['content'], context);
  const message = context.world.messages.get(id);
  if (message === undefined || message.isDeleted) return no(230011, 'the message was withdrawn');
  if (message.type !== 'interactive' || message.from !== 'bot')
    return no(230001, 'no card of ours');
  const refusal = cardRefusal(content, context);
  if (refusal !== undefined) return refusal;
  message.content = content;
  return ok();
}

function readPosted(body: Buffer, known: readonly string[], { violate }: RestContext): Posted {
  const posted = JSON.parse(body.toString()) as Posted;
  for (const name of Object.keys(posted))
    if (!known.includes(name)) violate(`unknown field ${name}`);
  if ((posted.uuid?.length ?? 0) > 50) violate('a uuid of more than 50 characters');
  return posted;
}

/** What a file has to be uploaded as, by the type of the message it goes out in. */
const UPLOADED_AS: Readonly<Record<string, string>> = {
  image: 'image',
  audio: 'opus',
  media: 'mp4',
  file: 'stream',
};
const UUID_LIFETIME_MS = 3_600_000;

/** In one chat one uuid makes one message within an hour. */
function put(
  { msg_type: type = '', content = '', uuid }: Posted,
  place: Pick<LarkMessage, 'chat'> & Partial<LarkMessage>,
  context: RestContext,
): RestAnswer {
  const { world } = context;
  const since = Date.now() - UUID_LIFETIME_MS;
  const same = [...world.messages.values()].find(
    (one) =>
      uuid !== undefined && one.uuid === uuid && one.chat === place.chat && one.createdAt > since,
  );
  if (same !== undefined) return ok({ message_id: same.id });
  if (type === 'interactive') {
    const refusal = cardRefusal(content, context);
    if (refusal !== undefined) return refusal;
  } else {
    const key = Object.values(JSON.parse(content) as Record<string, string>)[0] ?? '';
    const file = world.files.get(key);
    if (file === undefined) return no(230001, 'invalid key');
    if (file.kind !== UPLOADED_AS[type]) return no(230055, 'the type of the file does not match');
  }
  const named = uuid === undefined ? {} : { uuid };
  return ok({ message_id: world.add({ ...place, ...named, from: 'bot', type, content }).id });
}

function cardRefusal(content: string, { violate }: RestContext): RestAnswer | undefined {
  try {
    readCard(content);
    return undefined;
  } catch (error) {
    violate(String(error));
    return no(230099, 'Failed to create card content');
  }
}

// Calls to the Bot API: grammy's typed client over our own connection, and files, which travel in
// forms of their own.

import { randomUUID } from 'node:crypto';
import type { ApiMethods, Opts } from 'grammy/types';
import { Api, type Transformer } from 'grammy/web';
import { type Line, type LineOptions, openLine } from './line.ts';

type Method =
  | 'getUpdates'
  | 'deleteWebhook'
  | 'setMyCommands'
  | 'sendMessage'
  | 'editMessageText'
  | 'editMessageReplyMarkup'
  | 'deleteMessage'
  | 'answerCallbackQuery'
  | 'setMessageReaction'
  | 'getFile'
  | 'sendChatAction';

/** The methods we use, by grammy's types, with the platform's own AbortSignal. */
export type BotApi = {
  readonly [M in Method]: (
    payload: Opts<M>,
    signal: AbortSignal,
  ) => Promise<ReturnType<ApiMethods[M]>>;
} & { readonly getMe: (signal: AbortSignal) => Promise<ReturnType<ApiMethods['getMe']>> };

/** A file in a form, under the name by which the fields refer to it. */
export type FormFile = {
  readonly field: string;
  readonly name: string;
  readonly mimeType: string;
  readonly content: Uint8Array;
};

export type BotLink = Pick<Line, 'file'> & {
  readonly api: BotApi;
  /** Calls a method with files. @throws BotCallError */
  upload(
    method: string,
    fields: Readonly<Record<string, unknown>>,
    files: readonly FormFile[],
    signal: AbortSignal,
  ): Promise<unknown>;
};

/** Longest wait for any answer but that of a poll. */
const CALL_DEADLINE_MS = 30_000;
/** 50 MB over a slow line. */
const UPLOAD_DEADLINE_MS = 4 * 60_000;
/** A poll is given this much beyond the time it asked Telegram to wait. */
const POLL_GRACE_MS = 15_000;

/** @throws ChannelError for an address that is none; every method throws BotCallError */
export function createBotLink(options: LineOptions): BotLink {
  const line = openLine(options);
  const transport: Transformer = (_next, method, payload, signal) =>
    line.post(method, {
      body: Buffer.from(JSON.stringify(payload)),
      contentType: 'application/json',
      deadlineMs: deadlineOf(payload),
      signal: signal as AbortSignal | undefined,
    });
  const api = new Api(options.token, { apiRoot: line.origin });
  api.config.use(transport);
  return {
    // grammy's types name a polyfill's AbortSignal; ours goes straight to the transport.
    api: api.raw as unknown as BotApi,
    file: line.file,
    async upload(method, fields, files, signal) {
      const boundary = randomUUID();
      const { result } = await line.post(method, {
        body: formBody(fields, files, boundary),
        contentType: `multipart/form-data; boundary=${boundary}`,
        deadlineMs: UPLOAD_DEADLINE_MS,
        signal,
      });
      return result;
    },
  };
}

/** @throws ChannelError for an address that is none; every method throws BotCallError */
export const createBotApi = (options: LineOptions): BotApi => createBotLink(options).api;

function deadlineOf(payload: object): number {
  const isPoll = 'timeout' in payload && typeof payload.timeout === 'number';
  return isPoll ? Number(payload.timeout) * 1000 + POLL_GRACE_MS : CALL_DEADLINE_MS;
}

/** RFC 7578; a value that is not a text is JSON, as the Bot API wants it. */
function formBody(
  fields: Readonly<Record<string, unknown>>,
  files: readonly FormFile[],
  boundary: string,
): Buffer {
  const pieces: Uint8Array[] = [];
  const add = (disposition: string, type: string, content: Uint8Array) => {
    const head = `--${boundary}\r\ncontent-disposition: form-data; ${disposition}\r\n${type}\r\n`;
    pieces.push(Buffer.from(head), content, Buffer.from('\r\n'));
  };
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    add(`name="${name}"`, '', Buffer.from(text));
  }
  for (const { field, name, mimeType, content } of files) {
    const fileName = name.replace(/[\p{C}"\\/]/gu, '_');
    add(`name="${field}"; filename="${fileName}"`, `content-type: ${mimeType}\r\n`, content);
  }
  pieces.push(Buffer.from(`--${boundary}--\r\n`));
  return Buffer.concat(pieces);
}

// The HTTP the SDK speaks: its own client, without redirects and proxies, each call with a deadline. An
// error of that client holds the request with its secrets: it ends here, and a named one goes on.

import type { Agent } from 'node:http';
import { Readable } from 'node:stream';
import { defaultHttpInstance, type HttpInstance } from '@larksuiteoapi/node-sdk';
import { fieldsOf, parseJson } from '../../core/fields.ts';
import { callErrorOf, refusalOf } from './failures.ts';
import { at } from './fields.ts';

/** Longest wait for an answer that asks for no other. */
const CALL_DEADLINE_MS = 30_000;
/** Larger than any answer but a file, which is streamed. */
const MAX_ANSWER_BYTES = 20_000_000;
/** Larger than any refusal that comes in place of a file. */
const MAX_REFUSAL_BYTES = 64_000;

/** @throws LarkCallError from every call */
export function createHttp(agent: Agent, onAnswer: (url: string, body: unknown) => void) {
  const request = async (options: { readonly url?: string; readonly responseType?: string }) => {
    const isStream = options.responseType === 'stream';
    try {
      const answer: unknown = await defaultHttpInstance.request({
        timeout: CALL_DEADLINE_MS,
        ...(isStream ? { $return_headers: true } : { maxContentLength: MAX_ANSWER_BYTES }),
        ...options,
        maxRedirects: 0,
        proxy: false,
        httpAgent: agent,
        httpsAgent: agent,
      } as Parameters<typeof defaultHttpInstance.request>[0]);
      const body = isStream ? await fileOf(answer) : answer;
      onAnswer(options.url ?? '', body);
      return body;
    } catch (error) {
      throw callErrorOf(isStream ? await withBodyRead(error) : error);
    }
  };
  const post = (url: string, data: unknown, options: object = {}) =>
    request({ ...options, ...{ method: 'post', url, data } });
  // The SDK calls these two only.
  return { request, post } as unknown as HttpInstance;
}

/**
 * The file of an answer with its headers. Lark may refuse with HTTP 200 as well: JSON that is no file.
 * @throws LarkCallError
 */
async function fileOf(answer: unknown): Promise<unknown> {
  const [stream, headers] = [at(answer, 'data'), at(answer, 'headers')];
  const isJson = String(at(headers, 'content-type') ?? '').startsWith('application/json');
  const isFile = at(headers, 'content-disposition') !== undefined;
  if (!(stream instanceof Readable) || !isJson || isFile) return stream;
  const { head, rest } = await headOf(stream);
  const body = rest === undefined ? fieldsOf(parseJson(head.toString())) : undefined;
  const isAnswer = Number.isInteger(body?.['code']) && typeof body?.['msg'] === 'string';
  const refusal = isAnswer ? refusalOf(body, 200) : undefined;
  if (refusal !== undefined) throw refusal;
  return Readable.from(rest === undefined ? [head] : joined(head, rest), { objectMode: false });
}

/** The error of a stream with what Lark wrote into it, as the errors of other calls hold it. */
async function withBodyRead(error: unknown): Promise<unknown> {
  const response = fieldsOf(at(error, 'response'));
  const stream = response?.['data'];
  if (!(stream instanceof Readable)) return error;
  const { head, rest } = await headOf(stream).catch(() => ({
    head: Buffer.alloc(0),
    rest: stream,
  }));
  stream.destroy();
  const data = rest === undefined ? parseJson(head.toString()) : undefined;
  return { response: { ...response, data } };
}

/** As much as a refusal can hold; `rest` where there is more. */
async function headOf(stream: Readable) {
  const pieces: Buffer[] = [];
  let size = 0;
  const rest: AsyncIterator<Uint8Array> = stream[Symbol.asyncIterator]();
  while (size <= MAX_REFUSAL_BYTES) {
    const { done, value } = await rest.next();
    if (done === true) return { head: Buffer.concat(pieces), rest: undefined };
    pieces.push(Buffer.from(value));
    size += value.length;
  }
  return { head: Buffer.concat(pieces), rest };
}

async function* joined(head: Uint8Array, rest: AsyncIterator<Uint8Array>) {
  yield head;
  yield* { [Symbol.asyncIterator]: () => rest };
}

const nothing = () => undefined;
/** For those parts of the SDK that throw what they would log. */
export const SILENT_SDK = {
  ...{ error: nothing, warn: nothing, info: nothing, debug: nothing, trace: nothing },
};

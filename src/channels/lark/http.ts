// The HTTP the SDK speaks: its own client, without redirects and proxies, each call with a deadline. An
// error of that client holds the request with its secrets: it ends here, and a named one goes on.

import type { Agent } from 'node:http';
import { defaultHttpInstance, type HttpInstance } from '@larksuiteoapi/node-sdk';
import { callErrorOf } from './failures.ts';

/** Longest wait for an answer that asks for no other. */
const CALL_DEADLINE_MS = 30_000;
/** Larger than any answer but a file, which is streamed. */
const MAX_ANSWER_BYTES = 20_000_000;

/** @throws LarkCallError from every call */
export function createHttp(agent: Agent, onAnswer: (url: string, body: unknown) => void) {
  const request = async (options: { readonly url?: string; readonly responseType?: string }) => {
    try {
      const body: unknown = await defaultHttpInstance.request({
        timeout: CALL_DEADLINE_MS,
        ...(options.responseType === 'stream' ? {} : { maxContentLength: MAX_ANSWER_BYTES }),
        ...options,
        maxRedirects: 0,
        proxy: false,
        httpAgent: agent,
        httpsAgent: agent,
      } as Parameters<typeof defaultHttpInstance.request>[0]);
      onAnswer(options.url ?? '', body);
      return body;
    } catch (error) {
      throw callErrorOf(error);
    }
  };
  const post = (url: string, data: unknown, options: object = {}) =>
    request({ ...options, ...{ method: 'post', url, data } });
  // The SDK calls these two only.
  return { request, post } as unknown as HttpInstance;
}

const nothing = () => undefined;
/** For those parts of the SDK that throw what they would log. */
export const SILENT_SDK = {
  ...{ error: nothing, warn: nothing, info: nothing, debug: nothing, trace: nothing },
};

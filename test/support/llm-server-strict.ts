// Checks of request bodies that both dialects of the model simulator share.

import { Refusal, type SentImage } from './llm-server-reply.ts';

export type Json = Readonly<Record<string, unknown>>;

const TOOL_NAME = /^[a-zA-Z0-9_-]{1,64}$/;

export function refuseUnless(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Refusal(message);
}

export function object(value: unknown, where: string): Json {
  refuseUnless(
    typeof value === 'object' && value !== null && !Array.isArray(value),
    `${where}: expected an object`,
  );
  return value as Json;
}

export function list(value: unknown, where: string): readonly unknown[] {
  refuseUnless(Array.isArray(value), `${where}: expected an array`);
  return value;
}

export function text(value: unknown, where: string): string {
  refuseUnless(typeof value === 'string', `${where}: expected a string`);
  return value;
}

export function onlyKeys(value: Json, allowed: readonly string[], where: string): void {
  const unknown = Object.keys(value).find((key) => !allowed.includes(key));
  refuseUnless(unknown === undefined, `${where}: unknown parameter '${unknown}'`);
}

export function positiveInteger(value: unknown, where: string): number {
  refuseUnless(Number.isInteger(value) && Number(value) > 0, `${where}: expected an integer >= 1`);
  return Number(value);
}

export function toolName(value: unknown, where: string): string {
  const name = text(value, where);
  refuseUnless(TOOL_NAME.test(name), `${where}: '${name}' does not match ${TOOL_NAME.source}`);
  return name;
}

const IMAGE_TYPES = ['image/jpeg', 'image/png', 'image/gif', 'image/webp'];
/** Bytes of base64; Anthropic's limit, the smallest of all. */
const MAX_IMAGE_CHARS = 5 * 1024 * 1024;
/** Looks for what is wrong: to match millions of right letters overflows the stack of the engine. */
const NO_BASE64 = /[^A-Za-z0-9+/=]|=[^=]|={3}/;

export function sentImage(mimeType: unknown, base64: unknown, where: string): SentImage {
  const type = text(mimeType, `${where}: media type`);
  const data = text(base64, `${where}: data`);
  refuseUnless(IMAGE_TYPES.includes(type), `${where}: unsupported image type '${type}'`);
  refuseUnless(data !== '' && !NO_BASE64.test(data), `${where}: not base64`);
  refuseUnless(data.length <= MAX_IMAGE_CHARS, `${where}: image exceeds 5 MB maximum`);
  return { mimeType: type, base64: data };
}

export function distinct(values: readonly string[], where: string): void {
  refuseUnless(new Set(values).size === values.length, `${where}: ids must be unique`);
}

/** Both are sets of ids: what a round called and what it was answered. */
export function pairing(calls: readonly string[], results: readonly string[], where: string): void {
  for (const id of calls) {
    refuseUnless(results.includes(id), `${where}: tool call '${id}' has no result`);
  }
  for (const id of results) {
    refuseUnless(calls.includes(id), `${where}: result '${id}' answers no tool call before it`);
  }
  distinct(results, where);
}

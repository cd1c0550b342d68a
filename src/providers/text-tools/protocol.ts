// The meaning of a JSON value in the protocol of tool calls in text: a call, the end of the work, an
// imitated result, a failed attempt at one of these, or anything else.

import { z } from 'zod';
import { isObject } from '../../lib/json/json.ts';
import { looseJson } from '../../lib/json/loose-json.ts';

export type SpokenCall = {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
};

export type Said =
  | { readonly kind: 'calls'; readonly calls: readonly SpokenCall[] }
  | { readonly kind: 'done'; readonly response: string }
  /** A result that only a tool could have given. */
  | { readonly kind: 'result' }
  /** `problem` is for the model. */
  | { readonly kind: 'broken'; readonly problem: string }
  | { readonly kind: 'other' };

const OTHER: Said = { kind: 'other' };
const argsSchema = z.record(z.string(), z.unknown());
const callSchema = z.object({ tool: z.string().min(1), args: argsSchema });
const doneSchema = z.object({ done: z.literal(true), response: z.unknown() });
/** The form most models were trained on, under its several names. */
const trainedSchema = z.strictObject({
  id: z.unknown().optional(),
  type: z.unknown().optional(),
  name: z.string().min(1),
  args: argsSchema,
});

const ARGS_NAMES = ['args', 'arguments', 'parameters', 'params', 'input'];
/** Keys that no ordinary answer begins with; what has them was meant for us. */
export const PROTOCOL_KEYS: readonly string[] = ['tool', 'done', 'tool_result'];
export const TRAINED_KEYS: readonly string[] = ['name', 'function', 'tool_calls'];
const SUSPICIOUS_KEYS: readonly string[] = [
  ...PROTOCOL_KEYS,
  ...['tool_calls', 'tool_call', 'tool_name', 'tool_input', 'tool_code', 'function_call'],
  ...['action', 'action_input'],
];

/** Whether it was meant for the program: a person is never shown it. */
export const isForTheProgram = (value: unknown): boolean =>
  Array.isArray(value)
    ? value.length > 0 && value.every(isForTheProgram)
    : isObject(value) && SUSPICIOUS_KEYS.some((key) => Object.hasOwn(value, key));

/** `isSpoken`: the model was told of the protocol, or sees it in its own earlier calls. */
export function readSaid(value: unknown, isSpoken: boolean): Said {
  if (Array.isArray(value)) return readList(value, isSpoken);
  if (!isObject(value)) return OTHER;
  if (isSpoken && Object.hasOwn(value, 'tool_result')) return { kind: 'result' };
  if (isSpoken && Object.hasOwn(value, 'done')) return readDone(value);
  if (isSpoken && typeof value['tool'] === 'string') return readCall(value);
  if (Array.isArray(value['tool_calls'])) return readList(value['tool_calls'], isSpoken);
  return readTrained(value);
}

function readList(values: readonly unknown[], isSpoken: boolean): Said {
  const said = values.map((value) => readSaid(value, isSpoken));
  const broken = said.find(({ kind }) => kind === 'broken');
  if (broken !== undefined) return broken;
  const calls = said.flatMap((one) => (one.kind === 'calls' ? one.calls : []));
  const areCalls = said.length > 0 && said.every(({ kind }) => kind === 'calls');
  return areCalls ? { kind: 'calls', calls } : OTHER;
}

function readDone(value: Readonly<Record<string, unknown>>): Said {
  const done = doneSchema.safeParse(value);
  if (!done.success) return { kind: 'broken', problem: problemOf(done.error) };
  const { response } = done.data;
  if (response === undefined) return { kind: 'broken', problem: 'response: is missing' };
  const text = typeof response === 'string' ? response : JSON.stringify(response, undefined, 2);
  return { kind: 'done', response: text };
}

function readCall(value: Readonly<Record<string, unknown>>): Said {
  const call = callSchema.safeParse({ tool: value['tool'], args: argumentsOf(value) });
  if (!call.success) return { kind: 'broken', problem: problemOf(call.error) };
  return { kind: 'calls', calls: [{ name: call.data.tool, args: call.data.args }] };
}

/** `{"name":...,"arguments":...}`, also inside of `function`. */
function readTrained(value: Readonly<Record<string, unknown>>): Said {
  const { function: inner, ...outer } = value;
  const flat = isObject(inner)
    ? { ...outer, ...inner }
    : { ...outer, name: outer['name'] ?? inner };
  const args = argumentsOf(flat);
  const others = Object.entries(flat).filter(([key]) => !ARGS_NAMES.includes(key));
  const call = trainedSchema.safeParse({ ...Object.fromEntries(others), args });
  if (!call.success) return OTHER;
  return { kind: 'calls', calls: [{ name: call.data.name, args: call.data.args }] };
}

/** Some write the object as a string once more. */
function argumentsOf(value: Readonly<Record<string, unknown>>): unknown {
  const given = ARGS_NAMES.filter((key) => Object.hasOwn(value, key)).map((key) => value[key])[0];
  return typeof given === 'string' ? (looseJson(given) ?? given) : given;
}

const problemOf = ({ issues }: z.ZodError): string =>
  issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; ');

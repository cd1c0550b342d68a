// Reads a router's decision, from strict to lenient: arguments of a call, a JSON object somewhere in a text,
// then forms that small models really write. What is none of them is no decision; nothing is guessed.

import { isObject, parseJson } from './fields.ts';
import { objectsIn, repaired, withoutThoughts } from './lenient-json.ts';
import { ROUTE_ACTIONS, type RouteDecision, routeDecisionSchema } from './route-decision.ts';

export type ReadDecision = {
  readonly decision: RouteDecision;
  /** By which rung of the ladder. */
  readonly by: 'call' | 'json' | 'lenient';
};

type Words = {
  /** Arguments of the calls of the decision, JSON. */
  readonly calls: readonly string[];
  readonly text: string;
};

const MAX_CHARS = 8000;
const USUAL_CONFIDENCE = 0.5;
/** Nothing is done that it could be unsure of. */
const RESPOND = { action: 'respond', confidence: 1 } as const;
const KEYS = ['action', 'target', 'args', 'confidence'] as const;
const ARG = /([A-Za-z_][\w-]*)\s*[=:]\s*("(?:[^"\\]|\\.)*"|'[^']*'|[^,;\n]+)/g;

export function readDecision({ calls, text }: Words): ReadDecision | undefined {
  const plain = withoutThoughts(text.slice(0, MAX_CHARS));
  const objects = objectsIn(plain);
  return (
    first(calls.map(parseJson), strict, 'call') ??
    first(objects.map(parseJson), strict, 'json') ??
    first([...calls, ...objects].map(repaired), chosenKeys, 'lenient') ??
    first([listIn(plain), linesIn(plain)], chosenKeys, 'lenient')
  );
}

function first(
  values: readonly unknown[],
  read: (value: unknown) => RouteDecision | undefined,
  by: ReadDecision['by'],
): ReadDecision | undefined {
  for (const value of values) {
    const decision = read(value);
    if (decision !== undefined) return { decision, by };
  }
  return undefined;
}

/** A key that some models send as they were shown one; ours is derived. */
function strict(value: unknown): RouteDecision | undefined {
  if (!isObject(value)) return undefined;
  const { idempotencyKey: _, ...decision } = value;
  const usual = decision['action'] === RESPOND.action ? RESPOND : {};
  return routeDecisionSchema.safeParse({ ...usual, ...decision }).data;
}

/** Leaves out what nobody asked for, and understands numbers and objects written as text. */
function chosenKeys(value: unknown): RouteDecision | undefined {
  if (!isObject(value)) return undefined;
  const known = Object.fromEntries(
    KEYS.flatMap((key) =>
      value[key] === undefined || value[key] === null ? [] : [[key, value[key]]],
    ),
  );
  const action = typeof known['action'] === 'string' ? actionOf(known['action']) : undefined;
  const args = typeof known['args'] === 'string' ? argsOf(known['args']) : known['args'];
  const isBare = action === RESPOND.action && known['confidence'] === undefined;
  const confidence = isBare ? RESPOND.confidence : confidenceOf(known['confidence']);
  const decision = { ...known, action, confidence, ...(args === undefined ? {} : { args }) };
  return routeDecisionSchema.safeParse(decision).data;
}

function actionOf(word: string): string | undefined {
  const plain = word
    .trim()
    .toLowerCase()
    .replace(/[\s-]+/g, '_');
  return ROUTE_ACTIONS.find((action) => action === plain);
}

function confidenceOf(value: unknown): number {
  if (typeof value === 'number') return value > 1 && value <= 100 ? value / 100 : value;
  if (typeof value !== 'string') return USUAL_CONFIDENCE;
  const read = /^\s*(\d+(?:\.\d+)?)\s*(%?)\s*$/.exec(value);
  if (read === null) return USUAL_CONFIDENCE;
  const number = Number(read[1]);
  return read[2] === '%' || number > 1 ? number / 100 : number;
}

function argsOf(text: string): Readonly<Record<string, unknown>> {
  const [json] = objectsIn(text).map(repaired);
  if (isObject(json)) return json;
  const pairs = [...text.matchAll(ARG)].map(([, key = '', value = '']) => [key, unquoted(value)]);
  return Object.fromEntries(pairs);
}

const unquoted = (text: string) => text.trim().replace(/^(["'])([\s\S]*)\1$/, '$2');

/** `tool, web_fetch, {"url": "..."}, 0.8`, also between braces. */
function listIn(text: string): unknown {
  const list =
    /^\s*[{[(]?\s*"?(\w+)"?\s*,\s*"?([\w.-]*)"?\s*(?:,\s*(\{[\s\S]*\}))?\s*(?:,\s*([\d.]+%?))?\s*[}\])]?\s*$/;
  const read = list.exec(text.trim());
  if (read === null) return undefined;
  const [, action, target, args, confidence] = read;
  return { action, target, args, confidence };
}

/** `action: tool` and so on, a line each or behind one another. */
function linesIn(text: string): unknown {
  const said = (key: string) =>
    new RegExp(
      `["'*]*\\b${key}\\b["'*]*\\s*[:=]\\s*["'*]*([\\w.% -]+?)["'*]*\\s*(?:[,;\\n}]|$)`,
      'i',
    ).exec(text)?.[1];
  const action = said('action');
  if (action === undefined) return undefined;
  const args = /["'*]*\bargs?(?:uments)?\b["'*]*\s*[:=]\s*(\{[\s\S]*\}|[^\n]*)/i.exec(text)?.[1];
  return { action, target: said('target'), args, confidence: said('confidence') };
}

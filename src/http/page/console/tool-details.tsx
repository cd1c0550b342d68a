// A tool call in full, and what an answer took: in the inbox and in the chat.

import { t } from '/texts.js';
import type { ShownStep, ShownTurn } from '../../../features/conversations/rules/views.ts';
import { moneyText } from './parts.tsx';

const SECOND_MS = 1000;
const MINUTE_MS = 60_000;

export type ToolStep = Extract<ShownStep, { kind: 'tool' }>;

/** Its arguments, its result, and how long it took. */
export function ToolDetails({ step }: { readonly step: ToolStep }) {
  return (
    <>
      {step.arguments !== '' && (
        <>
          <p class="soft">{t`Arguments`}</p>
          <pre dir="auto">{readable(step.arguments)}</pre>
        </>
      )}
      {step.result !== undefined && (
        <>
          <p class="soft">
            {step.tookMs === undefined ? t`Result` : t`Result after ${lengthText(step.tookMs)}`}
          </p>
          <pre dir="auto">{step.result}</pre>
        </>
      )}
    </>
  );
}

/** How long a part of the work took. */
export function lengthText(ms: number): string {
  if (ms < SECOND_MS) return t`${Math.round(ms)} ms`;
  return ms < MINUTE_MS
    ? t`${(ms / SECOND_MS).toFixed(1)} s`
    : t`${Math.round(ms / MINUTE_MS)} min`;
}

/** JSON with line breaks; invalid JSON as the model wrote it. */
function readable(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** The models, tokens and cost of an answer. */
export function turnFacts({ models, calls, tokens, micros }: ShownTurn, currency: string): string {
  return [
    ...models,
    ...(calls === 0 ? [] : [calls === 1 ? t`1 model call` : t`${calls} model calls`]),
    ...(tokens === 0 ? [] : [t`${tokens.toLocaleString()} tokens`]),
    ...(micros === 0 ? [] : [moneyText(micros, currency)]),
  ].join(' · ');
}

// Small words that the parts of the supervisor share.

import { wrapUntrusted } from '../../kernel/message/untrusted.ts';
import { newBoundary } from '../../lib/boundary.ts';
import type { RoleAnswer } from './ask-role.ts';
import type { Speaker } from './mode.ts';
import type { RoleModel } from './role-health.ts';
import type { DeclaredAgent } from './rules/declared-agent.ts';

/** Marks words of others as such. */
export type MarkForeign = (what: string, text: string) => string;

export const markForeign: MarkForeign = (what, text) =>
  wrapUntrusted(what, [{ text }], newBoundary());

export const speakerOf = ({ model, usage }: RoleAnswer): Speaker =>
  usage === undefined ? { model } : { model, usage };

/** `main`: the model of the conversation. */
export function roleOf(
  { name, model }: DeclaredAgent,
  models: { fast(model: string): string },
  main: string,
): RoleModel {
  const named = model === 'main' ? main : model === 'fast' ? models.fast(main) : model;
  return { role: `specialist:${name}`, model: named };
}

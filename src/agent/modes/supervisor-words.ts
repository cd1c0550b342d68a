// Small words that the parts of the supervisor share.

import { wrapUntrusted } from '../../core/untrusted.ts';
import { newBoundary } from '../../lib/boundary.ts';
import type { RoleAnswer } from './ask-role.ts';
import type { Speaker } from './mode.ts';

/** Marks words of others as such. */
export type MarkForeign = (what: string, text: string) => string;

export const markForeign: MarkForeign = (what, text) =>
  wrapUntrusted(what, [{ text }], newBoundary());

export const speakerOf = ({ model, usage }: RoleAnswer): Speaker =>
  usage === undefined ? { model } : { model, usage };

// What people are told of the models that share the work.

import { ProviderError } from '../../core/errors.ts';
import type { ModelRegistry } from '../../providers/provider.ts';
import { type RoleModel, titleOf } from './role-health.ts';

/** A sentence about a model that cannot be asked. */
export function missing(
  models: () => ModelRegistry,
  key: string,
  model: string,
  isNeeded: boolean,
): readonly string[] {
  if (model === '') return isNeeded ? [`${key} names no model`] : [];
  try {
    models().resolve(model);
    return [];
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    return [`${key}: ${error.userText ?? `${model} is served by nobody`}`];
  }
}

/** For the person whose turn finds out. */
export const degradedNotice = (who: RoleModel) =>
  `The ${titleOf(who)} does not do its part now; I go on with the main model and its tools.`;

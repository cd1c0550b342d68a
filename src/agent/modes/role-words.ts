// What people are told of the models that share the work, and what these wrote.

import { ProviderError } from '../../core/errors.ts';
import { withFenceClosed } from '../../core/open-fence.ts';
import type { ModelRegistry } from '../../providers/provider.ts';
import type { RoleAnswer } from './ask-role.ts';
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

const CUT_OFF = '[It ends here, because the limit of its length was reached.]';

/** To the letter; what was cut off says so, and a refusal is no result. */
export function writtenBy({ text: all, stop }: Pick<RoleAnswer, 'text' | 'stop'>): string {
  const text = all.replace(/^(?:[^\S\n]*\n)+/, '').trimEnd();
  if (text === '' || stop === 'refused') return '';
  return stop === 'length' ? `${withFenceClosed(text)}\n\n${CUT_OFF}` : text;
}

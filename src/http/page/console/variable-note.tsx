// Says that an environment variable sets a setting: what is saved in the file does not count then.

import { t } from '/texts.js';
import type { ShownConfiguration } from '../../../features/configuration/rules/views.ts';
import { isWithin } from './configuration-fields.ts';

type Props = Pick<ShownConfiguration, 'variables'> & {
  /** A setting that the variable sets as a whole, in part, or with its section. */
  readonly path: string;
};

export function VariableNote({ variables, path }: Props) {
  const variable = variables.find((one) => isWithin(one.path, path) || isWithin(path, one.path));
  if (variable === undefined) return null;
  return (
    <p class="soft">{t`Set by the environment variable ${variable.name}, which takes precedence.`}</p>
  );
}

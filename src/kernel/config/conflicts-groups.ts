// What may be wrong with the names by which the agent is called in groups.

import { isCallName } from '../access/group-names.ts';
import type { ConfigProblem } from '../message/errors.ts';

export function strangeCallNames(
  section: string,
  names: readonly string[],
): readonly ConfigProblem[] {
  return names.flatMap((name, index) => {
    if (isCallName(name)) return [];
    const problem = `"${name}" is no name: it has no letter or digit`;
    const remedy = 'Write plain words; * stands for any letters of a word.';
    return [{ path: `${section}.groupNames.${index}`, problem, remedy }];
  });
}

// What the checks of settings give: a problem with its path and a remedy, or nothing.

import type { ConfigProblem } from '../message/errors.ts';

export type Problems = readonly ConfigProblem[];

export const unless = (isFine: boolean, path: string, problem: string, remedy: string): Problems =>
  isFine ? [] : [{ path, problem, remedy }];

/** For each item of a list that is not as it should be. */
export const strangeItems = <Item>(
  path: string,
  items: readonly Item[],
  isFine: (item: Item) => boolean,
  problemOf: (item: Item) => string,
  remedy: string,
): Problems =>
  items.flatMap((item, index) => unless(isFine(item), `${path}.${index}`, problemOf(item), remedy));

export const isWebAddress = (url: string) => /^https?:$/.test(URL.parse(url)?.protocol ?? '');

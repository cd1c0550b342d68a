// Templates with loops, conditions and filters, in Liquid (liquidjs.com): values only. No code, no
// files and no assignments, within limits of time and memory.

import { Liquid, type Template } from 'liquidjs';
import type { JsonObject } from '../../../kernel/config/json.ts';
import { t } from '../../../lib/texts.ts';

const TAGS = ['if', 'unless', 'case', 'for', 'break', 'continue', 'comment', 'raw'];
const MAX_TEMPLATE_CHARS = 50_000;
const MAX_RENDER_MS = 300;
/** Of strings and lists that a template makes. */
const MAX_ALLOCATED = 2_000_000;
const WITH_FILTER = /\{\{[^{}]*\|[^{}]*\}\}/;
const UNDEFINED = /undefined variable: ([^,\s]+)/;

/** A template of plain placeholders needs none of this. */
export const hasLogic = (template: string): boolean =>
  template.includes('{%') || WITH_FILTER.test(template);

/** What stands at the top of a template: text, a placeholder, or a whole loop or condition. */
type Part = {
  /** The values that it reads. */
  readonly roots: readonly string[];
  readonly template: Template;
};

/** `textOf`: how a value is written. */
function engineFor(textOf: (value: unknown) => string): Liquid {
  const engine = new Liquid({
    ...{ strictFilters: true, strictVariables: true, lenientIf: true, ownPropertyOnly: true },
    ...{ parseLimit: MAX_TEMPLATE_CHARS, renderLimit: MAX_RENDER_MS, memoryLimit: MAX_ALLOCATED },
    templates: {},
    outputEscape: textOf,
  });
  for (const tag of Object.keys(engine.tags)) if (!TAGS.includes(tag)) delete engine.tags[tag];
  return engine;
}

function partsOf(engine: Liquid, template: string): readonly Part[] {
  return engine.parse(template).map((part) => {
    const paths = engine.globalVariableSegmentsSync([part]);
    return { roots: [...new Set(paths.flatMap(rootsIn))], template: part };
  });
}

/** An index may be a path of its own. */
function rootsIn(path: unknown): readonly string[] {
  if (!Array.isArray(path)) return [];
  const [root, ...rest]: readonly unknown[] = path;
  return [...(typeof root === 'string' ? [root] : rootsIn(root)), ...rest.flatMap(rootsIn)];
}

/** The names of the values that it reads. @throws an error that says what is wrong in it */
export const rootsOfLogic = (template: string): readonly string[] =>
  partsOf(engineFor(String), template).flatMap(({ roots }) => roots);

/** `wrap` gets the text of each part that reads values. @throws an error that says what is wrong */
export function renderLogic(
  template: string,
  values: JsonObject,
  textOf: (value: unknown) => string,
  wrap: (text: string, roots: readonly string[]) => string,
): string {
  const engine = engineFor(textOf);
  try {
    const texts = partsOf(engine, template).map(({ roots, template: part }) => {
      const text = String(engine.renderSync([part], values));
      return roots.length === 0 || text === '' ? text : wrap(text, roots);
    });
    return texts.join('');
  } catch (error) {
    const message = faultText(error);
    const missing = UNDEFINED.exec(message)?.[1];
    throw new Error(missing === undefined ? message : t`there is no value at ${missing}`);
  }
}

/** One line; the place is where the template is wrong. */
export const faultText = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).split('\n', 1).join();

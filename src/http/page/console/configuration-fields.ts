// The settings as a tree, read from the JSON Schema of the configuration; and what a person changed of
// them and has not saved.

import type { SettingChange } from '../../../features/configuration/rules/views.ts';
import {
  changedPaths,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  joinPath,
  valueAt,
  withoutValue,
  withValue,
} from '../../../kernel/config/json-paths.ts';

export const MASK = '[redacted]';

/** What is read of a JSON Schema. */
export type Schema = {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
  readonly enum?: readonly string[];
  readonly const?: JsonValue;
  readonly default?: JsonValue;
  readonly description?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly secret?: boolean;
};

/** `named`: sections or values under names that a person chooses; `json`: what has no form of its own. */
export type Kind =
  | 'section'
  | 'named'
  | 'switch'
  | 'number'
  | 'choice'
  | 'choices'
  | 'text'
  | 'texts'
  | 'secret'
  | 'json';

export type Setting = {
  /** Dotted. */
  readonly path: string;
  readonly name: string;
  readonly kind: Kind;
  readonly schema: Schema;
  readonly description: string;
};

export function settingOf(schema: Schema, path: string): Setting {
  const name = path.slice(path.lastIndexOf('.') + 1);
  return { path, name, kind: kindOf(schema), schema, description: schema.description ?? '' };
}

/** Of a section; what has one value only is left out. */
export const settingsIn = ({ schema, path }: Pick<Setting, 'schema' | 'path'>): Setting[] =>
  Object.entries(schema.properties ?? {})
    .filter(([name, one]) => one.const === undefined && !name.startsWith('$'))
    .map(([name, one]) => settingOf(one, joinPath(path, name)));

function kindOf(schema: Schema): Kind {
  if (schema.secret === true) return 'secret';
  switch (schema.type) {
    case 'object':
      if (schema.properties !== undefined) return 'section';
      return typeof schema.additionalProperties === 'object' ? 'named' : 'json';
    case 'boolean':
      return 'switch';
    case 'integer':
    case 'number':
      return 'number';
    case 'string':
      return schema.enum === undefined ? 'text' : 'choice';
    case 'array':
      return listKind(schema.items);
    default:
      return 'json';
  }
}

function listKind(items: Schema = {}): Kind {
  if (items.enum !== undefined) return 'choices';
  return /^(?:string|integer|number)$/.test(items.type ?? '') ? 'texts' : 'json';
}

/** By path; `value` is absent where the default shall apply. */
export type Draft = ReadonlyMap<
  string,
  { readonly value?: JsonValue | undefined; readonly isSecret?: boolean }
>;

/** As it would be written; a new secret is masked like the others. */
export const withDraft = (written: JsonObject, draft: Draft): JsonObject =>
  [...draft].reduce(
    (one, [path, { value, isSecret }]) =>
      value === undefined
        ? withoutValue(one, path)
        : withValue(one, path, isSecret === true ? MASK : value),
    written,
  );

const changesOf = (draft: Draft): SettingChange[] =>
  [...draft].map(([path, { value }]) => (value === undefined ? { path } : { path, value }));

/** What the gateway gets: the changes; with an edited text those secrets alone that are masked in it. */
export function sentOf({ draft, text }: { readonly draft: Draft; readonly text?: string }) {
  if (text === undefined) return { changes: changesOf(draft) };
  const edited = parsed(text);
  const secrets = [...draft].filter(
    ([path, { isSecret }]) => isSecret === true && valueAt(edited, path) === MASK,
  );
  return { text, changes: changesOf(new Map(secrets)) };
}

export const shownText = (current: JsonObject) => JSON.stringify(current, undefined, 2);

/** The edited text as an object; undefined while it is none. */
export function parsed(text: string): JsonObject | undefined {
  try {
    const value: JsonValue = JSON.parse(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** What the edited text changes. */
export function editOf(text: string, written: JsonObject): Draft {
  const edited = parsed(text);
  if (edited === undefined) return new Map();
  const paths = changedPaths(written, edited);
  return new Map(paths.map((path) => [path, { value: valueAt(edited, path) }]));
}

/** The edited text, made of a newer version of the file. */
export function onTop(text: string, written: JsonObject, latest: JsonObject = {}): string {
  return parsed(text) === undefined ? text : shownText(withDraft(latest, editOf(text, written)));
}

/** The draft with one more change; one that restores what is written is none. */
export function changed(
  draft: Draft,
  written: JsonObject,
  path: string,
  change: { readonly value?: JsonValue | undefined; readonly isSecret?: boolean },
): Draft {
  const next = new Map([...draft].filter(([one]) => !isWithin(one, path)));
  const isSame = JSON.stringify(valueAt(written, path)) === JSON.stringify(change.value);
  if (!isSame || change.isSecret === true) next.set(path, change);
  return next;
}

export const isWithin = (path: string, section: string) =>
  path === section || path.startsWith(`${section}.`);

/** Whether the setting differs from its default. */
export function isChanged({ path, schema }: Setting, current: JsonObject): boolean {
  const value = valueAt(current, path);
  return value !== undefined && JSON.stringify(value) !== JSON.stringify(schema.default);
}

/** The settings at and below this one that are changed. */
export function changedWithin(setting: Setting, current: JsonObject): number {
  return leavesOf(setting, current).filter((one) => isChanged(one, current)).length;
}

/** The settings with a value that are at or below this one, also those under the names in use. */
export function leavesOf(setting: Setting, current: JsonObject): readonly Setting[] {
  if (setting.kind === 'section')
    return settingsIn(setting).flatMap((one) => leavesOf(one, current));
  if (setting.kind !== 'named') return [setting];
  const entries = entriesOf(setting, current);
  return entries.length === 0 ? [setting] : entries.flatMap((one) => leavesOf(one, current));
}

export function entriesOf({ path, schema }: Setting, current: JsonObject): readonly Setting[] {
  const { additionalProperties: entry } = schema;
  if (typeof entry !== 'object') return [];
  return Object.keys(valueAt(current, path) ?? {}).map((name) =>
    settingOf(entry, joinPath(path, name)),
  );
}

/** Whether all words are in the path or the description. */
export function isFound({ path, description }: Setting, words: readonly string[]): boolean {
  const text = `${path} ${description}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

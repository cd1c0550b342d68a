// What the schema knows about each key: where it stands, what it takes, whether it is a secret.
// Everything that names, masks or suggests keys asks here, so that the schema stays the only list.

import { z } from 'zod';
import { configSchema } from './config.ts';
import { ANY_NAME } from './json-paths.ts';

export type ConfigKey = {
  /** Dotted, e.g. `channels.telegram.token`; `*` stands for a name the user chooses. */
  readonly path: string;
  readonly type: 'section' | 'text' | 'number' | 'switch' | 'list';
  /** The only values an enumerated key takes. */
  readonly choices: readonly string[];
  /** Of a list of sections: what each of them may hold. */
  readonly fields: readonly string[];
  readonly secret: boolean;
  readonly description: string;
};

/** Every key of the configuration, sections before what is in them. */
export function configKeys(): readonly ConfigKey[] {
  return KEYS;
}

const KEYS = keysOf(configSchema, '').slice(1);

function keysOf(schema: unknown, path: string): readonly ConfigKey[] {
  const layers = layersOf(schema);
  const innermost = layers.at(-1);
  const meta = Object.assign({}, ...layers.map((layer) => layer.meta() ?? {}).reverse());
  const key: ConfigKey = {
    path,
    type: typeOf(innermost),
    choices: choicesOf(innermost),
    fields: fieldsOf(innermost),
    secret: meta.secret === true,
    description: typeof meta.description === 'string' ? meta.description : '',
  };
  if (innermost instanceof z.ZodRecord) {
    return [key, ...keysOf(innermost.valueType, `${path}.${ANY_NAME}`)];
  }
  if (!(innermost instanceof z.ZodObject)) return [key];
  const inside = Object.entries(innermost.shape).flatMap(([name, member]) =>
    keysOf(member, path === '' ? name : `${path}.${name}`),
  );
  return [key, ...inside];
}

/** The schema and what it wraps, outermost first. */
function layersOf(schema: unknown): readonly z.ZodType[] {
  if (!(schema instanceof z.ZodType)) return [];
  const wraps =
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault ||
    schema instanceof z.ZodOptional;
  return wraps ? [schema, ...layersOf(schema.unwrap())] : [schema];
}

function typeOf(schema: z.ZodType | undefined): ConfigKey['type'] {
  if (schema instanceof z.ZodObject || schema instanceof z.ZodRecord) return 'section';
  if (schema instanceof z.ZodArray) return 'list';
  if (schema instanceof z.ZodBoolean) return 'switch';
  const numeric = schema instanceof z.ZodNumber || schema instanceof z.ZodLiteral;
  return numeric ? 'number' : 'text';
}

function fieldsOf(schema: z.ZodType | undefined): readonly string[] {
  const item = schema instanceof z.ZodArray ? layersOf(schema.element).at(-1) : undefined;
  return item instanceof z.ZodObject ? Object.keys(item.shape) : [];
}

function choicesOf(schema: z.ZodType | undefined): readonly string[] {
  const list = schema instanceof z.ZodArray ? schema.element : schema;
  return list instanceof z.ZodEnum ? list.options.map(String) : [];
}

// The configuration's JSON Schema for editors, made from the one zod schema.

import { z } from 'zod';
import { configSchema } from '../core/config.ts';

export function configJsonSchema(): Readonly<Record<string, unknown>> {
  return { ...z.toJSONSchema(configSchema, { io: 'input' }), title: 'nanobot configuration' };
}

/** As it stands in config/config.schema.json. */
export function configSchemaText(): string {
  return `${JSON.stringify(configJsonSchema(), undefined, 2)}\n`;
}

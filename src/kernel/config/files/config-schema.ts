// The configuration's JSON Schema for editors, generated from the zod schema.

import { z } from 'zod';
import { configSchema } from '../config.ts';
import { secretRefSchema } from '../secrets.ts';

export function configJsonSchema(): Readonly<Record<string, unknown>> {
  const schema = z.toJSONSchema(configSchema, {
    io: 'input',
    override({ zodSchema, jsonSchema }) {
      if (!(zodSchema instanceof z.ZodString) || zodSchema.meta()?.['secret'] !== true) return;
      jsonSchema.anyOf = [{ type: 'string' }, { $ref: '#/$defs/secretRef' }];
      delete jsonSchema.type;
    },
  });
  const { $schema: _, ...secretRef } = z.toJSONSchema(secretRefSchema);
  return { ...schema, title: 'nanobot configuration', $defs: { secretRef } };
}

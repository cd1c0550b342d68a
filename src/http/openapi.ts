// The OpenAPI document of the routes under /api/v1, made of the schemas that validate their requests.

import { z } from 'zod';
import type { Route, RouteSchemas } from '../kernel/http-routes.ts';
import { t } from '../lib/texts.ts';

const VERSION = 'v1';
const PREFIX = `/api/${VERSION}/`;
const JSON_TYPE = 'application/json';
const PARAMETER = /:(\w+)/g;

const failure = z.object({
  error: z.object({ code: z.string(), message: z.string().describe('For people.') }),
});

/** A transformed value is documented as it is sent. */
const schemaOf = (schema: z.ZodType, io: 'input' | 'output') => {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' });
  return rest;
};

/** Loads the code of all these routes; `own`: those of the server itself. */
export async function openApiDocument(
  routes: readonly Route[],
  own: Readonly<Record<string, RouteSchemas>>,
) {
  const paths: Record<string, Record<string, object>> = {};
  const all = new Map<string, RouteSchemas | undefined>(Object.entries(own));
  for (const { name, load } of routes)
    if (name.includes(PREFIX)) all.set(name, (await load()).schemas);
  for (const [name, schemas] of all) {
    const [method = '', path = ''] = name.split(' ');
    if (schemas === undefined) continue;
    const documented = path.replaceAll(PARAMETER, '{$1}');
    paths[documented] = { ...paths[documented], [method.toLowerCase()]: operationOf(schemas) };
  }
  return {
    openapi: '3.1.0',
    info: { title: 'nanobot', version: VERSION },
    security: [{ bearer: [] }],
    paths,
    components: { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } },
  };
}

function operationOf(schemas: RouteSchemas) {
  const { summary, params, query, body, bodyType = JSON_TYPE, answer, status = 200 } = schemas;
  const { isStream, answerType = isStream === true ? 'text/event-stream' : JSON_TYPE } = schemas;
  const named = [
    ...Object.entries(params?.shape ?? {}).map(parameterOf('path')),
    ...Object.entries(query?.shape ?? {}).map(parameterOf('query')),
  ];
  return {
    summary,
    ...(named.length === 0 ? {} : { parameters: named }),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            content: { [bodyType]: { schema: schemaOf(body, 'input') } },
          },
        }),
    responses: {
      [status]: {
        description: isStream === true ? t`The data of each event` : t`Done`,
        content: { [answerType]: { schema: schemaOf(answer, 'output') } },
      },
      default: {
        description: t`Refused`,
        content: { [JSON_TYPE]: { schema: schemaOf(failure, 'output') } },
      },
    },
  };
}

const parameterOf =
  (place: 'path' | 'query') =>
  ([name, schema]: [string, unknown]) => ({
    ...{ name, in: place, required: place === 'path' },
    ...(schema instanceof z.ZodType ? { schema: schemaOf(schema, 'input') } : {}),
  });

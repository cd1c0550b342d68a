// The documented API, from its OpenAPI document.

import { t } from '/texts.js';
import { createApi } from './api.ts';
import { reasonOf } from './chat/parts.tsx';
import { element } from './element.ts';

const DOCUMENT = '/api/v1/openapi.json';
const INDENT = 2;
const byId = (id: string) => document.getElementById(id);

type Content = Readonly<Record<string, { readonly schema?: object }>>;
type Operation = {
  readonly summary: string;
  readonly parameters?: object;
  readonly requestBody?: { readonly content?: Content };
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>;
};
type Document = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
};

/** A schema, folded. */
function folded(title: string, schema: object | undefined): HTMLElement | undefined {
  if (schema === undefined) return undefined;
  const text = JSON.stringify(schema, undefined, INDENT);
  return element(
    'details',
    {},
    element('summary', {}, title),
    element('pre', { tabIndex: 0 }, text),
  );
}

const schemaIn = ({ content = {} }: { readonly content?: Content }) =>
  Object.values(content)[0]?.schema;

function operation(path: string, method: string, described: Operation): HTMLElement {
  const { summary, parameters, requestBody = {}, responses } = described;
  const [[status, answer] = ['', {}]] = Object.entries(responses);
  const [type] = Object.keys(answer.content ?? {});
  return element(
    'li',
    { className: 'card' },
    element('h2', {}, element('code', {}, `${method.toUpperCase()} ${path}`)),
    element('p', {}, summary),
    folded(t`Parameters`, parameters),
    folded(t`Request`, schemaIn(requestBody)),
    folded(t`Answer ${status}, ${type}`, schemaIn(answer)),
  );
}

async function show() {
  try {
    const found = (await createApi().getJson(DOCUMENT)) as Document;
    const operations = Object.entries(found.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, one]) => operation(path, method, one)),
    );
    byId('operations')?.replaceChildren(...operations);
    // A link sends no login, so it holds the document itself.
    const file = new Blob([JSON.stringify(found, undefined, INDENT)], { type: 'application/json' });
    byId('document')?.setAttribute('href', URL.createObjectURL(file));
  } catch (error) {
    byId('problem')?.replaceChildren(reasonOf(error));
  }
}

void show();

// The documented API, from its OpenAPI document.

import { createApi } from './api.js';
import { element } from './element.ts';
import { t } from './texts.js';

const DOCUMENT = '/api/v1/openapi.json';
const INDENT = 2;
const byId = (id) => document.getElementById(id);

/** A schema, folded. */
function folded(title, schema) {
  if (schema === undefined) return undefined;
  const text = JSON.stringify(schema, undefined, INDENT);
  return element(
    'details',
    {},
    element('summary', {}, title),
    element('pre', { tabIndex: 0 }, text),
  );
}

const schemaIn = ({ content = {} }) => Object.values(content)[0]?.schema;

function operation(path, method, { summary, parameters, requestBody = {}, responses }) {
  const [[status, answer]] = Object.entries(responses);
  const [type] = Object.keys(answer.content);
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
    const found = await createApi().getJson(DOCUMENT);
    const operations = Object.entries(found.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, one]) => operation(path, method, one)),
    );
    byId('operations').replaceChildren(...operations);
    // A link sends no login, so it holds the document itself.
    const file = new Blob([JSON.stringify(found, undefined, INDENT)], { type: 'application/json' });
    byId('document').href = URL.createObjectURL(file);
  } catch (error) {
    byId('problem').textContent = error.message;
  }
}

show();

// The documented API, from its OpenAPI document.

import { render } from 'preact';
import { t } from '/texts.js';
import { createApi } from './api.ts';
import { byId, reasonOf } from './chat/parts.tsx';

const DOCUMENT = '/api/v1/openapi.json';
const INDENT = 2;

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

function Schema({
  title,
  schema,
}: {
  readonly title: string;
  readonly schema: object | undefined;
}) {
  if (schema === undefined) return null;
  return (
    <details>
      <summary>{title}</summary>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by the keyboard */}
      <pre tabIndex={0}>{JSON.stringify(schema, undefined, INDENT)}</pre>
    </details>
  );
}

const schemaIn = ({ content = {} }: { readonly content?: Content }) =>
  Object.values(content)[0]?.schema;

type OperationProps = { readonly name: string; readonly described: Operation };

function Described({ name, described }: OperationProps) {
  const { summary, parameters, requestBody = {}, responses } = described;
  const [[status, answer] = ['', {}]] = Object.entries(responses);
  const [type] = Object.keys(answer.content ?? {});
  return (
    <li class="card">
      <h2>
        <code>{name}</code>
      </h2>
      <p>{summary}</p>
      <Schema title={t`Parameters`} schema={parameters} />
      <Schema title={t`Request`} schema={schemaIn(requestBody)} />
      <Schema title={t`Answer ${status}, ${type}`} schema={schemaIn(answer)} />
    </li>
  );
}

function Documented({ paths }: Document) {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) => {
      const name = `${method.toUpperCase()} ${path}`;
      return <Described key={name} {...{ name, described }} />;
    }),
  );
  return <>{operations}</>;
}

async function show() {
  try {
    const found = (await createApi().getJson(DOCUMENT)) as Document;
    render(<Documented {...found} />, byId('operations'));
    // A link sends no login, so it holds the document itself.
    const file = new Blob([JSON.stringify(found, undefined, INDENT)], { type: 'application/json' });
    byId('document').setAttribute('href', URL.createObjectURL(file));
  } catch (error) {
    render(reasonOf(error), byId('problem'));
  }
}

void show();

// The texts of the program: those that are tagged for translation (`t`, `msgid`), and those that look like a text for
// people and are not. The rules for the latter say which texts are for models, names, or formats.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync } from '@swc/core';
import { PAGE_TEXTS } from '../src/lib/texts.ts';

/** Their texts are read by models, by programs, or by developers. Paths below src/. */
const NOT_FOR_PEOPLE: readonly RegExp[] = [
  /^lib\//,
  /^http\/page-files\./,
  /^labs\/(?!\w+\/cli)/,
  /^agent\/(?!agent|compact\.|stream|models)(?!rules\/(?:turn-closing|taint))/,
  /^providers\/(?!demo|registry|resilient|vendors|model-setup)(?!rules\/provider-failure)/,
  /^tools\/(?!exec\/(?:find-sandbox|settings))/,
  /^boot\.ts|^features\.ts|^kernel\/(?:install-features|ports|guards|typed-command|kernel|rows)\.ts/,
  /^kernel\/(?:bus\/(?!store\/database)|sessions|observe\/(?!audit))/,
  /^kernel\/(?:turns\/(?:stages|rules)|intake\/rules|commands\/command-access)/,
  /^features\/(?:steadiness|plans)\//,
  /^features\/modes\/(?:digests|trio|ask-role|rules\/(?:briefing|route|supervis))/,
  /^features\/subagents\/(?:rules|subagent-starts|spawn|series)/,
  /^features\/memory\/(?:memory-tools|working-memory|rules)/,
  /^features\/semantic-search\/(?:index|vectors)\./,
  /^features\/mcp\/(?:result|remote-tool)/,
  /^features\/workflows\/(?:workflow-ask|tool\.)/,
  /^features\/schedule\/(?:gates|rules\/(?:gate|heartbeat-view|job-draft))\./,
  /^features\/skills\/rules\/phrases/,
  /^channels\/(?:telegram|lark\/rules|whatsapp)\/(?:content|inbound|message)\./,
  /^channels\/(?:lark|email)\/inbound\.ts/,
  /^channels\/email\/(?:parse-worker|rules\/(?:address|text|threading|sender|calendar))/,
  /^lib\/mail\//,
  /^cli\/service\/(?:systemd|launchd|windows)\./,
  /^channels\/whatsapp\/(?:transport|drafts|row-reader-types)\./,
];

/** Of those files too: the question that an owner reads. */
const ALWAYS: ReadonlySet<string> = new Set(['sentence', 'userText']);

/** Arguments of these calls are names, patterns, log lines, texts for models, or reference documentation. */
const CALLS =
  /^(?:log\.\w+|logger\.\w+|deps\.log\.\w+|describe|port|inOrder|regex|querySelector\w*|.*\.querySelector\w*|createElementNS|lanes\.run|queue\.run|inLane|enqueue|words|phrases|split|wrapUntrusted|truncateText|omissionMarker|sentId|bus\.cancel|strings|enum|literal|default|startsWith|endsWith|includes|has|get|indexOf|command|.*\.(?:describe|within|header|startsWith|endsWith|includes|has|get|indexOf|split|literal|enum|default|cancel|on)|sections\.add|begin|gauge|verdict|named|callFailed|entryOf|refuse|step|cancel|service\.cancel|flagged|info|new (?:Error|TypeError|RegExp|ToolError|SafeFetchError|GuardedFileError|PortError|OrderError|TurnInterrupted|ProviderError|SessionError|MediaError|Map|Set|HtmlTooComplexError|ArchiveError|InboxError|NotImplemented))$/;
/** Values of these keys are names or formats. */
const KEYS =
  /^(?:gate|name|what|html|kind|model|about|title|aliases|intake|scope|contentType|content-type|mimetype|authorization|mimeType|X-[\w-]+|subject|how|limit|className|class|d|viewBox|style|role|rel|accept|content)$/;

const SQL =
  /^\s*(?:SELECT|INSERT|UPDATE|DELETE|CREATE|WITH|PRAGMA|ALTER|DROP|FROM|WHERE|ON CONFLICT)\b/;
/** Content types, media queries, multipart parts, lists of identifiers, shell and mail headers. */
const FORMAT =
  /^\w+\/[\w.+-]+[;,]|\r\n|^(?:[\w.]*[a-z][A-Z]\w*[ .]?){2,}|^\$\{\} ?\$\{\}$|^[A-Z][\w-]*: \$\{\}$|^Bearer|^(?:sudo env|Get-Content) |^https?:\S+$|^private, |^(?:nanobot|npm run|cat|help) (?:[a-z >-]*|\$\{\})$|^\/\w+ |^(?:id|data): |^\([\w-]+: \w+\)$|^(?:button|icon-button|policy|revoke|restart|link) \$\{\}$|^[\w-]+(?:\.[a-z]+)+(?: [\w-]+(?:\.[a-z]+)+)*$/;
const TWO_WORDS = /[\p{Ll}’']{2,}[,.:;!?)"”`]* +["“(`]?(?:\p{L}|\$\{)|\$\{\}[^ ]* +\p{Ll}{2,}/u;
/** Texts in square brackets are notes for models. */
const isText = (text: string) =>
  (TWO_WORDS.test(text) || text.startsWith('Usage: ')) &&
  !/^\s*\[/.test(text) &&
  !SQL.test(text) &&
  !FORMAT.test(text);
const isWord = (text: string) => /^[A-Z][a-z]{2,}[.!?]?$/.test(text);
/** Single words that are names: of products, platforms, image formats, reactions and errors. */
const NAMES =
  /^(?:Telegram|Lark|Anthropic|Ollama|Groq|Zhipu|Linux|Jpeg|Png|Webp|Nsgif|Heif|Tiff|Typing|Get|File|Refusal|Superseded)$/;

export type UserText = {
  /** Below src/. */
  readonly path: string;
  readonly line: number;
  /** Byte offsets of the literal. */
  readonly from: number;
  readonly to: number;
  readonly kind: 'tagged' | 'string' | 'template';
  /** With `${ name }` for each expression. */
  readonly text: string;
  /** Of `ngettext`. */
  readonly plural?: string;
};

type Node = { readonly type: string; readonly [key: string]: unknown };
type Span = { readonly start: number; readonly end: number };
/** Where a literal stands. */
type Place = { readonly call?: string; readonly key?: string };

/** As text, which the linter takes for a template that was forgotten. */
const EMPTY = '$' + '{}';
const PLACEHOLDER = /\$\{ \w+ \}/g;

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as Node).type === 'string';
const nodesIn = (value: unknown): readonly Node[] =>
  Array.isArray(value) ? value.flatMap(nodesIn) : isNode(value) ? [value] : [];
const childrenOf = (node: Node) =>
  Object.entries(node).flatMap(([key, value]) =>
    key === 'typeAnnotation' || key === 'typeParams' ? [] : inObject(value),
  );
/** The AST wraps the arguments of a call in objects without a type. */
const inObject = (value: unknown): readonly Node[] => {
  if (Array.isArray(value)) return value.flatMap(inObject);
  if (isNode(value)) return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(inObject) : [];
};
const nameOf = (node: unknown): string =>
  !isNode(node)
    ? ''
    : String(node.type === 'MemberExpression' ? nameOf(node['property']) : (node['value'] ?? ''));
function calleeOf(node: Node): string {
  const { callee } = node;
  if (node.type === 'NewExpression') return `new ${nameOf(callee)}`;
  if (!isNode(callee) || callee.type !== 'MemberExpression') return nameOf(callee);
  const of = nameOf(callee['object']);
  return of === '' ? nameOf(callee) : `${of}.${nameOf(callee)}`;
}

/** Placeholders get the last name of their expression: translators see what stands there. */
function textOf(template: Node): string {
  const names = nodesIn(template['expressions']).map(lastName);
  const unique = names.map((name, at) => (names.indexOf(name) === at ? name : `${name}${at + 1}`));
  return nodesIn(template['quasis'])
    .map(
      ({ cooked }, at) =>
        `${String(cooked)}${unique[at] === undefined ? '' : `\${ ${unique[at]} }`}`,
    )
    .join('');
}
function lastName(expression: Node): string {
  if (expression.type === 'CallExpression')
    return lastName(nodesIn(expression['callee'])[0] ?? expression);
  return /^\w+$/.exec(nameOf(expression))?.[0] ?? 'value';
}

/** All tagged texts of a source, and those that should be. */
export function textsIn(path: string, source: string): readonly UserText[] {
  const bytes = Buffer.from(source);
  const { body } = parseSync(source, {
    syntax: 'typescript',
    tsx: path.endsWith('.tsx'),
    target: 'es2024',
  }) as unknown as {
    readonly body: readonly Node[];
  };
  const [first] = body;
  if (first === undefined) return [];
  // The positions of the parser grow from file to file.
  const leading = /^(?:\s|\/\/[^\n]*\n|\/\*[\s\S]*?\*\/)*/.exec(source)?.[0] ?? '';
  const base = (first['span'] as Span).start - Buffer.byteLength(leading);
  const isExempt = NOT_FOR_PEOPLE.some((pattern) => pattern.test(path));
  const found: UserText[] = [];
  const note = (node: Node, kind: UserText['kind'], text: string, plural?: string) => {
    const { start, end } = node['span'] as Span;
    const line = bytes
      .subarray(0, start - base)
      .toString()
      .split('\n').length;
    const at = { path, line, from: start - base, to: end - base };
    found.push({ ...at, kind, text, ...(plural === undefined ? {} : { plural }) });
  };
  const wanted = (text: string, { call = '', key = '' }: Place) => {
    if (isExempt && !ALWAYS.has(key)) return false;
    if (CALLS.test(call) || KEYS.test(key)) return false;
    return isText(text) || (isWord(text) && !NAMES.test(text));
  };
  const visitAll = (nodes: readonly Node[], place: Place) => {
    for (const node of nodes) visit(node, place);
  };
  function visit(node: Node, place: Place): void {
    switch (node.type) {
      case 'ImportDeclaration':
      case 'ExportNamedDeclaration':
      case 'ExportAllDeclaration':
        break;
      case 'TaggedTemplateExpression': {
        const template = node['template'] as Node;
        const tag = nameOf(node['tag']);
        if (tag === 't') note(node, 'tagged', textOf(template));
        visitAll(nodesIn(template['expressions']), place);
        break;
      }
      case 'CallExpression':
        if (nameOf(node['callee']) === 'ngettext') {
          visitPlural(node, place);
          break;
        }
        visitAll(childrenOf(node), { call: calleeOf(node) });
        break;
      case 'NewExpression':
        visitAll(childrenOf(node), { call: calleeOf(node) });
        break;
      case 'KeyValueProperty':
        visitAll(nodesIn(node['value']), { ...place, key: nameOf(node['key']) });
        break;
      case 'BinaryExpression':
        if (/[=!]==/.test(String(node['operator']))) break;
        visitAll(childrenOf(node), place);
        break;
      case 'SwitchCase':
        visitAll(nodesIn(node['consequent']), place);
        break;
      case 'MemberExpression':
        visitAll(nodesIn(node['object']), place);
        break;
      case 'StringLiteral': {
        const text = String(node['value']);
        if (wanted(text, place)) note(node, 'string', text);
        break;
      }
      case 'JSXText': {
        const text = String(node['value']).trim();
        if (/\p{L}/u.test(text)) note(node, 'string', text);
        break;
      }
      case 'JSXAttribute':
        visitAll(nodesIn(node['value']), { key: nameOf(node['name']) });
        break;
      case 'TemplateLiteral': {
        const text = textOf(node).replaceAll(PLACEHOLDER, EMPTY);
        if (wanted(text, place)) note(node, 'template', textOf(node));
        visitAll(nodesIn(node['expressions']), place);
        break;
      }
      default:
        if (/^Ts/.test(node.type) && !/^Ts(?:As|Const|Satisfies)/.test(node.type)) break;
        visitAll(childrenOf(node), place);
    }
  }
  function visitPlural(node: Node, place: Place): void {
    const [one, many, ...rest] = inObject(node['arguments']);
    if (one === undefined || many === undefined) return;
    const template = (isNode(one['template']) ? one['template'] : one) as Node;
    note(node, 'tagged', textOf(template), textOf(many));
    visitAll([...nodesIn(template['expressions']), ...rest], place);
  }
  visitAll(body, {});
  return found;
}

const SOURCES = join(import.meta.dirname, '../src');

/** Of all sources, in the order of their paths. */
export const allTexts = (): readonly UserText[] =>
  readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.(?:tsx?|js|html)$/.test(path))
    .sort()
    .flatMap((path) => {
      const source = readFileSync(join(SOURCES, path), 'utf8');
      return path.endsWith('.html') ? textsOfPage(path, source) : textsIn(path, source);
    });

/** The server translates them when it sends the page. */
const textsOfPage = (path: string, source: string): readonly UserText[] =>
  [...source.matchAll(PAGE_TEXTS)].map(({ index, groups: { text = '' } = {} }) => ({
    ...{ path, line: source.slice(0, index).split('\n').length, from: index },
    ...{ to: index + text.length, kind: 'tagged', text },
  }));

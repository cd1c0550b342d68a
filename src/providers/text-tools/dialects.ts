// The dialects in which model families write tool calls as text, including Python call syntax.

import {
  type LiteralForm,
  LiteralReader,
  readable,
  Unreadable,
} from '../../lib/json/loose-json.ts';
import type { TextDialect } from '../rules/model-names.ts';
import type { Said, SpokenCall } from './written-calls.ts';
import {
  type Calls,
  deepseekCalls,
  functionTag,
  jsonCalls,
  misquotedCall,
  mistralCalls,
  toolCallTag,
} from './written-calls.ts';

const CONSTANTS: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ['True', true],
  ['true', true],
  ['False', false],
  ['false', false],
  ['None', null],
  ['null', null],
]);
const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', '\n': '' };
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;

const PYTHON: LiteralForm = {
  blank: /\s*/y,
  string:
    /"""(?:[^\\]|\\[\s\S])*?"""|'''(?:[^\\]|\\[\s\S])*?'''|"(?:[^"\\]|\\[\s\S])*"|'(?:[^'\\]|\\[\s\S])*'/y,
  word: /[+-]?[\w.]+(?:(?<=[eE])[+-]\d+)?/y,
  hasTuples: true,
  maxDepth: 50,
  /** A backslash that escapes nothing is literal. */
  textOf(quoted) {
    const [quote = ''] = /^(?:"""|'''|.)/.exec(quoted) ?? [];
    return quoted.slice(quote.length, -quote.length).replace(/\\([\s\S])/g, (written, sign) => {
      return ESCAPES[sign] ?? (sign === '\\' || quote.startsWith(sign) ? sign : written);
    });
  },
  valueOf(word) {
    if (NUMBER.test(word)) return Number(word);
    if (!CONSTANTS.has(word)) throw new Unreadable('no constant');
    return CONSTANTS.get(word);
  },
};

/** `f(x=1)` once or several times, with or without the brackets of a list. */
function pythonCalls(body: string): Calls {
  const text = body.trim();
  const listed = text.startsWith('[') && text.endsWith(']') ? text.slice(1, -1) : text;
  const reader = new LiteralReader(listed, PYTHON);
  const nameOf = (pattern: RegExp) => {
    const name = reader.take(pattern);
    if (name === '') throw new Unreadable('no name');
    return name;
  };
  const named = () => {
    const name = nameOf(/[A-Za-z_]\w*/y);
    reader.expect('=');
    return [name, reader.value()] as const;
  };
  return readable(() => {
    const calls: SpokenCall[] = [];
    while (!reader.isAtEnd) {
      const name = nameOf(/[A-Za-z_][\w.-]*/y).replace(/\.call$/, '');
      calls.push({ name, args: Object.fromEntries(reader.items('(', ')', named)) });
      const separator = reader.take(/[,;\s]+/y);
      if (separator === '' && !reader.isAtEnd) throw new Unreadable('no separator');
    }
    return calls.length === 0 ? undefined : calls;
  });
}

// The forms of tool calls that models write into their text by training, one row each. A row
// applies if the tool is offered, or if the model belongs to the row's family.

export type Dialect = {
  readonly open: string;
  /** Any of them ends it; empty: it continues to the end of the answer. */
  readonly closes: readonly string[];
  /** Never part of normal text: it counts anywhere, others at the start of a line. */
  readonly isToken: boolean;
  /** Names of models, and of `textDialect`, that use this form. */
  readonly family: RegExp;
  /** `result`: an imitated result that only a tool can give. */
  read(body: string): Calls | 'result';
};

const DIALECTS: readonly Dialect[] = [
  {
    open: '<tool_call>',
    closes: ['</tool_call>'],
    isToken: false,
    family: /hermes|qwen|qwq|glm|granite/,
    read: toolCallTag,
  },
  {
    open: '<function=',
    closes: ['</function>'],
    isToken: false,
    family: /qwen|qwq|llama/,
    read: functionTag,
  },
  {
    open: '<tool_calls>',
    closes: ['</tool_calls>'],
    isToken: false,
    family: /hunyuan|hermes/,
    read: jsonCalls,
  },
  {
    open: '<|python_tag|>',
    closes: ['<|eom_id|>', '<|eot_id|>'],
    isToken: true,
    family: /llama/,
    read: (body) => jsonCalls(body) ?? pythonCalls(body),
  },
  {
    open: '<|python_start|>',
    closes: ['<|python_end|>'],
    isToken: true,
    family: /llama-?4/,
    read: pythonCalls,
  },
  {
    open: '<｜tool▁calls▁begin｜>',
    closes: ['<｜tool▁calls▁end｜>'],
    isToken: true,
    family: /deepseek/,
    read: deepseekCalls,
  },
  {
    open: '<｜tool▁call▁begin｜>',
    closes: ['<｜tool▁call▁end｜>'],
    isToken: true,
    family: /deepseek/,
    read: deepseekCalls,
  },
  {
    open: '<|tool_call|>',
    closes: ['<|/tool_call|>', '<|tool_call_end|>'],
    isToken: true,
    family: /phi|granite/,
    read: jsonCalls,
  },
  {
    open: '[TOOL_CALLS]',
    closes: [],
    isToken: true,
    family: /mistral|mixtral|magistral|devstral/,
    read: mistralCalls,
  },
  {
    open: '<tool_response>',
    closes: ['</tool_response>'],
    isToken: false,
    family: /hermes|qwen|qwq/,
    read: () => 'result',
  },
  {
    open: '<｜tool▁outputs▁begin｜>',
    closes: ['<｜tool▁outputs▁end｜>'],
    isToken: true,
    family: /deepseek/,
    read: () => 'result',
  },
];

/**
 * Llama 4's form, without any mark: only if the whole answer is one and starts with an offered
 * tool.
 */
export const BARE_PYTHON: Dialect = {
  open: '',
  closes: [],
  isToken: false,
  family: /(?!)/,
  read: pythonCalls,
};

/** The protocol with non-JSON quotes, as the whole answer. */
export const MISQUOTED: Dialect = {
  open: '',
  closes: [],
  isToken: false,
  family: /(?:)/,
  read: misquotedCall,
};

/** `is`: it is one; `may`: more characters could make it one. */
export function dialectOf(text: string): Dialect | 'may' | 'no' {
  const found = DIALECTS.find(({ open }) => open === text);
  if (found !== undefined) return found;
  return DIALECTS.some(({ open }) => open.startsWith(text)) ? 'may' : 'no';
}

export type WrittenBy = { readonly name: string; readonly textDialect: TextDialect };

const isOfFamily = ({ family }: Dialect, model: WrittenBy): boolean =>
  family.test(model.name.toLowerCase()) || family.test(model.textDialect);

type Reader = {
  readonly offered: ReadonlySet<string>;
  readonly model: WrittenBy;
  /** It is at a place where such a form counts. */
  readonly isTrusted: boolean;
};

/** The meaning of a span of this form; undefined: it is normal text. */
export function saidIn(dialect: Dialect, body: string, reader: Reader): Said | undefined {
  const calls = dialect.read(body);
  if (calls === 'result') return reader.isTrusted ? { kind: 'result' } : undefined;
  const isOwn = isOfFamily(dialect, reader.model) && isMeant(body);
  if (calls === undefined) {
    const problem =
      dialect.open === ''
        ? 'the JSON cannot be read: put keys and texts in straight double quotes'
        : `the text after ${dialect.open} cannot be read`;
    return isOwn && reader.isTrusted ? { kind: 'broken', problem } : undefined;
  }
  const areOffered = calls.every(({ name }) => reader.offered.has(name));
  return areOffered || isOwn ? { kind: 'calls', calls } : undefined;
}

/** It starts like a call, not like the rest of a sentence. */
export const isMeant = (body: string): boolean =>
  /^\s*(?:[[{<]|[\w.-]+\s*(?:[[{(<]|>\s*[{<]))/.test(body);

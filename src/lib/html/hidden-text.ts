// Removes from a model's text what is not meant for the person: thinking between tags, tool calls
// written as text, control tokens. Works on a stream cut anywhere and leaves every other character
// as it is; fenced code and code spans are never touched.

import { HIDDEN_TAGS } from '../text/cut.ts';

const CONTROL_TOKENS = [
  'im_start',
  'im_end',
  'im_sep',
  'endoftext',
  'end_of_text',
  'begin_of_text',
  'eot_id',
  'eom_id',
  'start_header_id',
  'end_header_id',
  'end_of_turn',
  'start',
  'end',
  'channel',
  'message',
  'return',
  'call',
  'assistant',
  'system',
  'user',
];
const CLOSING_THOUGHTS = ['</think>', '</thinking>', '</thought>', '</reasoning>'];
const OPENINGS = HIDDEN_TAGS.map((tag) => `<${tag}>`);
const TOKENS = CONTROL_TOKENS.map((token) => `<|${token}|>`);
const FENCE = /^ {0,3}(`{3,}|~{3,})/;
/** Enough of a line to recognise a fence. */
const LINE_START_CHARS = 80;

/** The state after the text read so far; plain data. */
export type HiddenTextState = {
  readonly mode: 'text' | 'hidden' | 'behind';
  /** Read, but not decided yet. */
  readonly held: string;
  /** The start of the current line. */
  readonly line: string;
  /** Backticks of the current line, outside of fences: an odd number means inside a code span. */
  readonly ticks: number;
  /** The open fence. */
  readonly fence: string;
  /** The tag that ends the hidden part. */
  readonly closing: string;
  /** Hidden parts so far. */
  readonly hiddenParts: number;
};

export const HIDDEN_TEXT_START: HiddenTextState = {
  mode: 'text',
  held: '',
  line: '',
  ticks: 0,
  fence: '',
  closing: '',
  hiddenParts: 0,
};

type Revealed = {
  readonly state: HiddenTextState;
  /** Text to show now. */
  readonly text: string;
  /** Everything shown before was thinking whose opening tag the model's template had consumed. */
  readonly isRetracted: boolean;
};

export function reveal(state: HiddenTextState, chunk: string): Revealed {
  let current = state;
  let text = '';
  let isRetracted = false;
  for (let at = 0; at < chunk.length; ) {
    const plain = plainRun(current, chunk.slice(at));
    if (plain !== '') {
      current = { ...current, line: (current.line + plain).slice(0, LINE_START_CHARS) };
      text += plain;
      at += plain.length;
      continue;
    }
    const [char = ''] = chunk.slice(at, at + 2);
    at += char.length;
    const step = read(current, char);
    current = step.state;
    if (step.isRetracted) {
      isRetracted = true;
      text = '';
    }
    text += step.text;
  }
  return { state: current, text, isRetracted };
}

/**
 * Text in which nothing to hide can start, up to where something could; excludes the starts of
 * lines.
 */
function plainRun({ mode, held, line }: HiddenTextState, rest: string): string {
  if (mode !== 'text' || held !== '' || line.trim() === '') return '';
  const end = rest.search(/[\n<`]/);
  return end < 0 ? rest : rest.slice(0, end);
}

/** Text held back for a tag that was never completed. Unclosed thinking stays hidden. */
export function revealRest(state: HiddenTextState): string {
  return state.mode === 'text' ? state.held : '';
}

/** Processes a whole text. */
export function revealAll(text: string): string {
  const { state, text: shown } = reveal(HIDDEN_TEXT_START, text);
  return shown + revealRest(state);
}

function read(state: HiddenTextState, char: string): Revealed {
  switch (state.mode) {
    case 'text':
      return readText(state, char);
    case 'hidden':
      return readHidden(state, char);
    case 'behind':
      return readBehind(state, char);
  }
}

const shows = (state: HiddenTextState, text = ''): Revealed => ({
  state,
  text,
  isRetracted: false,
});

function readText(state: HiddenTextState, char: string): Revealed {
  if (char === '\n') return shows(nextLine(state), `${state.held}\n`);
  const line = state.line.length < LINE_START_CHARS ? state.line + char : state.line;
  const ticks = char === '`' ? state.ticks + 1 : state.ticks;
  // A new "<" starts a new candidate; what was held before it is plain text.
  const isNew = char === '<' && state.held.includes('<');
  const flushed = isNew ? state.held : '';
  const held = isNew ? char : state.held + char;
  const next = { ...state, line, ticks };
  if (state.fence !== '') return shows({ ...next, held: '' }, flushed + held);
  const isLineStart = held.trim() === line.trim();
  const candidate = held.trimStart();
  if (isLineStart && OPENINGS.includes(candidate.toLowerCase())) {
    const closing = candidate.toLowerCase().replace('<', '</');
    return shows({ ...next, mode: 'hidden', held: '', closing }, flushed);
  }
  if (isLineStart && CLOSING_THOUGHTS.includes(candidate.toLowerCase())) {
    const isRetracted = state.hiddenParts === 0;
    return { state: behind(next), text: isRetracted ? '' : flushed, isRetracted };
  }
  const inSpan = ticks % 2 === 1;
  if (!inSpan && TOKENS.includes(candidate)) {
    return shows({ ...next, held: '', line: line.slice(0, -candidate.length) }, flushed);
  }
  if (isOpen(candidate, isLineStart, inSpan)) return shows({ ...next, held }, flushed);
  return shows({ ...next, held: '' }, flushed + held);
}

/** Whether more characters could still make this something to hide. */
function isOpen(candidate: string, isLineStart: boolean, inSpan: boolean): boolean {
  if (candidate === '') return isLineStart;
  const beginsWith = (whole: string) => whole.startsWith(candidate.toLowerCase());
  if (isLineStart && (OPENINGS.some(beginsWith) || CLOSING_THOUGHTS.some(beginsWith))) return true;
  return !inSpan && TOKENS.some((token) => token.startsWith(candidate));
}

function nextLine(state: HiddenTextState): HiddenTextState {
  const marker = FENCE.exec(state.line)?.[1] ?? '';
  let fence = state.fence;
  if (fence === '') fence = marker;
  else if (marker.startsWith(fence) && state.line.trim() === marker) fence = '';
  return { ...state, held: '', line: '', ticks: 0, fence };
}

function readHidden(state: HiddenTextState, char: string): Revealed {
  const held = (state.held + char).slice(-state.closing.length);
  if (held.toLowerCase() !== state.closing) return shows({ ...state, held });
  return shows(behind(state));
}

const behind = (state: HiddenTextState): HiddenTextState => ({
  ...HIDDEN_TEXT_START,
  mode: 'behind',
  hiddenParts: state.hiddenParts + 1,
});

/** Blank lines after a hidden part are removed with it; the indent of the next line stays. */
function readBehind(state: HiddenTextState, char: string): Revealed {
  if (char === '\n') return shows({ ...state, held: '', line: '\n' });
  if (/\s/.test(char)) return shows({ ...state, held: state.held + char });
  const indent = state.line === '\n' ? state.held : '';
  let text = '';
  let current: HiddenTextState = { ...HIDDEN_TEXT_START, hiddenParts: state.hiddenParts };
  for (const each of indent + char) {
    const step = readText(current, each);
    current = step.state;
    text += step.text;
  }
  return shows(current, text);
}

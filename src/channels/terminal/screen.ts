// Input at the terminal: a line editor with history, several lines and pastes, where a backslash at
// the end continues the line; and the keys that stop an answer.

import { createInterface, type Interface } from 'node:readline';
import { Transform, type TransformCallback } from 'node:stream';
import { stripVTControlCharacters, styleText } from 'node:util';
import type { LiveUpdate, ToolActivity } from '../../kernel/message/message.ts';
import { parseMarkup } from '../../lib/markup/markup.ts';
import { displayWidth, type Run, type Style } from '../../lib/markup/writer.ts';
import { t } from '../../lib/texts.ts';

type LineResult =
  | { readonly kind: 'text'; readonly text: string }
  /** Ctrl+C. */
  | { readonly kind: 'interrupt'; readonly hadText: boolean }
  /** Ctrl+D. */
  | { readonly kind: 'end' };

type LineInputOptions = {
  readonly input: NodeJS.ReadStream;
  readonly output: NodeJS.WriteStream;
  readonly prompt: string;
  /** Newest first. */
  readonly history: readonly string[];
  /** Typed before the editor was active. */
  readonly typedAhead: string;
  /** Names that Tab completes in a line that begins with a slash. */
  readonly commands: readonly string[];
};

const CONTINUED_PROMPT = '… ';

export async function readQuestion(options: LineInputOptions): Promise<LineResult> {
  const { input, output, prompt } = options;
  const keys = new KeyFilter(input);
  input.pipe(keys);
  output.write(MARK_PASTES);
  const editor = createInterface({
    input: keys,
    output,
    prompt,
    terminal: true,
    history: options.history.map((text) => text.replaceAll('\n', LINE_BREAK_MARK)),
    completer: (line: string) => [completions(options.commands, line), line],
  });
  try {
    editor.prompt();
    if (options.typedAhead !== '') keys.write(options.typedAhead);
    return await question(editor);
  } finally {
    editor.close();
    input.unpipe(keys);
    output.write(LEAVE_PASTES);
  }
}

function question(editor: Interface): Promise<LineResult> {
  const before: string[] = [];
  return new Promise((resolve) => {
    editor.on('line', (line) => {
      const text = line.replaceAll(LINE_BREAK_MARK, '\n');
      if (text.endsWith('\\')) {
        before.push(text.slice(0, -1));
        editor.setPrompt(CONTINUED_PROMPT);
        editor.prompt();
        return;
      }
      resolve({ kind: 'text', text: [...before, text].join('\n').trim() });
    });
    editor.on('SIGINT', () => {
      resolve({ kind: 'interrupt', hadText: editor.line !== '' || before.length > 0 });
    });
    editor.on('close', () => resolve({ kind: 'end' }));
  });
}

function completions(commands: readonly string[], line: string): string[] {
  if (!line.startsWith('/')) return [];
  return commands.filter((command) => command.startsWith(line));
}

// Adapts terminal input to a line editor: line breaks inside a paste and Alt+Enter become a mark
// that represents a line break.

/** Shown in the edited line where the text will have a line break. */
export const LINE_BREAK_MARK = '⏎';

const PASTE_START = '\x1b[200~';
const PASTE_END = '\x1b[201~';
const ESC = '\x1b';
const ALT_ENTER = new RegExp(`${ESC}(?:\r\n?|\n)`, 'g');
const LINE_BREAK = /\r\n?|\n/g;

/** Switches the terminal's marking of pastes on and off. */
const MARK_PASTES = '\x1b[?2004h';
const LEAVE_PASTES = '\x1b[?2004l';

export class KeyFilter extends Transform {
  readonly isTTY = true;
  readonly #source: NodeJS.ReadStream;
  readonly #decoder = new TextDecoder();
  #isPasting = false;
  #rest = '';

  constructor(source: NodeJS.ReadStream) {
    super();
    this.#source = source;
  }

  setRawMode(isRaw: boolean): this {
    this.#source.setRawMode(isRaw);
    return this;
  }

  override _transform(chunk: Uint8Array, _encoding: BufferEncoding, done: TransformCallback) {
    const text = this.#rest + this.#decoder.decode(chunk, { stream: true });
    this.#rest = unfinishedMark(text);
    this.push(this.#translate(text.slice(0, text.length - this.#rest.length)));
    done();
  }

  #translate(text: string): string {
    const border = this.#isPasting ? PASTE_END : PASTE_START;
    const at = text.indexOf(border);
    const own = at === -1 ? text : text.slice(0, at);
    const marked = own.replace(this.#isPasting ? LINE_BREAK : ALT_ENTER, LINE_BREAK_MARK);
    if (at === -1) return marked;
    this.#isPasting = !this.#isPasting;
    return marked + this.#translate(text.slice(at + border.length));
  }
}

/** The end of a chunk that may be the start of a paste mark. A lone Esc is a key. */
function unfinishedMark(text: string): string {
  const at = text.lastIndexOf('\x1b[');
  if (at === -1) return '';
  const tail = text.slice(at);
  const isCut = [PASTE_START, PASTE_END].some((mark) => mark !== tail && mark.startsWith(tail));
  return isCut ? tail : '';
}

// Keys while the agent answers: Esc or Ctrl+C stops the answer; other input waits for the next
// question.

const STOP_ESC = '\x1b';
const CTRL_C = '\x03';
/** Backspace, also of older terminals, Ctrl+U, Ctrl+W. */
const DELETING = '\x7f\b\x15\x17';
/** ECMA-48 5.4, and what keypads send. */
const SEQUENCES = new RegExp(`${STOP_ESC}(?:\\[[0-?]*[ -/]*[@-~]|O[ -~])`, 'g');

export function listenForStopKeys(
  input: NodeJS.ReadStream,
  onStop: (key: 'escape' | 'interrupt') => void,
) {
  let typedAhead = '';
  const decoder = new TextDecoder();
  const onData = (chunk: Buffer) => {
    const text = decoder.decode(chunk, { stream: true });
    if (text.includes(CTRL_C)) onStop('interrupt');
    else if (text === STOP_ESC) onStop('escape');
    else typedAhead += wordsOf(text);
  };
  input.setRawMode(true);
  input.on('data', onData);
  input.resume();
  return {
    get typedAhead(): string {
      return typedAhead;
    },
    [Symbol.dispose](): void {
      input.off('data', onData);
      input.setRawMode(false);
      input.pause();
    },
  };
}

/**
 * For the editor of the next question: keys that delete stay, escape sequences and other keys are
 * dropped, an Enter between two lines separates them.
 */
function wordsOf(keys: string): string {
  return keys
    .replace(SEQUENCES, '')
    .replace(/[\r\n]+/g, ' ')
    .replace(/\p{Cc}/gu, (key) => (DELETING.includes(key) ? key : ''));
}

// Shows an answer while it grows: complete paragraphs stay, the current one and the agent's
// activity are redrawn below them. Markdown is shown in the styles that terminals have.

const REDRAW_MS = 60;
const FALLBACK_COLUMNS = 80;
const FALLBACK_ROWS = 24;
/** Rows left free, so that redrawing never scrolls. */
const SPARE_ROWS = 3;
const ERASE_DOWN = '\x1b[J';
const cursorUp = (rows: number) => (rows > 0 ? `\x1b[${rows}A` : '');

const TOOL_SIGNS = { running: '…', ok: '✓', waiting: '…', failed: '✗' } as const;

type ScreenOptions = {
  readonly output: NodeJS.WriteStream;
  /** Monotonic milliseconds. */
  readonly now: () => number;
};

export class AnswerScreen {
  readonly #output: NodeJS.WriteStream;
  readonly #now: () => number;
  /** The finished part of the current answer, Markdown. */
  #standing = '';
  /** The same as drawn. */
  #pieces: string[] = [];
  #tailRows = 0;
  #drawnAt = Number.NEGATIVE_INFINITY;
  readonly #settledTools = new Set<string>();

  constructor({ output, now }: ScreenOptions) {
    this.#output = output;
    this.#now = now;
  }

  show(update: LiveUpdate): void {
    const isDue = this.#now() - this.#drawnAt >= REDRAW_MS;
    if (!isDue && update.phase === 'writing') return;
    this.#drawnAt = this.#now();
    this.#erase();
    this.#standTools(update.tools);
    const open = this.#standComplete(update.markdown);
    this.#drawTail([render(open), ...activityLines(update)].filter((line) => line !== ''));
  }

  /** Replaces what was shown by the final text. */
  settle(markdown: string): void {
    this.#erase();
    const rest = unseenPart(this.#pieces, markdown);
    if (rest !== '') {
      this.#stand(rest);
      this.#output.write('\n');
    }
    this.#standing = '';
    this.#pieces = [];
  }

  /** Removes what is shown only while the answer is written. */
  close(): void {
    this.#erase();
  }

  /** Prints the complete paragraphs for good; returns the open one. */
  #standComplete(markdown: string): string {
    if (!markdown.startsWith(this.#standing)) {
      this.#standing = '';
      this.#pieces = [];
    }
    const open = markdown.slice(this.#standing.length);
    const complete = completePart(open);
    if (complete.trim() === '') return open;
    this.#stand(complete);
    this.#output.write('\n');
    this.#standing += complete;
    this.#pieces.push(complete.trim());
    return open.slice(complete.length);
  }

  #standTools(tools: readonly ToolActivity[]): void {
    for (const tool of tools) {
      if (tool.status === 'running' || this.#settledTools.has(tool.callId)) continue;
      this.#settledTools.add(tool.callId);
      this.#output.write(`${render(`_${toolLine(tool)}_`)}\n`);
    }
  }

  #stand(markdown: string): void {
    this.#output.write(`${render(markdown.trim())}\n`);
  }

  #drawTail(lines: readonly string[]): void {
    if (lines.length === 0) return;
    const { columns = FALLBACK_COLUMNS, rows = FALLBACK_ROWS } = this.#output;
    const wrapped = lines.join('\n').split('\n');
    const room = Math.max(1, rows - SPARE_ROWS);
    const shown: string[] = [];
    let used = 0;
    for (const line of wrapped.toReversed()) {
      const height = rowsOf(line, columns);
      if (used + height > room) break;
      used += height;
      shown.unshift(line);
    }
    this.#output.write(`${shown.join('\n')}\n`);
    this.#tailRows = used;
  }

  #erase(): void {
    if (this.#tailRows > 0) this.#output.write(`${cursorUp(this.#tailRows)}\r${ERASE_DOWN}`);
    this.#tailRows = 0;
  }
}

const render = (markdown: string) => renderTerminal(markdown, true);

export function toolLine({ name, detail, status }: ToolActivity): string {
  const waits = status === 'waiting' ? t` (waiting for approval)` : '';
  return `${TOOL_SIGNS[status]} ${name} ${detail}`.trim() + waits;
}

function activityLines({ phase, tools, notice }: LiveUpdate): readonly string[] {
  const running = tools.filter((tool) => tool.status === 'running').map(toolLine);
  const thinking = phase === 'thinking' && running.length === 0 ? ['… thinking'] : [];
  return [...running, ...thinking, ...(notice === undefined ? [] : [notice])].map((line) =>
    render(`_${line}_`),
  );
}

/** Everything up to the last empty line outside a code fence. */
export function completePart(markdown: string): string {
  let isInFence = false;
  let end = 0;
  let at = 0;
  for (const line of markdown.split('\n')) {
    if (/^ {0,3}(?:```|~~~)/.test(line)) isInFence = !isInFence;
    at += line.length + 1;
    if (line.trim() === '' && !isInFence && at <= markdown.length) end = at;
  }
  return markdown.slice(0, end);
}

/** The part of the final text not printed yet; the last pieces drawn may be its start. */
export function unseenPart(pieces: readonly string[], markdown: string): string {
  const text = markdown.trim();
  for (let first = 0; first < pieces.length; first += 1) {
    const shown = pieces.slice(first).join('\n\n');
    if (text.startsWith(shown)) return text.slice(shown.length).trim();
  }
  return text;
}

function rowsOf(line: string, columns: number): number {
  return Math.max(1, Math.ceil(displayWidth(stripVTControlCharacters(line)) / columns));
}

type Look = 'bold' | 'italic' | 'strikethrough' | 'cyan' | 'dim' | 'underline';

const LOOKS: Readonly<Record<Style['kind'], readonly Look[]>> = {
  bold: ['bold'],
  italic: ['italic'],
  strike: ['strikethrough'],
  code: ['cyan'],
  pre: ['cyan'],
  quote: ['dim'],
  link: ['underline'],
};

/** Control characters of the text never reach the terminal. */
const CONTROLS = /[^\P{Cc}\n\t]/gu;

/** Without colours the text stays as the agent wrote it. */
export function renderTerminal(markdown: string, hasColors: boolean): string {
  const clean = markdown.replace(CONTROLS, '');
  if (!hasColors) return clean;
  return parseMarkup(clean).runs.map(renderRun).join('');
}

function renderRun({ text, styles }: Run): string {
  const target = styles.find((style) => style.kind === 'link');
  const address = target !== undefined && target.href !== text ? ` (${target.href})` : '';
  const looks = styles.flatMap((style) => LOOKS[style.kind]);
  if (looks.length === 0) return text + address;
  // Line by line, so that no style extends over the end of a line.
  const styled = text
    .split('\n')
    .map((line) => (line === '' ? '' : styleText([...looks], line, { validateStream: false })));
  return styled.join('\n') + address;
}

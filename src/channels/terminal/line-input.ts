// Input at the terminal: a line editor with history, several lines and pastes, where a backslash at the end
// continues the line; and the keys that stop an answer.

import { createInterface, type Interface } from 'node:readline';
import { Transform, type TransformCallback } from 'node:stream';

export type LineResult =
  | { readonly kind: 'text'; readonly text: string }
  /** Ctrl+C. */
  | { readonly kind: 'interrupt'; readonly hadText: boolean }
  /** Ctrl+D. */
  | { readonly kind: 'end' };

export type LineInputOptions = {
  readonly input: NodeJS.ReadStream;
  readonly output: NodeJS.WriteStream;
  readonly prompt: string;
  /** Newest first. */
  readonly history: readonly string[];
  /** Typed while nobody was listening. */
  readonly typedAhead: string;
  /** Names offered by Tab for a line that begins with a slash. */
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
    if (options.typedAhead !== '') editor.write(options.typedAhead);
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

// What a terminal sends, made fit for a line editor: line breaks inside a paste and Alt+Enter become
// a mark that stands for a line break in the line.

/** Shown in the line being edited where the text will have a line break. */
export const LINE_BREAK_MARK = '⏎';

const PASTE_START = '\x1b[200~';
const PASTE_END = '\x1b[201~';
const ESC = '\x1b';
const ALT_ENTER = new RegExp(`${ESC}(?:\r\n?|\n)`, 'g');
const LINE_BREAK = /\r\n?|\n/g;

/** Asks the terminal to mark what is pasted, and not to. */
export const MARK_PASTES = '\x1b[?2004h';
export const LEAVE_PASTES = '\x1b[?2004l';

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

/** The end of a chunk that may be the beginning of a paste's mark. A lone Esc is a key. */
function unfinishedMark(text: string): string {
  const at = text.lastIndexOf('\x1b[');
  if (at === -1) return '';
  const tail = text.slice(at);
  const isCut = [PASTE_START, PASTE_END].some((mark) => mark !== tail && mark.startsWith(tail));
  return isCut ? tail : '';
}

// Keys while the agent answers: Esc or Ctrl+C stops the answer; what else is typed waits for the
// next question.

const STOP_ESC = '\x1b';
const CTRL_C = '\x03';
/** ECMA-48 5.4, and what keypads send. */
const SEQUENCES = new RegExp(`${STOP_ESC}(?:\\[[0-?]*[ -/]*[@-~]|O[ -~])`, 'g');

export function listenForStopKeys(
  input: NodeJS.ReadStream,
  onStop: (key: 'escape' | 'interrupt') => void,
) {
  let typedAhead = '';
  const onData = (chunk: Buffer) => {
    const text = chunk.toString();
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

/** Arrows and the like are no words, and an Enter between two lines parts them. */
function wordsOf(keys: string): string {
  return keys
    .replace(SEQUENCES, '')
    .replace(/[\r\n]+/g, ' ')
    .replace(/\p{Cc}/gu, '');
}

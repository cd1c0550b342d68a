// One question from the person at the terminal: a line editor with history, several lines, pastes.
// A line that ends with a backslash goes on below.

import { createInterface, type Interface } from 'node:readline';
import { KeyFilter, LEAVE_PASTES, LINE_BREAK_MARK, MARK_PASTES } from './key-filter.ts';

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

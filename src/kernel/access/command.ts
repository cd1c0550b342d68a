// Recognises `/commands` in what a person wrote.

export type ParsedCommand = { readonly name: string; readonly argument: string };

const COMMAND = /^\/([a-z][a-z0-9_]{0,31})(?:@[a-z0-9_]{1,64})?(?:\s+([\s\S]*))?$/i;

/** `/model@my_bot  gpt-5` gives `model` and `gpt-5`; undefined where the text is no command. */
export function parseCommand(text: string): ParsedCommand | undefined {
  const match = COMMAND.exec(text.trim());
  if (match === null) return undefined;
  return { name: (match[1] ?? '').toLowerCase(), argument: (match[2] ?? '').trim() };
}

// Short prints of what a model is told: by them it is found out whether that changed, and each text is
// kept once. Worked out once for each text that is there.

import { hash } from 'node:crypto';
import type { ToolSpec } from '../providers/provider.ts';
import type { NamedPrint } from './cache-watch.ts';
import type { PromptSection } from './rules/prompt.ts';

export interface Prints {
  readonly ofTool: (tool: ToolSpec) => string;
  /** Of what the section is made of, in order. */
  readonly ofParts: (section: PromptSection) => readonly NamedPrint[];
}

/** 96 bits: nobody makes two texts meet by chance. */
const PRINT_CHARS = 16;

export function printOf(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return hash('sha256', text, 'base64url').slice(0, PRINT_CHARS);
}

export function createPrints(): Prints {
  const tools = new WeakMap<ToolSpec, string>();
  const sections = new WeakMap<PromptSection, readonly NamedPrint[]>();
  return {
    /** What is told of a tool stays the same for as long as it is there. */
    ofTool(tool) {
      const print = tools.get(tool) ?? printOf(toolText(tool));
      tools.set(tool, print);
      return print;
    },
    ofParts(section) {
      const prints =
        sections.get(section) ??
        section.parts.map(({ name, text }) => ({ name, print: printOf(text) }));
      sections.set(section, prints);
      return prints;
    },
  };
}

/** What a model is told of it. */
export const toolText = ({ name, description, schema }: ToolSpec) =>
  JSON.stringify({ name, description, schema });

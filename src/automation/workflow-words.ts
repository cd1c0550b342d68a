// Workflows in words: what each is for, what it takes, and its steps.

import type { Definition, SkillStep } from '../core/workflow/definition.ts';
import type { ReadFile } from '../core/workflow/file.ts';

export function definitionLine(found: ReadFile<Definition>): string {
  if (found.kind === 'broken') return `${found.name} cannot be used: ${found.problem}`;
  const { name, description, inputs } = found.value.workflow;
  const names = Object.entries(inputs).map(([input, schema]) =>
    schema.default === undefined ? input : `[${input}]`,
  );
  return `${name}: ${description}${names.length === 0 ? '' : ` (inputs: ${names.join(', ')})`}`;
}

export function definitionDetails(found: ReadFile<Definition>): string {
  if (found.kind === 'broken') return definitionLine(found);
  const { inputs, steps } = found.value.workflow;
  const inputLines = Object.entries(inputs).map(
    ([name, schema]) => `- input ${name}: ${JSON.stringify(schema)}`,
  );
  const stepLines = steps.map((step) => {
    const what =
      step.kind === 'tool' ? `tool ${step.tool}` : `capability ${step.capability}${votesOf(step)}`;
    return `- step ${step.id}: ${what}${step.when === undefined ? '' : `, when ${JSON.stringify(step.when)}`}`;
  });
  return [definitionLine(found), ...inputLines, ...stepLines].join('\n');
}

const votesOf = ({ votes }: SkillStep) =>
  votes === undefined ? '' : `, the answer that is ahead by ${votes}`;

// The file beside the form of the configuration, which can be edited too, and the mistakes in it.

import { useLayoutEffect, useRef } from 'preact/hooks';
import { t } from '/texts.js';
import type { SettingProblem } from '../../../features/configuration/rules/views.ts';

/** The line of a mistake is selected. */
export function FileText(props: {
  readonly text: string;
  readonly line: number | undefined;
  readonly isReadOnly: boolean;
  readonly edit: (text: string) => void;
}) {
  const { text, line, isReadOnly, edit } = props;
  const field = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => {
    if (line === undefined || field.current === null) return;
    const lines = field.current.value.split('\n');
    const start = lines.slice(0, line - 1).join('\n').length + (line > 1 ? 1 : 0);
    field.current.focus();
    field.current.setSelectionRange(start, start + (lines[line - 1] ?? '').length);
  }, [line]);
  return (
    <textarea
      ref={field}
      class="note"
      readOnly={isReadOnly}
      spellcheck={false}
      autocapitalize="none"
      aria-labelledby="file"
      aria-invalid={line !== undefined}
      value={text}
      onInput={({ currentTarget }) => edit(currentTarget.value)}
    />
  );
}

export function ProblemList(props: {
  readonly problems: readonly SettingProblem[];
  readonly isDraft: boolean;
}) {
  const { problems, isDraft } = props;
  if (problems.length === 0) return null;
  return (
    <div class="view-problem" role="alert">
      <p>
        {isDraft
          ? t`The changes cannot be saved yet:`
          : t`config.json has mistakes and is not in use; the last valid one is:`}
      </p>
      <ul>
        {problems.map(({ path, problem, remedy, line }) => (
          <li key={`${path} ${problem}`}>
            {path !== '' && <code>{path}</code>} {line !== undefined && t`(line ${line})`} {problem}
            . {remedy}
          </li>
        ))}
      </ul>
    </div>
  );
}

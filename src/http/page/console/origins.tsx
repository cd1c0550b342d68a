// Where what is remembered comes from: the conversations in which a line was said or noted.

import { useSignal } from '@preact/signals';
import { t } from '/texts.js';
import type { ForgetPlaces } from '../../../features/memory/rules/views.ts';
import { Button, Problem } from '../controls.tsx';
import { useAct, type ViewProps } from './parts.tsx';

export const FIND = '/api/v1/forget/find';
const MAX_WORDS_CHARS = 500;
const FACT = /^\s*[-*]\s+(?:\[\d{4}-\d{2}-\d{2}\]\s+)?(?<fact>\S.*)$/;

type OriginsProps = ViewProps & { readonly path: string; readonly text: string };

export function Origins({ path, text, parts }: OriginsProps) {
  const facts = text.split('\n').flatMap((line) => FACT.exec(line)?.groups?.['fact'] ?? []);
  if (facts.length === 0) return null;
  const folder = path.slice(0, path.indexOf('memory/'));
  return (
    <details>
      <summary>{t`Where it is from`}</summary>
      <ul class="runs">
        {[...new Set(facts)].map((fact) => (
          <Origin key={fact} fact={fact} folder={folder} parts={parts} />
        ))}
      </ul>
    </details>
  );
}

function Origin({ fact, folder, parts }: ViewProps & Readonly<Record<'fact' | 'folder', string>>) {
  const found = useSignal<ForgetPlaces['places'] | undefined>(undefined);
  const { isBusy, problem, act } = useAct();
  const find = () =>
    act(async () => {
      const sent = { folder, words: fact.slice(0, MAX_WORDS_CHARS) };
      const { places } = (await parts.api.postJson(FIND, sent)) as ForgetPlaces;
      found.value = places.filter(({ session }) => session !== undefined);
    });
  return (
    <li>
      <bdi>{fact}</bdi>{' '}
      {found.value === undefined && (
        <Button
          text={t`Find the conversation`}
          look="small"
          aria-label={t`Find the conversation of: ${fact}`}
          disabled={isBusy.value}
          onClick={find}
        />
      )}
      <Problem text={problem.value} />
      <div class="soft" role="status">
        {found.value?.length === 0 &&
          (folder === ''
            ? t`In no conversation of yours: it was written by hand, in other words, or said by another owner.`
            : t`In no conversation of theirs: it was written by hand, or in other words.`)}
        {found.value?.map(({ session = '', where }) => (
          <p key={where}>
            <a href={`#/sessions/${encodeURIComponent(session)}`}>
              <bdi>{where}</bdi>
            </a>
          </p>
        ))}
      </div>
    </li>
  );
}

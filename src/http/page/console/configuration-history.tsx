// Earlier versions of the configuration, each with what it changed; one of them can be put in force again.

import type { ComponentChildren } from 'preact';
import { t } from '/texts.js';
import type {
  ConfigurationHistory,
  ShownConfiguration,
} from '../../../features/configuration/rules/views.ts';
import type { JsonValue } from '../../../kernel/config/json-paths.ts';
import { Button, Problem } from '../controls.tsx';
import { MASK } from './configuration-fields.ts';
import { Moment, type PageParts, ReadWhenOpen, useAct } from './parts.tsx';

const CONFIGURATION = '/api/v1/configuration';

type HistoryProps = {
  readonly parts: PageParts;
  /** Of the file now. */
  readonly version: string;
  readonly restored: (shown: ShownConfiguration) => void;
};

export function History(props: HistoryProps) {
  return (
    <ReadWhenOpen<ConfigurationHistory>
      parts={props.parts}
      title={t`History`}
      class="card"
      path={`${CONFIGURATION}/history`}
      version={props.version}
      show={({ versions }) => <Versions {...props} versions={versions} />}
    />
  );
}

function Versions({ versions, parts, version, restored }: HistoryProps & ConfigurationHistory) {
  const { isBusy, problem, act } = useAct();
  const restore = (id: string) =>
    act(async () => {
      const shown = await parts.api.postJson(`${CONFIGURATION}/restore`, { id, version });
      restored(shown as ShownConfiguration);
    });
  const before = versions.findIndex(({ isCurrent }) => isCurrent) + 1;
  return (
    <>
      <Problem text={problem.value} />
      <ol class="runs">
        {versions.map(({ id, at, isCurrent, changes }, index) => (
          <li key={id} class="config-version" data-version={id}>
            <p>
              <Moment at={at} /> {isCurrent && <span class="badge">{t`now`}</span>}
            </p>
            {!isCurrent && (
              <Button
                text={index === before ? t`Undo the last change` : t`Back to this version`}
                look="small"
                disabled={isBusy.value}
                onClick={() => restore(id)}
              />
            )}
            {index === versions.length - 1 ? (
              <p class="soft">{t`The oldest version that is kept.`}</p>
            ) : (
              <details>
                <summary>{t`Changed: ${changes.map(({ path }) => path).join(', ')}`}</summary>
                {changes.map(({ path, before: was, after }) => (
                  <Change key={path} path={path} before={was} after={after} />
                ))}
              </details>
            )}
          </li>
        ))}
      </ol>
    </>
  );
}

type ChangeProps = {
  readonly path: string;
  readonly before?: JsonValue | undefined;
  readonly after?: JsonValue | undefined;
  readonly children?: ComponentChildren;
};

/** One difference between two versions of the file. */
export function Change({ path, before, after, children }: ChangeProps) {
  const isNewSecret = before === MASK && after === MASK;
  return (
    <div class="difference">
      <p>
        <code>{path}</code> {children}
      </p>
      {isNewSecret ? (
        <p class="soft">{t`Another secret`}</p>
      ) : (
        <>
          <del>
            <pre dir="auto">{longText(before)}</pre>
          </del>
          <ins>
            <pre dir="auto">{longText(after)}</pre>
          </ins>
        </>
      )}
    </div>
  );
}

const longText = (value: JsonValue | undefined) =>
  value === undefined ? t`(the default)` : JSON.stringify(value, undefined, 2);
